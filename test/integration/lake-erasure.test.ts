import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { LakeTaken } from '../../src/lake/lake-progress.ts';
import { LakeWriter } from '../../src/lake/lake-writer.ts';
import { lakeLimits } from '../../src/lake/limits.ts';
import { LakePlace, WrongPlace } from '../../src/lake/store/lake-place.ts';
import { type LakeStore, openStore } from '../../src/lake/store/lake-store.ts';
import { tableLimits } from '../../src/lake/table/limits.ts';
import { waitingWork } from '../../src/maintenance/waiting-work.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { changed } from '../support/lake.ts';
import { newLakeOrganisation, tracesOf, writeAll } from '../support/lake-organisation.ts';
import { tracesInFolder, tracesInStore } from '../support/lake-traces.ts';
import { addInteractions, addOldDay } from '../support/old-interactions.ts';
import { storedRows, WrittenLake } from '../support/written-lake.ts';

/** After people are erased from the database, no lake file may contain any trace of them. */

let test: TestApp;
/** A pool that connects as the serving role. */
let pool: OwnPool;
let lake: WrittenLake;
const never = new AbortController().signal;

beforeAll(async () => {
  test = await createTestApp();
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await pool.end();
  await test.close();
});
beforeEach(() => {
  lake = new WrittenLake();
});
afterEach(() => lake.close());

/** Searches all local files, including unfinished ones. */
const traces = (texts: readonly string[]) => tracesInFolder(lake.folder, texts);
const lakeOf = async (erasureId: string) => {
  const text = 'select lake_state, lake_done_at from erasures where erasure_id = $1';
  return (await pool.query(text, [erasureId])).rows[0];
};
const folderOf = (organisationId: string) => join(lake.folder, 'lake', organisationId);

async function expectEqual(organisationId: string): Promise<number> {
  const [written, stored] = [await lake.rows(organisationId), await storedRows(pool, organisationId)];
  expect(written).toEqual(stored);
  return stored.length;
}

it('erased people are in no byte of any file, and what is left of their rows stays', async () => {
  const { organisationId, request, send, newPerson, visit, erase } = await newLakeOrganisation(test);
  const [anonymous, deleted, kept] = [await newPerson(), await newPerson(), await newPerson()];
  const writer = lake.writer(pool);
  await writeAll(writer, pool, organisationId);
  for (let round = 0; round < 9; round++) {
    await send(5);
    for (const person of [anonymous, deleted, kept]) await visit(person, 1);
    // Eight files of similar size are merged, and the old ones are kept for readers of older versions.
    await writer.step(organisationId, never);
    await writer.tend(organisationId);
  }
  // Store one more file, but crash before committing it.
  await visit(anonymous);
  lake.fault = (call, moment) => {
    if (call.startsWith('create ') && moment === 'before') throw new Error('the process ends');
  };
  await expect(lake.writer(pool).step(organisationId, never)).rejects.toThrow('the process ends');
  lake.fault = () => {};
  const [day] = readdirSync(join(folderOf(organisationId), 'interactions')).filter((name) =>
    name.includes('='),
  );
  writeFileSync(
    join(folderOf(organisationId), 'interactions', day!, `_unfinished-${randomUUID()}`),
    `half of a file with ${anonymous.customer_id}`,
  );
  await writeAll(writer, pool, organisationId);
  const rows = await expectEqual(organisationId);
  for (const person of [anonymous, deleted])
    expect((await traces([person.customer_id])).length).toBeGreaterThan(8);
  expect((await traces(['half of a file'])).length).toBe(1);

  const erasures = [await erase('anonymise', anonymous), await erase('delete', deleted)];
  for (const erasureId of erasures) {
    const { body } = await request('GET', `/v1/erasures/${erasureId}`);
    expect([body.state, body.lake, body.lake_done]).toEqual(['swept', 'pending', null]);
    const lift = await request('DELETE', `/v1/erasures/${erasureId}/suppression`);
    expect([lift.statusCode, lift.body.code]).toEqual([409, 'erasure_not_swept']);
    const { certificate } = (await request('GET', `/v1/erasures/${erasureId}/certificate`)).body;
    expect(certificate.searched).not.toContain('files of the lake');
    expect(certificate.remains).toContainEqual({
      where: 'files of the lake',
      until: 'they have been rewritten, which is pending',
    });
  }
  const config = { deletedOrganisationsKeptDays: 30 };
  expect((await waitingWork(pool, config))['lake erasures']?.waiting).toBe(2);
  // The erasure logs its interactions again, but the table already has them.
  await writeAll(writer, pool, organisationId);
  expect((await traces(tracesOf(anonymous, deleted))).length).toBeGreaterThan(0);

  await writer.erase(organisationId, never);
  expect(await traces(tracesOf(anonymous, deleted))).toEqual([]);
  expect(await traces(['half of a file'])).toEqual([]);
  expect((await traces([kept.customer_id])).length).toBeGreaterThan(0);
  expect(await expectEqual(organisationId)).toBe(rows - 27);
  for (const erasureId of erasures) {
    const { body } = await request('GET', `/v1/erasures/${erasureId}`);
    expect([body.state, body.lake]).toEqual(['swept', 'done']);
    expect(Date.parse(body.lake_done)).toBeGreaterThanOrEqual(Date.parse(body.swept));
    const { certificate } = (await request('GET', `/v1/erasures/${erasureId}/certificate`)).body;
    expect(certificate.searched).toContain('files of the lake');
    expect(JSON.stringify(certificate.remains)).not.toContain('rewritten');
    expect((await request('DELETE', `/v1/erasures/${erasureId}/suppression`)).statusCode).toBe(200);
  }
  expect((await waitingWork(pool, config))['lake erasures']?.waiting).toBe(0);
  // Later writes by this or another process do not bring anything back.
  await visit(kept);
  await writeAll(writer, pool, organisationId);
  await send(3);
  await writeAll(lake.writer(pool), pool, organisationId);
  expect(await traces(tracesOf(anonymous, deleted))).toEqual([]);
  await expectEqual(organisationId);
});

it('an organisation without a lake has no files to wait for', async () => {
  const { organisationId, request, newPerson, erase } = await newLakeOrganisation(test);
  const erasureId = await erase('anonymise', await newPerson());
  const { body } = await request('GET', `/v1/erasures/${erasureId}`);
  expect([body.lake, body.lake_done]).toEqual([null, null]);
  const writer = lake.writer(pool);
  await writer.erase(organisationId, never);
  expect(existsSync(folderOf(organisationId))).toBe(false);
});

it('a process that ends at any moment of it loses nothing and leaves nothing', async () => {
  const { organisationId, send, newPerson, visit, erase } = await newLakeOrganisation(test);
  const [one, other] = [await newPerson(), await newPerson()];
  const day = await addOldDay(test.pool, 9);
  await addInteractions(test.pool, organisationId, day, 20);
  const writer = lake.writer(pool);
  for (let round = 0; round < 6; round++) {
    await visit(round < 3 ? one : other);
    await send(4);
    await writeAll(writer, pool, organisationId);
  }
  const erasureId = await erase('anonymise', one, other);
  let ends = 0;
  for (let round = 0; (await lakeOf(erasureId)).lake_state !== 'done'; round++) {
    let left = Math.floor(round / 2);
    const moment = round % 2 === 0 ? 'before' : 'after';
    lake.fault = (call, at) => {
      if (at === moment && !call.startsWith('read ') && left-- === 0) throw new Error('the process ends');
    };
    await lake
      .writer(pool)
      .erase(organisationId, never)
      .catch((error: Error) => {
        if (error.message !== 'the process ends') throw error;
        ends++;
      });
    lake.fault = () => {};
    // No row is lost at any point.
    expect((await lake.rows(organisationId)).length).toBe((await storedRows(pool, organisationId)).length);
    expect(round).toBeLessThan(200);
  }
  expect(ends).toBeGreaterThan(10);
  expect(await traces(tracesOf(one, other))).toEqual([]);
  await expectEqual(organisationId);
});

it('continues after the last file it finished, including files added meanwhile', async () => {
  const { organisationId, send, newPerson, visit, erase } = await newLakeOrganisation(test);
  const [one, other] = [await newPerson(), await newPerson()];
  const writer = lake.writer(pool);
  await writeAll(writer, pool, organisationId);
  for (let round = 0; round < 3; round++) {
    await visit(round === 0 ? one : other);
    await writer.step(organisationId, never);
  }
  const first = await erase('anonymise', one);
  // Stop after one file has been processed.
  const ending = new AbortController();
  lake.fault = (call) => {
    if (call.startsWith('getFile ')) ending.abort();
  };
  await writer.erase(organisationId, ending.signal);
  lake.fault = () => {};
  const { rows } = await pool.query('select lake_state, lake_after from erasures where erasure_id = $1', [
    first,
  ]);
  expect(rows).toEqual([
    { lake_state: 'running', lake_after: expect.stringMatching(/^customers \d{20}-[\w-]{36}\.parquet$/) },
  ]);
  // The first pass has already read this person's files, so the second erasure needs another pass.
  const second = await erase('anonymise', other);
  await send(10);
  await writer.step(organisationId, never);
  lake.calls.length = 0;
  await writer.erase(organisationId, never);
  expect([(await lakeOf(first)).lake_state, (await lakeOf(second)).lake_state]).toEqual(['done', 'pending']);
  await writer.erase(organisationId, never);
  expect((await lakeOf(second)).lake_state).toBe('done');
  expect(await traces(tracesOf(one, other))).toEqual([]);
  await writeAll(writer, pool, organisationId);
  await expectEqual(organisationId);
});

/** Returns a writer that blocks in one of the store's methods until the test releases it. */
function heldWriter(held: keyof LakeStore) {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const store = new Proxy(openStore(lake.url), {
    get: (of, name: keyof LakeStore) => {
      const method = of[name] as (...given: unknown[]) => unknown;
      return async (...given: unknown[]) => {
        if (name === held) {
          reached.resolve();
          await released.promise;
        }
        return method.apply(of, given);
      };
    },
  });
  const { parquet } = lake;
  const suppressions = new Suppressions([erasureKey]);
  const writer = new LakeWriter({ pool, store, parquet, suppressions, isHeld: () => true });
  return { writer, reached: reached.promise, release: released.resolve };
}

it.each(['putFile', 'create'] as const)(
  'rows that another process has read before the erasure are not written after it (%s)',
  async (held) => {
    const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
    const person = await newPerson();
    await writeAll(lake.writer(pool), pool, organisationId);
    await visit(person);
    const stalled = heldWriter(held);
    const step = stalled.writer.step(organisationId, never);
    await stalled.reached;
    const erasureId = await erase('anonymise', person);
    await lake.writer(pool).erase(organisationId, never);
    expect((await lakeOf(erasureId)).lake_state).toBe('done');
    stalled.release();
    await expect(step).rejects.toBeInstanceOf(LakeTaken);
    expect(await traces(tracesOf(person))).toEqual([]);
    await writeAll(lake.writer(pool), pool, organisationId);
    expect(await expectEqual(organisationId)).toBe(6);
  },
);

it.each(['putFile', 'create'] as const)(
  'files that another process merges meanwhile do not bring anybody back (%s)',
  async (held) => {
    const { organisationId, send, newPerson, visit, erase } = await newLakeOrganisation(test);
    const person = await newPerson();
    const writer = lake.writer(pool);
    await writeAll(writer, pool, organisationId);
    for (let round = 0; round < 8; round++) {
      await visit(person, 1);
      await writer.step(organisationId, never);
    }
    const stalled = heldWriter(held);
    // Open the table. A step with nothing to write commits nothing.
    await stalled.writer.step(organisationId, never);
    const merging = stalled.writer.tend(organisationId);
    await stalled.reached;
    await erase('anonymise', person);
    await writer.erase(organisationId, never);
    stalled.release();
    await merging;
    expect(await traces(tracesOf(person))).toEqual([]);
    await send(1);
    await writeAll(lake.writer(pool), pool, organisationId);
    expect(await expectEqual(organisationId)).toBe(25);
  },
);

it('who is erased while stored interactions are copied is not in the copy', async () => {
  const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
  const [one, other] = [await newPerson(), await newPerson()];
  for (const daysAgo of [4, 5, 6]) {
    const ids = await addInteractions(test.pool, organisationId, await addOldDay(test.pool, daysAgo), 20);
    for (const [at, { customer_id }] of [one, other].entries())
      await test.pool.query(
        'update interactions set student_id = $2 where interaction_id = any ($1::uuid[])',
        [ids.slice(10 * at, 10 * at + 10), customer_id],
      );
  }
  await visit(one);
  const writer = lake.writer(pool, 15);
  await writer.step(organisationId, never);
  // Only the first day has been copied.
  expect(await lake.rows(organisationId)).toHaveLength(20);
  expect((await traces(tracesOf(one))).length).toBeGreaterThan(0);
  await erase('anonymise', one);
  await writer.erase(organisationId, never);
  expect(await traces(tracesOf(one))).toEqual([]);
  await writeAll(writer, pool, organisationId);
  expect(await traces(tracesOf(one))).toEqual([]);
  expect((await traces(tracesOf(other))).length).toBeGreaterThan(0);
  expect(await expectEqual(organisationId)).toBe(66);
});

it.each(['a step', 'an erasure'])(
  '%s removes a table that was replaced by a copy from before an erasure',
  async (what) => {
    const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
    const person = await newPerson();
    await visit(person);
    const writer = lake.writer(pool);
    await writeAll(writer, pool, organisationId);
    const copy = join(lake.folder, 'copy');
    cpSync(folderOf(organisationId), copy, { recursive: true });
    const erasureId = await erase('anonymise', person);
    await writer.erase(organisationId, never);
    expect(await traces(tracesOf(person))).toEqual(await tracesInFolder(copy, tracesOf(person)));
    rmSync(folderOf(organisationId), { recursive: true });
    cpSync(copy, folderOf(organisationId), { recursive: true });
    rmSync(copy, { recursive: true });
    expect((await traces(tracesOf(person))).length).toBeGreaterThan(0);
    if (what === 'an erasure') {
      const other = await erase('anonymise', await newPerson());
      await lake.writer(pool).erase(organisationId, never);
      expect((await lakeOf(other)).lake_state).toBe('running');
    }
    await writeAll(lake.writer(pool), pool, organisationId);
    expect((await lakeOf(erasureId)).lake_state).toBe('done');
    expect(await traces(tracesOf(person))).toEqual([]);
    await expectEqual(organisationId);
  },
);

it('a file that takes long is not taken up again by each call, and commits are checkpointed', async () => {
  const { organisationId, send, newPerson, erase } = await newLakeOrganisation(test);
  const person = await newPerson();
  const writer = lake.writer(pool);
  await writeAll(writer, pool, organisationId);
  const files = tableLimits.commitsPerCheckpoint;
  for (let file = 0; file < files; file++) {
    await send(1, { student_id: person.customer_id, user_id: null });
    await writer.step(organisationId, never);
  }
  const erasureId = await erase('anonymise', person);
  lake.calls.length = 0;
  // Whatever a call does, its time is up afterwards.
  let nowMs = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 2 * lakeLimits.erasingMs));
  onTestFinished(() => void clock.mockRestore());
  let calls = 0;
  while ((await lakeOf(erasureId)).lake_state !== 'done') {
    await lake.writer(pool).erase(organisationId, never);
    expect(++calls).toBeLessThan(3 * files);
  }
  expect(calls).toBeGreaterThan(files);
  expect(await traces(tracesOf(person))).toEqual([]);
  expect(lake.calls.filter((call) => /^putFile .*_last_checkpoint$/.test(call))).not.toEqual([]);
  await expectEqual(organisationId);
});

it('after a failover, people are found who got the version of earlier suppressions', async () => {
  const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
  const [one, other] = [await newPerson(), await newPerson()];
  for (const person of [one, other]) await visit(person);
  const writer = lake.writer(pool);
  await writeAll(writer, pool, organisationId);
  await erase('anonymise', one);
  await writer.erase(organisationId, never);
  // The standby that took over lacks this erasure.
  await test.pool.query('delete from suppressions where organisation_id = $1', [organisationId]);
  await test.pool.query('update tenants set suppressions_version = 0 where organisation_id = $1', [
    organisationId,
  ]);
  await erase('anonymise', other);
  await writer.erase(organisationId, never);
  expect(await traces(tracesOf(other))).toEqual([]);
});

it('without the key of the hashes it fails and leaves the erasure pending instead of finding nobody', async () => {
  const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
  const person = await newPerson();
  await visit(person);
  await writeAll(lake.writer(pool), pool, organisationId);
  const erasureId = await erase('delete', person);
  const { store, parquet } = lake;
  const suppressions = new Suppressions(['another key of 32 characters or more']);
  const writer = new LakeWriter({ pool, store, parquet, suppressions, isHeld: () => true });
  await expect(writer.erase(organisationId, never)).rejects.toMatchObject({ code: 'erasure_key_missing' });
  expect((await lakeOf(erasureId)).lake_state).toBe('pending');
  await lake.writer(pool).erase(organisationId, never);
  expect(await tracesInStore(openStore(lake.url), organisationId, tracesOf(person))).toEqual([]);
  expect(await expectEqual(organisationId)).toBe(0);
});

/** Runs work whose place is unmounted when the store is first called like this, or before it begins. */
async function whileUnmounted(
  organisationId: string,
  isUnmounting: ((call: string) => boolean) | undefined,
  work: (writer: LakeWriter) => Promise<void>,
): Promise<void> {
  const [root, away] = [join(lake.folder, 'lake'), join(lake.folder, 'away')];
  let isMounted = true;
  const unmount = () => {
    renameSync(root, away);
    mkdirSync(root);
    isMounted = false;
  };
  const unmountIf = (call: string) => {
    if (isMounted && isUnmounting?.(call)) unmount();
  };
  lake.fault = (call, moment) => moment === 'before' && unmountIf(call);
  const store = changed(lake.store, {
    list(folder) {
      unmountIf(`list ${folder}`);
      return lake.store.list(folder);
    },
  });
  const { url, parquet } = lake;
  // A database has one place, but each test has its own.
  await pool.query('update lake_place set claim = null, fingerprint = null, url = null');
  await pool.query('delete from lake_progress where organisation_id <> $1', [organisationId]);
  const place = new LakePlace(pool, store, url);
  await place.claim();
  const suppressions = new Suppressions([erasureKey]);
  const writer = new LakeWriter({ pool, store, place, parquet, suppressions, isHeld: () => true });
  if (!isUnmounting) unmount();
  await expect(work(writer)).rejects.toThrow(WrongPlace);
  expect(isMounted).toBe(false);
  lake.fault = () => {};
  rmSync(root, { recursive: true });
  renameSync(away, root);
  await work(writer);
}

it.each<[string, ((call: string) => boolean) | undefined]>([
  ['begins', undefined],
  ['reads a table', (call) => /^read \S+\/customers\/_delta_log/.test(call)],
  ['deletes the old files of its first table', (call) => call.endsWith('/customers') && /^list/.test(call)],
  ['deletes the old files of its last table', (call) => call.endsWith('/interactions') && /^list/.test(call)],
])('nobody is reported as erased if the folder is not mounted when it %s', async (_, isUnmounting) => {
  const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
  const person = await newPerson();
  await visit(person);
  await writeAll(lake.writer(pool), pool, organisationId);
  const erasureId = await erase('anonymise', person);
  await whileUnmounted(organisationId, isUnmounting, async (writer) => {
    await writer.erase(organisationId, never);
    expect((await lakeOf(erasureId)).lake_state).toBe('done');
    expect(await traces(tracesOf(person))).toEqual([]);
  });
  await expectEqual(organisationId);
});

it('nobody is reported as erased if the folder is not mounted while the files of a lake are deleted', async () => {
  const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
  const person = await newPerson();
  await visit(person);
  await writeAll(lake.writer(pool), pool, organisationId);
  const erasureId = await erase('anonymise', person);
  await pool.query(`update lake_progress set removing_since = '2026-01-01' where organisation_id = $1`, [
    organisationId,
  ]);
  const isListing = (call: string) => call === `list ${organisationId}`;
  await whileUnmounted(organisationId, isListing, async (writer) => {
    await writer.remove(organisationId);
    expect((await lakeOf(erasureId)).lake_state).toBe('done');
    expect(await traces(tracesOf(person))).toEqual([]);
  });
});

it('an erasure is not done with a table that is missing, and everything is copied again', async () => {
  const { organisationId, newPerson, visit, erase } = await newLakeOrganisation(test);
  const person = await newPerson();
  await visit(person);
  await writeAll(lake.writer(pool), pool, organisationId);
  const erasureId = await erase('anonymise', person);
  rmSync(lake.tableFolder(organisationId, 'interactions'), { recursive: true });
  await lake.writer(pool).erase(organisationId, never);
  expect((await lakeOf(erasureId)).lake_state).toBe('running');
  expect(lake.lost).toEqual(['interactions']);
  await writeAll(lake.writer(pool), pool, organisationId);
  expect((await lakeOf(erasureId)).lake_state).toBe('done');
  await expectEqual(organisationId);
});
