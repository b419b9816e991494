// @module-tag full

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LakeStore, openStore } from '../../src/lake/store/lake-store.ts';
import { compact } from '../../src/lake/table/compact.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { hasTool } from '../support/has-tool.ts';
import { append, day, dayMs, listed, newRows, temporaryFolder, testWriter } from '../support/lake.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';

const it = test.skipIf(!hasTool('moto'));
let server: S3Server;
let store: LakeStore;

beforeAll(async () => {
  server = await startS3();
  store = openStore(server.lakeUrl);
});
afterAll(() => server?.stop());
beforeEach(() => server.fail(() => undefined));

const bytes = (text: string) => Buffer.from(text);

/** Injects the fault into the first `count` requests with this method. */
function failFirst(count: number, method: string, fault: 'lost answer' | 'server error' | 'cut'): void {
  let left = count;
  server.fail((asked) => (asked === method && left-- > 0 ? fault : undefined));
}

it('proves that the bucket creates nothing twice', async () => {
  await store.probe();
  expect(server.requests.filter((request) => request.startsWith('DELETE')).length).toBe(1);
});

it('creates a file once, however many try at the same time', async () => {
  const created = await Promise.all(
    Array.from({ length: 8 }, (_, at) => store.create('once/0.json', bytes(String(at)))),
  );
  expect(created.filter((isCreated) => isCreated).length).toBe(1);
  expect((await store.read('once/0.json'))?.toString()).toBe(String(created.indexOf(true)));
});

it('knows its own file again if the answer was lost', async () => {
  failFirst(1, 'PUT', 'lost answer');
  expect(await store.create('lost/0.json', bytes('mine'))).toBe(true);
  expect(await store.create('lost/0.json', bytes('another'))).toBe(false);
  expect((await store.read('lost/0.json'))?.toString()).toBe('mine');
  // The response to every write is lost, but reads succeed.
  server.fail((method) => (method === 'PUT' ? 'lost answer' : undefined));
  expect(await store.create('lost/1.json', bytes('mine'))).toBe(true);
});

it('asks again after server errors and cut connections, and gives up with an error', async () => {
  failFirst(2, 'PUT', 'server error');
  expect(await store.create('again/0.json', bytes('mine'))).toBe(true);
  failFirst(2, 'GET', 'cut');
  expect((await store.read('again/0.json'))?.toString()).toBe('mine');
  server.fail(() => 'server error');
  await expect(store.create('again/1.json', bytes('mine'))).rejects.toThrow();
  await expect(store.read('again/0.json')).rejects.toThrow();
  server.fail(() => undefined);
  expect(await store.read('again/1.json')).toBeUndefined();
});

it('a bucket that refuses access does not look empty, and the error names the permissions', async () => {
  server.fail(() => 'no access');
  await expect(store.read('missing/0.json')).rejects.toThrow('s3:ListBucket');
  await expect(store.readRange('missing/0.json', 0, 1)).rejects.toThrow('s3:ListBucket');
});

it('reads parts, lists in order, copies files and removes them', async () => {
  const localFile = join(temporaryFolder(), 'local');
  writeFileSync(localFile, '0123456789');
  for (const path of ['parts/b/2', 'parts/b/1', 'parts/b-c', 'partsother/x'])
    await store.putFile(path, localFile);
  expect(String(await store.readRange('parts/b/1', 2, 5))).toBe('234');
  const client = new S3Client({ endpoint: server.endpoint, forcePathStyle: true });
  await client.send(new PutObjectCommand({ Bucket: 'lake-of-tests', Key: 'data/parts/folder/', Body: '' }));
  client.destroy();
  const found = await listed(store, 'parts');
  expect(found.map(({ path }) => path)).toEqual(['parts/b-c', 'parts/b/1', 'parts/b/2']);
  await store.getFile('parts/b/2', `${localFile}-copy`);
  expect(readFileSync(`${localFile}-copy`, 'utf8')).toBe('0123456789');
  await store.remove('parts/b/2');
  await store.remove('parts/b/2');
  expect(await store.read('parts/b/2')).toBeUndefined();
});

it('a table has every row once, whatever fails on the way', async () => {
  const parquet = testWriter();
  const schema = lakeSchema('interactions');
  const open = () => DeltaTable.open(store, 'acme/interactions', schema, parquet);
  let table = await open();
  let asked = 0;
  const faults = ['lost answer', 'server error', 'cut', 'lost answer'] as const;
  server.fail(() => {
    asked++;
    return asked % 5 === 0 ? faults[asked % faults.length] : undefined;
  });
  const rowsOf = new Map<number, number>();
  for (let position = 1; position <= 21; position++) {
    const rows = newRows(position, dayMs + position * 100);
    rowsOf.set(position, rows.length);
    while (table.positions.get('acme') !== position)
      try {
        await append(table, parquet, rows, position);
      } catch {
        table = await open().catch(() => table);
      }
    if (position % 10 === 0) await compact(table, parquet, day).catch(() => 'nothing');
    await table.checkpoint().catch(() => {});
  }
  server.fail(() => undefined);
  const last = await open();
  expect(last.positions.get('acme')).toBe(21);
  const sum = [...rowsOf.values()].reduce((all, rows) => all + rows, 0);
  expect(last.files.reduce((all, { rows }) => all + rows, 0)).toBe(sum);
  // The log lists all rows. Check that the files contain them too.
  const localFiles = [];
  for (const file of last.files) localFiles.push(`'${await last.get(file)}'`);
  const [counted] = await parquet.run([
    `select count(*)::varchar as rows, count(distinct interaction_id)::varchar as ids from read_parquet([${localFiles.join(', ')}])`,
  ]);
  expect(counted).toEqual({ rows: String(sum), ids: String(sum) });
  await last.vacuum(new Date(Date.now() + 60_000));
  expect((await open()).files).toEqual(last.files);
});

it('an idle table causes one look at most', async () => {
  const table = await DeltaTable.open(store, 'idle/interactions', lakeSchema('interactions'), testWriter());
  const before = server.requests.length;
  expect(table.compactable(day)).toEqual([]);
  await table.checkpoint();
  expect(server.requests.length).toBe(before);
});
