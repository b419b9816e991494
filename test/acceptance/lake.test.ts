// @module-tag full

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, renameSync, rmSync } from 'node:fs';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, sharedServer, startBuiltServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { MadeLake } from '../support/made-lake.ts';
import { many, newShop } from '../support/new-records.ts';
import { residentMegabytes } from '../support/process-state.ts';
import { queryDatabase } from '../support/query-database.ts';
import { lakeFolder, startLakeProcess, untilInLake } from '../support/running-lake.ts';
import { recordTypes } from './record-types.ts';

/** Tests the lake as an organisation sees it with its key. */

const folder = lakeFolder();
const shop = newShop();
let server: BuiltServer;
let lake: Awaited<ReturnType<typeof startLakeProcess>>;
let key: string;
let api: Api;
let organisationId: string;

beforeAll(async () => {
  server = await startBuiltServer({ LAKE_URL: folder.url });
  key = await server.createKey('acme');
  api = apiOf(server.url, key);
  await api.upload('shops', [shop]);
  await record(3);
  const { body: off } = await api.get('/v1/lake');
  expect(off.notice).toEqual({ code: 'lake_off', message: expect.stringContaining('set-lake') });
  expectTables(off, { state: 'off', version: null, rows: 0, as_of: null });
  await server.run('organisations', 'set-lake', 'acme', 'on');
  const { body: on } = await api.get('/v1/lake');
  expect(on.notice).toBeNull();
  expectTables(on, { state: 'copying', version: null, rows: 0 });
  expectError(await api.get('/v1/lake/interactions/files'), 404);
  lake = await startLakeProcess(server.databaseUrl, folder.url);
  await untilInLake(api, 3);
  await record(2);
  await untilInLake(api, 5);
  organisationId = await idOf('acme');
});
afterAll(async () => {
  await lake?.stop();
  await server?.stop();
  folder.remove();
});

/** Expects one table for each record type and one for interactions, all with these properties. */
function expectTables({ tables }: { tables: readonly { table: string }[] }, each: object): void {
  const names = [...Object.keys(recordTypes), 'interactions'].map((type) => type.replaceAll('-', '_'));
  expect(tables.map(({ table }) => table).toSorted()).toEqual(names.toSorted());
  for (const table of tables) expect(table).toMatchObject(each);
}

async function idOf(slug: string): Promise<string> {
  const [row] = await queryDatabase<{ organisation_id: string }>(
    server.databaseUrl,
    'select organisation_id from organisations where slug = $1',
    [slug],
  );
  return row!.organisation_id;
}

async function record(count: number): Promise<void> {
  const records = many(count, () => ({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: 1_700_000_000,
  }));
  expect((await api.post('/user-interactions/batch', { records })).status).toBe(200);
}

const files = async (query = '') => (await api.get(`/v1/lake/interactions/files${query}`)).body;
const fileOf = (name: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/v1/lake/interactions/files/${name}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer());

it('shows each table with its version, size and time', async () => {
  const { body } = await api.get('/v1/lake');
  const page = await files();
  expect(body.notice).toBeNull();
  expectTables(body, { state: 'following' });
  const { as_of, ...shown } = body.tables.find(({ table }: { table: string }) => table === 'interactions');
  expect(shown).toEqual({
    table: 'interactions',
    state: 'following',
    version: page.version,
    rows: 5,
    bytes: page.files.reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0),
    files: page.files.length,
  });
  expect(Date.now() - Date.parse(as_of)).toBeLessThan(120_000);
});

it('lists the files in pages of one version', async () => {
  const all = await files();
  expect(all.files.length).toBeGreaterThan(1);
  expect(all.next_cursor).toBeNull();
  const listed: unknown[] = [];
  for (let cursor = ''; ; ) {
    const page = await files(`?limit=1${cursor}`);
    expect(page).toMatchObject({ version: all.version, schema: all.schema, table_id: all.table_id });
    listed.push(...page.files);
    if (page.next_cursor === null) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  expect(listed).toEqual(all.files);
  expect(all.partition_columns).toEqual(['received_on']);
  expect(JSON.parse(all.schema).fields.map(({ name }: { name: string }) => name)).toContain('interaction_id');
});

it('a file comes whole or by range, with its checksum in the list', async () => {
  const [{ file_id: name, bytes, sha256, rows, partition }] = (await files()).files;
  expect({ rows, partition }).toEqual({
    rows: expect.any(Number),
    partition: { received_on: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) },
  });
  const whole = await fileOf(name, { 'accept-encoding': 'gzip, br' });
  expect([whole.status, whole.headers.get('etag'), whole.headers.get('content-encoding')]).toEqual([
    200,
    `"${name}"`,
    null,
  ]);
  expect(whole.headers.get('content-length')).toBe(String(bytes));
  const content = await bytesOf(whole);
  expect(createHash('sha256').update(content).digest('hex')).toBe(sha256);
  for (const [range, from, to] of [
    ['bytes=0-3', 0, 4],
    [`bytes=${bytes - 4}-`, bytes - 4, bytes],
    ['bytes=-8', bytes - 8, bytes],
    ['bytes=10-99999999', 10, bytes],
  ] as const) {
    const answer = await fileOf(name, { range, 'if-range': `"${name}"` });
    expect([answer.status, answer.headers.get('content-range')]).toEqual([
      206,
      `bytes ${from}-${to - 1}/${bytes}`,
    ]);
    expect(await bytesOf(answer)).toEqual(content.subarray(from, to));
  }
  const another = await fileOf(name, { range: 'bytes=0-3', 'if-range': '"another"' });
  expect([another.status, await bytesOf(another)]).toEqual([200, content]);
  const head = await fetch(`${server.url}/v1/lake/interactions/files/${name}`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${key}` },
  });
  expect([head.status, head.headers.get('content-length'), head.headers.get('accept-ranges')]).toEqual([
    200,
    String(bytes),
    'bytes',
  ]);
});

it('a thousand ranges and other nonsense are 416, and cost no file', async () => {
  const [{ file_id: name, bytes }] = (await files()).files;
  const thousand = Array.from({ length: 1_000 }, (_, at) => `${at}-${at}`).join(',');
  for (const range of [`bytes=${thousand}`, 'bytes=1-2,3-4', `bytes=${bytes}-`, 'bytes=9-1', 'bytes=x-']) {
    const answer = await fileOf(name, { range });
    expect([answer.status, answer.headers.get('content-range')]).toEqual([416, `bytes */${bytes}`]);
    expect(((await answer.json()) as { code: string }).code).toBe('range_not_satisfiable');
  }
  expect((await fileOf(name, { range: 'rows=1-2' })).status).toBe(200);
});

it('nothing but an id in the log leads to a file', async () => {
  const [{ file_id: name, partition }] = (await files()).files;
  const day = `received_on=${partition.received_on}`;
  for (const wrong of [
    randomUUID(),
    `${name}.parquet`,
    `${day}%2F${name}.parquet`,
    '..%2F..%2Fetc%2Fpasswd',
    `..%2F${organisationId}%2Finteractions%2F${day}%2F${name}`,
    '_delta_log%2F00000000000000000000.json',
    '%2e%2e',
    `${name.toUpperCase()}`,
    '%00',
    'x'.repeat(300),
  ]) {
    const answer = await fileOf(wrong);
    expect([wrong, answer.status]).toEqual([wrong, 404]);
    await answer.body?.cancel();
  }
  for (const table of ['people', '_delta_log', '..', 'interactions%2F_delta_log', 'INTERACTIONS', '%2e%2e'])
    expectError(await api.get(`/v1/lake/${table}/files`), 404);
});

it('needs the permissions that reading the same from the API needs', async () => {
  const reader = apiOf(server.url, await server.createKey('acme', 'data:read'));
  expect((await reader.get('/v1/lake')).status).toBe(200);
  const refused = await reader.get('/v1/lake/interactions/files');
  expectError(refused, 403);
  expect(refused.body.permission).toBe('interactions:read');
  const [{ file_id: name }] = (await files()).files;
  expectError(await reader.get(`/v1/lake/interactions/files/${name}`), 403);
  const other = apiOf(server.url, await server.createKey('acme', 'interactions:read'));
  expectError(await other.get('/v1/lake'), 403);
});

/** Creates an organisation with a handwritten lake. */
async function makeLake(slug: string): Promise<{ key: string; made: MadeLake }> {
  const ownKey = await server.createKey(slug);
  await server.run('organisations', 'set-lake', slug, 'on');
  return { key: ownKey, made: new MadeLake(folder.path, await idOf(slug)) };
}

it('a changed cursor is 400, and one of an older version 410', async () => {
  await lake.stop();
  const { key: ownKey, made } = await makeLake('changing');
  const own = apiOf(server.url, ownKey);
  made.commit([randomBytes(10), randomBytes(10)]);
  const list = (query: string) => own.get(`/v1/lake/interactions/files?${query}`);
  const { next_cursor: cursor } = (await list('limit=1')).body;
  expect((await list(`cursor=${cursor}`)).body).toMatchObject({ files: [{ bytes: 10 }], next_cursor: null });
  for (const wrong of [
    cursor.replace(/^\d+/, '0'),
    cursor.replace(/.$/, cursor.endsWith('A') ? 'B' : 'A'),
    'x',
    `${cursor}.x`,
  ])
    expectError(await list(`cursor=${wrong}`), 400, ['cursor']);
  made.commit([randomBytes(10)]);
  await expect.poll(async () => (await list(`cursor=${cursor}`)).body.code).toBe('lake_version_gone');
  expectError(await list(`cursor=${cursor}`), 410);
});

it('a table that was lost, or replaced by an older copy, is 503 and says what to do', async () => {
  const away = join(folder.path, 'away');
  const log = join(folder.path, organisationId, 'interactions/_delta_log');
  const newest = join(log, readdirSync(log).findLast((name) => name.endsWith('.json')) ?? '');
  const { version } = await files();
  // Merges add versions that the database does not need to know.
  await queryDatabase(
    server.databaseUrl,
    `update lake_progress set positions = positions || '{"interactions": ${version}}' where organisation_id = '${organisationId}'`,
  );
  for (const [lost, has] of [
    [join(log, '..'), 'is missing'],
    [newest, `has version ${version - 1}`],
  ] as const) {
    renameSync(lost, away);
    for (const path of ['/v1/lake', '/v1/lake/interactions/files']) {
      await expect.poll(async () => (await api.get(path)).status).toBe(503);
      const refused = await api.get(path);
      expectError(refused, 503);
      expect(refused.body).toMatchObject({
        code: 'lake_unavailable',
        message: expect.stringContaining(`The table interactions of the lake ${has}, but version ${version}`),
      });
    }
    renameSync(away, lost);
    expect((await files()).version).toBe(version);
  }
});

it('readers that read nothing hold a bounded amount of memory, and others are served', async () => {
  const { key: slowKey, made } = await makeLake('slow');
  const [name = ''] = made.commit([randomBytes(30_000_000)]);
  const path = `${server.url}/v1/lake/interactions/files/${name}`;
  const headers = { authorization: `Bearer ${slowKey}` };
  const openOne = () =>
    new Promise<IncomingMessage>((resolve, reject) => {
      httpGet(path, { headers, agent: false }, resolve).on('error', reject);
    });
  const before = residentMegabytes(server.process.pid, 'VmRSS');
  const open = await Promise.all(many(150, openOne));
  const counts = Map.groupBy(open, ({ statusCode }) => statusCode);
  expect([...counts.keys()].toSorted()).toEqual([200, 429]);
  // At 4 MiB each, no more than 48 responses fit into the memory for responses.
  expect(counts.get(200)?.length).toBeLessThanOrEqual(48);
  expect(residentMegabytes(server.process.pid, 'VmRSS') - before).toBeLessThan(300);
  const [{ file_id: own }] = (await files()).files;
  expect((await fileOf(own)).status).toBe(200);
  for (const one of open) one.destroy();
  const again = async () => {
    const answer = await openOne();
    answer.destroy();
    return answer.statusCode;
  };
  await expect.poll(again).toBe(200);
});

it('a file that has vanished from the store is 404, not a part of a file', async () => {
  const place = join(folder.path, organisationId, 'interactions');
  const [{ file_id: name, partition }] = (await files()).files;
  expect((await fileOf(name)).status).toBe(200);
  const day = join(place, `received_on=${partition.received_on}`);
  const [stored, ...others] = readdirSync(day).filter((file) => file.includes(name));
  expect(others).toEqual([]);
  rmSync(join(day, stored ?? ''));
  const answer = await fileOf(name);
  expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
    404,
    'lake_file_not_found',
  ]);
});

it('without LAKE_URL it is 501, and says what to do', async () => {
  const shared = await sharedServer();
  const answer = await apiOf(shared.url, await shared.createKey('no-lake')).get('/v1/lake');
  expectError(answer, 501);
  expect(answer.body).toMatchObject({
    code: 'lake_not_configured',
    message: expect.stringContaining('LAKE_URL'),
  });
});
