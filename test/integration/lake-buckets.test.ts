import { createHash, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { LakeStore } from '../../src/lake/store/lake-store.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { bucketOf, partitionOf } from '../../src/lake/versions/next-merge.ts';
import { compactVersions } from '../../src/lake/versions/version-table.ts';
import { linesOf, type TestLake, testLake } from '../support/lake.ts';

/** Tests merging, splitting and erasing a version table's files. */

const tags = lakeSchema('tags');

const tag = (tag_id: string, change: number, name = `name ${change}`) => ({
  tag_id,
  name,
  created: null,
  updated: '2026-03-14T09:26:53.000007Z',
  is_deleted: false,
  _change: change,
  _deleted: false,
});

async function append({ parquet }: TestLake, table: DeltaTable, rows: readonly object[]): Promise<void> {
  const written = await parquet.write(linesOf(parquet, rows), tags);
  if (!written) throw new Error('no rows were written');
  expect(await table.commit({ add: [await table.put(written)] })).toBe('committed');
}

const openTags = ({ store, parquet }: TestLake) => DeltaTable.open(store, 'acme/tags', tags, parquet);

/** Returns each row of the table with its file's bucket. */
async function rowsOf({ parquet }: TestLake, table: DeltaTable) {
  const rows: { bucket: string; id: string; change: number }[] = [];
  for (const file of table.files) {
    const local = await table.get(file);
    const found = await parquet.run([
      `select tag_id, _change::varchar as change from read_parquet('${local}')`,
    ]);
    expect(found).toHaveLength(file.rows);
    for (const { tag_id, change } of found)
      rows.push({ bucket: bucketOf(file), id: String(tag_id), change: Number(change) });
  }
  return rows;
}

it('a file has the newest version of an id alone, and so has a merged one', async () => {
  const lake = testLake();
  const table = await openTags(lake);
  const [one, other] = [randomUUID(), randomUUID()];
  await append(lake, table, [tag(one, 3), tag(one, 5), tag(other, 4), tag(one, 2)]);
  expect(table.files[0]?.rows).toBe(2);
  await append(lake, table, [tag(other, 9)]);
  expect(await compactVersions(table, lake.parquet)).toBe('nothing');
  await append(lake, table, [tag(one, 7), tag(randomUUID(), 8)]);
  expect(await compactVersions(table, lake.parquet)).toBe('committed');
  expect(table.files).toHaveLength(1);
  const rows = await rowsOf(lake, table);
  expect(rows.map(({ change }) => change).toSorted()).toEqual([7, 8, 9]);
});

it('many files are merged at once', async () => {
  const lake = testLake();
  const table = await openTags(lake);
  const ids = [randomUUID(), randomUUID()];
  for (let change = 1; change <= 9; change++) await append(lake, table, [tag(ids[change % 2]!, change)]);
  expect(await compactVersions(table, lake.parquet)).toBe('committed');
  expect((await rowsOf(lake, table)).map(({ change }) => change).toSorted()).toEqual([8, 9]);
});

it('the log of a table of versions has counts and times, and no value of a record', async () => {
  const lake = testLake();
  const table = await openTags(lake);
  const id = randomUUID();
  await append(lake, table, [tag(id, 77_777)]);
  const entry = (await lake.store.read('acme/tags/_delta_log/00000000000000000001.json'))?.toString() ?? '';
  expect(entry).not.toContain(id);
  expect(JSON.parse(table.files.map(({ stats }) => JSON.stringify(stats)).join())).toEqual({
    numRecords: 1,
    minValues: { updated: '2026-03-14T09:26:53.000Z' },
    maxValues: { updated: '2026-03-14T09:26:53.001Z' },
  });
});

it('a split puts every id into the bucket of its hash', async () => {
  const lake = testLake();
  const { parquet } = lake;
  const table = await openTags(lake);
  const ids: string[] = Array.from({ length: 2_000 }, () => randomUUID());
  await append(
    lake,
    table,
    ids.map((id) => tag(id, 1)),
  );
  await append(
    lake,
    table,
    ids.slice(500).map((id) => tag(id, 2)),
  );
  for (const digits of [0, 1]) {
    const files = table.files.filter(
      (file) => bucketOf(file).length === digits && !bucketOf(file).startsWith('7'),
    );
    for (const bucket of new Set(files.map(bucketOf))) {
      const own = files.filter((file) => bucketOf(file) === bucket);
      const copies = await Promise.all(own.map((file) => table.get(file)));
      const add = [];
      for (const { digit, written } of await parquet.split(copies, tags, digits))
        add.push(await table.put(written, partitionOf(bucket + digit)));
      expect(await table.commit({ add, remove: own, dataChange: false })).toBe('committed');
    }
  }
  const reopened = await openTags(lake);
  const rows = await rowsOf(lake, reopened);
  expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  for (const { bucket, id, change } of rows) {
    expect(change).toBe(ids.indexOf(id) < 500 ? 1 : 2);
    expect(createHash('md5').update(id).digest('hex').slice(0, bucket.length)).toBe(bucket);
    expect(bucket).toHaveLength(bucket.startsWith('7') ? 1 : 2);
  }
  // A rewritten file stays in its bucket.
  const [file] = reopened.files;
  const rewritten = await parquet.merge([await reopened.get(file!)], tags, { day: file!.partition! });
  const add = [await reopened.put(rewritten!, file!.partition)];
  expect(await reopened.commit({ add, remove: [file!] })).toBe('committed');
  expect((await openTags(lake)).files.map(bucketOf).toSorted()).toEqual(table.files.map(bucketOf).toSorted());
});

it('a merge that fails leaves no file behind', async () => {
  const lake = testLake();
  const table = await openTags(lake);
  for (let change = 1; change <= 3; change++) await append(lake, table, [tag(randomUUID(), change)]);
  const failing = new Proxy(lake.store, {
    get: (store, name: keyof LakeStore) =>
      name === 'putFile' ? () => Promise.reject(new Error('full')) : store[name].bind(store),
  });
  const other = await openTags({ ...lake, store: failing });
  const before = readdirSync(lake.parquet.folder).length;
  await expect(compactVersions(other, lake.parquet)).rejects.toThrow('full');
  expect(readdirSync(lake.parquet.folder).length).toBe(before);
  expect(await rowsOf(lake, table)).toHaveLength(3);
});
