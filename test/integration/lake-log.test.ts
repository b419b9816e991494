import { readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readCheckpoint, writeCheckpoint } from '../../src/lake/table/checkpoint-file.ts';
import { compact } from '../../src/lake/table/compact.ts';
import { tableLimits } from '../../src/lake/table/limits.ts';
import {
  append,
  day,
  dayMs,
  filesAt,
  linesOf,
  listed,
  newRows,
  rowsIn,
  type TestLake,
  testLake,
  testWriter,
} from '../support/lake.ts';

/** Tests the log of a table: its checkpoints, and what happens when the table is deleted or replaced. */

const folder = 'acme/interactions';

/** Sets a file's modification time back by this many days. */
function age(path: string, days: number): void {
  const then = statSync(path).mtime.getTime() / 1_000 - days * 86_400;
  utimesSync(path, then, then);
}

/** Writes the next entries of a log by hand. */
async function addEntries(
  store: TestLake['store'],
  from: number,
  entries: readonly (readonly object[])[],
): Promise<void> {
  for (const [at, actions] of entries.entries()) {
    const lines = actions.map((action) => `${JSON.stringify(action)}\n`).join('');
    const name = String(from + at).padStart(20, '0');
    expect(await store.create(`${folder}/_delta_log/${name}.json`, Buffer.from(lines))).toBe(true);
  }
}

/** Returns entries that bring a table to the version of its first checkpoint. */
const untilCheckpoint = (from: number) =>
  Array.from({ length: 20 - from }, (_, at) => [{ txn: { appId: 'other', version: at } }]);

describe('a table that was deleted', () => {
  it('gets no commit, no checkpoint and no file', async () => {
    const { root, store, parquet, open } = testLake();
    const table = await open();
    for (let at = 1; at <= 20; at++) await table.fence();
    const written = await parquet.write(linesOf(parquet, newRows(3)), table.schema, { day });
    const late = await table.put(written!, day);
    rmSync(join(root, 'acme/interactions/_delta_log'), { recursive: true });
    await table.checkpoint();
    expect(await table.commit({ add: [late] })).toBe('conflict');
    expect(await table.fence()).toBe('conflict');
    expect(await listed(store, 'acme')).toEqual([]);
  });

  it('is not confused with the one that was created in its place', async () => {
    const { root, parquet, open } = testLake();
    const table = await open();
    for (const rows of [newRows(3), newRows(3, dayMs + 10)]) await append(table, parquet, rows);
    expect(await table.isStored()).toBe(true);
    rmSync(join(root, 'acme'), { recursive: true });
    const other = await open();
    const rows = [newRows(3), newRows(3, dayMs + 20)];
    for (const some of rows) await append(other, parquet, some);
    expect(other.version).toBe(table.version);
    expect(await table.isStored()).toBe(false);
    expect(await table.commit({ txn: { appId: 'acme', version: 9 } })).toBe('conflict');
    await append(other, parquet, newRows(1, dayMs + 30));
    await table.vacuum(new Date());
    expect(other.positions.get('acme')).toBeUndefined();
    expect((await rowsIn(root, filesAt(root, 3))).length).toBe(7);
  });
});

describe('a checkpoint', () => {
  it('is written every 20 commits and read instead of the log before it', async () => {
    const { parquet, root, open } = testLake();
    const table = await open();
    const rows = [];
    for (let at = 1; at < 20; at++) {
      const some = newRows(2, dayMs + at * 10);
      rows.push(...some);
      await table.checkpoint();
      await append(table, parquet, some, at);
    }
    expect(await compact(table, parquet, day)).toBe('committed');
    const log = join(root, folder, '_delta_log');
    const checkpoints = () => readdirSync(log).filter((name) => name.endsWith('.checkpoint.parquet'));
    expect(checkpoints()).toEqual([]);
    await table.checkpoint();
    expect(JSON.parse(readFileSync(join(log, '_last_checkpoint'), 'utf8'))).toEqual({
      version: 20,
      size: 23,
    });
    await append(table, parquet, newRows(1, dayMs + 1_000), 21);
    await table.checkpoint();
    expect(checkpoints()).toEqual(['00000000000000000020.checkpoint.parquet']);

    const reopened = await open();
    expect([reopened.version, reopened.positions.get('acme')]).toEqual([21, 21]);
    expect(reopened.files).toEqual(table.files);
    // Log entries from before the checkpoint may be deleted once they are a week old. Later versions stay readable.
    for (const name of readdirSync(log)) age(join(log, name), 8);
    await reopened.vacuum(new Date(0));
    expect(readdirSync(log).filter((name) => name.endsWith('.json')).length).toBe(2);
    const last = await open();
    expect(last.files).toEqual(table.files);
    expect([last.version, last.positions.get('acme')]).toEqual([21, 21]);
    // The checkpoint still lists the removed files.
    const dataFiles = () => readdirSync(join(root, folder, `received_on=${day}`)).length;
    expect(dataFiles()).toBe(21);
    await last.vacuum(new Date(Date.now() + 1));
    expect(dataFiles()).toBe(2);
    expect(
      (
        await rowsIn(
          root,
          last.files.map(({ path }) => path),
        )
      ).length,
    ).toBe(39);
  });

  it('can be followed if the entries up to it are gone', async () => {
    const { root, open } = testLake();
    const table = await open();
    for (let at = 1; at <= 20; at++) await table.fence();
    await table.checkpoint();
    const log = join(root, folder, '_delta_log');
    for (const name of readdirSync(log)) if (name.endsWith('.json')) rmSync(join(log, name));
    const reopened = await open();
    expect([reopened.version, await reopened.isStored(), await table.isStored()]).toEqual([20, true, false]);
    const late = await open();
    for (let at = 21; at <= 40; at++) expect(await reopened.fence()).toBe('committed');
    await reopened.checkpoint();
    // A late writer must not commit a version that exists only in a checkpoint.
    for (const name of readdirSync(log)) if (name.endsWith('.json')) rmSync(join(log, name));
    for (const one of [table, late, reopened]) {
      expect(await one.isStored()).toBe(false);
      expect(await one.commit({ txn: { appId: 'late', version: 1 } })).toBe('conflict');
    }
    const again = await open();
    expect([again.version, await again.isStored()]).toEqual([40, true]);
    rmSync(log, { recursive: true });
    expect(await again.isStored()).toBe(false);
  });

  it('ends the listing of files that were removed more than a week ago', async () => {
    const { store, open } = testLake();
    const [table, follower] = [await open(), await open()];
    const remove = (path: string, daysAgo: number) => ({
      remove: { path, deletionTimestamp: Date.now() - daysAgo * 86_400_000, dataChange: true },
    });
    await addEntries(store, 1, [[remove('old', 8), remove('new', 6)], ...untilCheckpoint(2)]);
    for (const one of [table, follower]) {
      await one.refresh();
      expect(one.filesKnown).toBe(2);
    }
    await table.checkpoint();
    await follower.refresh();
    for (const one of [table, follower, await open()]) expect(one.filesKnown).toBe(1);
  });

  it('is never in the heap of the process that reads it as a whole', async () => {
    const parquet = testWriter();
    const add = {
      path: '',
      partitionValues: {},
      modificationTime: 0,
      dataChange: false,
      tags: { sha256: '' },
    };
    const stats = 'x'.repeat(8_000);
    const count = Math.ceil((tableLimits.childHeapMb * 1024 * 1024 * 0.6) / stats.length);
    const actions = Array.from({ length: count }, (_, size) => ({ add: { ...add, size, stats } }));
    const localFile = await writeCheckpoint(parquet, actions);
    let read = 0;
    for await (const action of readCheckpoint(parquet, localFile)) if (action.add?.size === read) read++;
    expect(read).toBe(count);
  });
});
