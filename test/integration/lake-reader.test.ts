import { createHash } from 'node:crypto';
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished, vi } from 'vitest';
import { LakeReader } from '../../src/lake/lake-reader.ts';
import { lakeLimits } from '../../src/lake/limits.ts';
import { openStore } from '../../src/lake/store/lake-store.ts';
import { append, changed, dayMs, newRows, testLake } from '../support/lake.ts';

/** Tests how `serve` reads a table that another process writes. */

function readerOf(root: string): LakeReader {
  const reader = new LakeReader(openStore(pathToFileURL(root).href));
  onTestFinished(() => reader.close());
  return reader;
}

const untilOld = () => sleep(lakeLimits.listingFreshMs + 50);

it('a table is read from its checkpoint, and what was committed since from its log', async () => {
  const { root, parquet, open } = testLake();
  const table = await open();
  for (let at = 1; at <= 20; at++) await append(table, parquet, newRows(2, dayMs + at * 10));
  // On a read-only file system, a table can be read without a temporary folder until it has a checkpoint.
  vi.stubEnv('TMPDIR', join(root, 'missing'));
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await readerOf(root).listing('acme', 'interactions')).toMatchObject({ version: 20 });
  await table.checkpoint();
  await expect(readerOf(root).listing('acme', 'interactions')).rejects.toMatchObject({ status: 503 });
  vi.unstubAllEnvs();
  const log = join(root, 'acme/interactions/_delta_log');
  // Simulate a vacuum, which deletes log entries from before a checkpoint once they are a week old.
  for (const name of readdirSync(log)) if (/^0{19}\d\.json$/.test(name)) rmSync(join(log, name));
  await append(table, parquet, newRows(5, dayMs + 1_000));
  const reader = readerOf(root);
  const listing = await reader.listing('acme', 'interactions');
  expect(listing).toMatchObject({ version: 21, rows: 45 });
  expect(listing?.files.map(({ path }) => path).toSorted()).toEqual(
    table.files.map(({ path }) => path).toSorted(),
  );
  for (const { path, sha256 } of listing?.files ?? []) {
    const content = readFileSync(join(root, 'acme/interactions', path));
    expect(sha256).toBe(createHash('sha256').update(content).digest('hex'));
  }
  const [file] = listing?.files ?? [];
  const pieces: Buffer[] = [];
  for await (const piece of reader.read('acme', 'interactions', file!, { from: 4, to: 100 }))
    pieces.push(piece);
  const content = readFileSync(join(root, 'acme/interactions', file!.path));
  expect(Buffer.concat(pieces)).toEqual(content.subarray(4, 100));
});

it('follows commits, and a table that was deleted and begun again', async () => {
  const { root, parquet, open } = testLake();
  const reader = readerOf(root);
  expect(await reader.listing('acme', 'interactions')).toBeUndefined();
  let table = await open();
  await append(table, parquet, newRows(2));
  const [first] = (await reader.listing('acme', 'interactions'))?.files ?? [];
  await append(table, parquet, newRows(3, dayMs + 500));
  await untilOld();
  // Concurrent requests share one read from the store.
  const all = await Promise.all(Array.from({ length: 5 }, () => reader.listing('acme', 'interactions')));
  expect(new Set(all).size).toBe(1);
  expect(all[0]).toMatchObject({ version: 2, rows: 5 });
  expect(await reader.file('acme', 'interactions', first!.fileId)).toMatchObject({ path: first!.path });
  rmSync(join(root, 'acme'), { recursive: true });
  await untilOld();
  expect(await reader.listing('acme', 'interactions')).toBeUndefined();
  table = await open();
  await append(table, parquet, newRows(7));
  expect(await reader.listing('acme', 'interactions')).toMatchObject({ version: 1, rows: 7 });
  expect(await reader.file('acme', 'interactions', first!.fileId)).toBeUndefined();
});

it('a store that cannot be read is reported as such, and read again later', async () => {
  const { root, parquet, open } = testLake();
  const table = await open();
  await append(table, parquet, newRows(2));
  const reader = readerOf(root);
  const path = join(root, 'acme/interactions/_delta_log/_last_checkpoint');
  writeFileSync(path, 'not JSON');
  await expect(reader.listing('acme', 'interactions')).rejects.toMatchObject({
    code: 'lake_unavailable',
    status: 503,
  });
  rmSync(path);
  const listing = await reader.listing('acme', 'interactions');
  expect(listing).toMatchObject({ rows: 2 });
  const [file] = listing?.files ?? [];
  const local = join(root, 'acme/interactions', file!.path);
  const readAll = async () => {
    for await (const _ of reader.read('acme', 'interactions', file!, { from: 0, to: file!.bytes }));
  };
  // Make the file shorter than the log says.
  chmodSync(local, 0o600);
  writeFileSync(local, readFileSync(local).subarray(0, 10));
  await expect(readAll()).rejects.toThrow('shorter than its log entry says');
  rmSync(local);
  await expect(readAll()).rejects.toMatchObject({ code: 'lake_file_not_found' });
});

it('a table that was replaced between two looks is read from its start', async () => {
  const { root, parquet, open } = testLake();
  const reader = readerOf(root);
  let table = await open();
  for (let at = 0; at < 3; at++) await append(table, parquet, newRows(2, dayMs + at * 10));
  const listing = await reader.listing('acme', 'interactions', 0, 0);
  expect(listing).toMatchObject({ version: 3, rows: 6 });
  expect(await reader.listing('acme', 'interactions', 0, 0)).toBe(listing);
  rmSync(join(root, 'acme'), { recursive: true });
  table = await open();
  for (let at = 0; at < 4; at++) await append(table, parquet, newRows(1, dayMs + at * 10));
  expect(await reader.listing('acme', 'interactions', 0, 0)).toMatchObject({ version: 4, rows: 4 });
});

it('a table that is missing or older than what was written is reported', async () => {
  const { root, parquet, open } = testLake();
  const reader = readerOf(root);
  const unavailable = { code: 'lake_unavailable', status: 503 };
  await expect(reader.listing('acme', 'interactions', 0)).rejects.toMatchObject(unavailable);
  const table = await open();
  expect(await reader.listing('acme', 'interactions', 0)).toMatchObject({ version: 0 });
  await expect(reader.listing('acme', 'interactions', 1)).rejects.toMatchObject(unavailable);
  await append(table, parquet, newRows(2));
  expect(await reader.listing('acme', 'interactions', 1)).toMatchObject({ version: 1 });
});

it('a version that was written while another request read the log is found', async () => {
  const { store, parquet, open } = testLake();
  const [reading, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = changed(store, {
    async read(path) {
      const found = await store.read(path);
      if (path.endsWith('0.json') && !found) {
        reading.resolve();
        await written.promise;
      }
      return found;
    },
  });
  const reader = new LakeReader(slow);
  onTestFinished(() => reader.close());
  const first = reader.listing('acme', 'interactions');
  await reading.promise;
  await append(await open(), parquet, newRows(2));
  const second = reader.listing('acme', 'interactions', 1);
  written.resolve();
  expect(await first).toBeUndefined();
  expect(await second).toMatchObject({ version: 1, rows: 2 });
});

it('files that were removed count towards the files in memory', async () => {
  const { root, store, open } = testLake();
  await open();
  const reader = readerOf(root);
  const remove = { deletionTimestamp: Date.now(), dataChange: true };
  const lines = Array.from({ length: lakeLimits.filesKnownMax + 1 }, (_, at) =>
    JSON.stringify({ remove: { path: `${at}`, ...remove } }),
  );
  cpSync(join(root, 'acme'), join(root, 'globex'), { recursive: true });
  const entry = 'acme/interactions/_delta_log/00000000000000000001.json';
  await store.create(entry, Buffer.from(lines.join('\n')));
  const listing = (organisationId: string) => reader.listing(organisationId, 'interactions', 0, 600_000);
  const acme = await listing('acme');
  expect(await listing('acme')).toBe(acme);
  const globex = await listing('globex');
  expect(await listing('globex')).toBe(globex);
  expect(await listing('acme')).not.toBe(acme);
});
