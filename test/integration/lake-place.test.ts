import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { LakePlace, WrongPlace } from '../../src/lake/store/lake-place.ts';
import { openStore } from '../../src/lake/store/lake-store.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { createTestDatabase } from '../support/database.ts';
import { hasTool } from '../support/has-tool.ts';
import { changed, listed, temporaryFolder } from '../support/lake.ts';
import { startS3 } from '../support/s3-server.ts';

/** Places that several processes and databases claim at the same time. */

async function newDatabase() {
  const pool = createPool(readConfig({ DATABASE_URL: await createTestDatabase() }), () => {});
  onTestFinished(() => pool.end());
  return pool;
}

async function newFolder(): Promise<string> {
  return pathToFileURL(temporaryFolder()).href;
}

async function newBucket(): Promise<string> {
  const s3 = await startS3();
  onTestFinished(() => s3.stop());
  return s3.lakeUrl;
}

describe.each([
  ['a folder', newFolder, true],
  ['S3', newBucket, hasTool('moto')],
])('in %s', (_, newUrl, isPossible) => {
  it.skipIf(!isPossible)('one of two databases gets an empty place, with all its processes', async () => {
    const url = await newUrl();
    const pools = [await newDatabase(), await newDatabase()];
    const places = pools.map((pool) =>
      Array.from({ length: 6 }, () => new LakePlace(pool, openStore(url), url)),
    );
    const outcomes = await Promise.all(
      places.map((ofOne) => Promise.allSettled(ofOne.map((place) => place.claim()))),
    );
    const statuses = outcomes.map((ofOne) => new Set(ofOne.map(({ status }) => status)));
    expect(statuses.map((set) => [...set]).toSorted()).toEqual([['fulfilled'], ['rejected']]);
    for (const outcome of outcomes.flat())
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(WrongPlace);
    expect(await listed(openStore(url), '_place')).toHaveLength(1);
    const [lost] = places[statuses.findIndex((set) => set.has('rejected'))] ?? [];
    const [won] = places[statuses.findIndex((set) => set.has('fulfilled'))] ?? [];

    const newLake = async (state: 'copied' | 'on' | 'off' | 'unknown') => {
      const id = randomUUID();
      const pool = pools[statuses.findIndex((set) => set.has('rejected'))];
      if (state !== 'unknown')
        await pool?.query(
          'insert into organisations (organisation_id, slug, name, lake) values ($1, $2, $2, $3)',
          [id, id, state !== 'off'],
        );
      if (state === 'copied')
        await pool?.query(`insert into lake_progress (organisation_id, number, epoch) values ($1, 0, '')`, [
          id,
        ]);
      await openStore(url).create(`${id}/shops/file`, Buffer.from('file'));
      return id;
    };
    const [copied, on, off, unknown] = [
      await newLake('copied'),
      await newLake('on'),
      await newLake('off'),
      await newLake('unknown'),
    ];

    // Taking a place over needs the name of its database, and takes effect for every process of the other one.
    await expect(lost?.takeOver('empty')).rejects.toThrow('to take it over');
    const [, id = ''] = /--take-over (\w+)/.exec(String(await lost?.check().catch((error) => error))) ?? [];
    await expect(lost?.takeOver(id)).resolves.toEqual({
      ...{ isCopied: true, left: null },
      unknown: [off, unknown].toSorted(),
    });
    // What stays is for the operator to delete, and what is deleted is deleted by the lake's processes.
    for (const id of [copied, on, off, unknown]) expect(await listed(openStore(url), id)).toHaveLength(1);
    await lost?.claim();
    await expect(won?.check()).rejects.toThrow(WrongPlace);
  });
});

it('a place is not claimed if its store replaces files', async () => {
  const url = await newFolder();
  const probe = () => Promise.reject(new Error('replaces files'));
  const unsafe = changed(openStore(url), { probe });
  await expect(new LakePlace(await newDatabase(), unsafe, url).claim()).rejects.toThrow('replaces files');
  expect(await listed(openStore(url), '_place')).toEqual([]);
});
