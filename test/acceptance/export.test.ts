import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { many, newShop, newTag } from '../support/new-records.ts';
import { readLines } from '../support/read-lines.ts';
import { expectReady } from '../support/ready.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { makeRecord, recordTypes, storeReferenced } from './record-types.ts';

/** Tests reading all records of a type in one response, one record per line. export-memory.test.ts tests the memory use. */

const lines = { accept: 'application/x-ndjson' };

let proxy: TcpProxy;
let server: BuiltServer;
let database: pg.Client;
let key: string;
let api: Api;
let otherApi: Api;
beforeAll(async () => {
  const databaseUrl = await createTestDatabase();
  proxy = await startTcpProxy(databaseUrl);
  server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
  database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  key = await server.createKey('acme');
  api = apiOf(server.url, key);
  otherApi = apiOf(server.url, await server.createKey('other'));
});
afterAll(async () => {
  await database.end();
  await server.stop();
  await proxy.close();
});

/** Parses the records in a response. Each line must be complete. */
function recordsOf(body: string): Record<string, unknown>[] {
  expect(body === '' || body.endsWith('\n')).toBe(true);
  return body
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

async function exported(path: string, from = api): Promise<Record<string, unknown>[]> {
  const { status, headers, body } = await from.get(path, lines);
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/x-ndjson');
  expect(headers.get('cache-control')).toBe('no-store');
  return recordsOf(body);
}

describe('the lines', () => {
  it.each(Object.keys(recordTypes))('4c: of %s equal the list', async (type) => {
    const ids = await storeReferenced(api);
    await api.upload(
      type,
      many(20, (at) => makeRecord(type, ids, { is_deleted: at % 4 === 0 })),
    );
    for (const query of ['', 'include_deleted=true']) {
      const { body } = await api.get(`/v1/data/${type}?limit=1000&${query}`);
      expect(body.next_cursor).toBeNull();
      expect(body.records.length).toBeGreaterThan(14);
      expect(await exported(`/v1/data/${type}?${query}`)).toEqual(body.records);
    }
  });

  it('4c: respect the filters, and start after the cursor', async () => {
    const shops = many(2, () => newShop());
    await api.upload('shops', shops);
    const branches = many(40, (at) => makeRecord('branches', { shops: shops[at % 2]!.shop_id }));
    await api.upload('branches', branches);
    const mine = branches
      .filter((branch) => branch.shop_id === shops[0]!.shop_id)
      .map((branch) => branch.branch_id as string)
      .toSorted();
    const path = `/v1/data/branches?shop_id=${shops[0]!.shop_id}`;
    const found = await exported(path);
    expect(found.map(({ branch_id }) => branch_id)).toEqual(mine);
    const rest = await exported(`${path}&cursor=${mine[6]}`);
    expect(rest.map(({ branch_id }) => branch_id)).toEqual(mine.slice(7));
    expect(await exported(`${path}&stored_since=2100-01-01T00:00:00Z`)).toEqual([]);
    expect(await exported(`${path}&stored_since=2001-01-01T00:00:00Z`)).toEqual(found);
  });

  it('4c: of nothing are empty', async () => {
    const nobody = apiOf(server.url, await server.createKey('nobody'));
    for (const type of Object.keys(recordTypes))
      expect(await exported(`/v1/data/${type}`, nobody)).toEqual([]);
  });

  it('19: contain nothing of another organisation', async () => {
    const tag = newTag();
    await otherApi.upload('tags', [tag]);
    expect(await exported('/v1/data/tags', otherApi)).toMatchObject([tag]);
    const mine = await exported('/v1/data/tags');
    expect(mine.map(({ tag_id }) => tag_id)).not.toContain(tag.tag_id);
  });

  it('4c: a line break within a text does not end a line', async () => {
    const name = 'one\ntwo\r\nthree\u2028four \u{1f393} "five" \\';
    const tag = newTag({ name });
    await api.upload('tags', [tag]);
    expect((await exported('/v1/data/tags')).find(({ tag_id }) => tag_id === tag.tag_id)).toMatchObject({
      name,
    });
  });

  it('4c: may be compressed', async () => {
    await api.upload(
      'tags',
      many(500, () => newTag()),
    );
    const { headers, body } = await api.get('/v1/data/tags', { ...lines, 'accept-encoding': 'gzip' });
    expect(headers.get('content-encoding')).toBe('gzip');
    const { headers: plainHeaders, body: plain } = await api.get('/v1/data/tags', {
      ...lines,
      'accept-encoding': 'identity',
    });
    expect(plainHeaders.get('content-encoding')).toBeNull();
    expect(body).toBe(plain);
  });
});

describe('a request for lines', () => {
  it.each([
    'application/x-ndjson',
    'application/json;q=0.5, application/x-ndjson',
    'Application/X-NDJSON, */*',
  ])('4c: with Accept: %s gets them', async (accept) => {
    const { headers } = await api.get('/v1/data/shops', { accept });
    expect(headers.get('content-type')).toBe('application/x-ndjson');
    expect(headers.get('vary')).toMatch(/\baccept\b/);
  });

  it.each([
    '*/*',
    'application/json',
    'application/x-ndjson;q=0',
    'application/json, application/x-ndjson;q=0.5',
    'text/csv',
  ])('4c: with Accept: %s gets a page', async (accept) => {
    const { headers, body } = await api.get('/v1/data/shops', { accept });
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(headers.get('vary')).toMatch(/\baccept\b/);
    expect(Object.keys(body)).toEqual(['records', 'next_cursor']);
  });

  it('4c: and a limit is refused', async () => {
    expectError(await api.get('/v1/data/shops?limit=5', lines), 400, ['limit']);
  });

  it('4c: of one record gets JSON', async () => {
    const shop = newShop();
    await api.upload('shops', [shop]);
    const { status, headers } = await api.get(`/v1/data/shops/${shop.shop_id}`, lines);
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expectError(await api.get(`/v1/data/shops/${randomUUID()}`, lines), 404);
  });

  it('4c: by HEAD gets only the headers', async () => {
    for (const accept of ['application/x-ndjson', 'application/json']) {
      const headers = { authorization: `Bearer ${key}`, accept };
      const response = await fetch(`${server.url}/v1/data/shops`, { method: 'HEAD', headers });
      expect([response.status, await response.text()]).toEqual([200, '']);
      expect(response.headers.get('content-type')).toMatch(accept);
    }
  });
});

describe('an export that fails', () => {
  const total = 300_000;
  beforeAll(async () => {
    // The names do not compress well, so socket buffers cannot hold the whole response in either encoding.
    await database.query(
      `insert into keywords (organisation_id, keyword_id, name, is_deleted)
       select organisation_id, md5('keyword ' || n)::uuid, md5(n || 'a') || md5(n || 'b') || md5(n || 'c') || md5(n || 'd'), false
       from organisations cross join generate_series(1, $1) n where slug = 'acme'`,
      [total],
    );
  });

  it.each(['identity', 'gzip'])(
    '4c: in the middle breaks the connection, so that it does not look complete (%s)',
    async (encoding) => {
      let read = 0;
      let cut = false;
      const reading = readLines(`${server.url}/v1/data/keywords`, key, {
        headers: { 'accept-encoding': encoding },
        onLine: (line) => {
          JSON.parse(line);
          read++;
        },
        onPiece: async () => {
          if (cut || read < 1_000) return;
          cut = true;
          await proxy.refuse();
        },
      });
      await expect(reading).rejects.toThrow();
      expect(cut).toBe(true);
      expect(read).toBeGreaterThanOrEqual(1_000);
      expect(read).toBeLessThan(total);
      await proxy.accept();
      await expect.poll(() => server.log.some((line) => line.includes('an answer broke off'))).toBe(true);
      await expectReady(server.url);
    },
  );

  it('4c: before its first line gets an ordinary answer', async () => {
    expect((await api.get('/v1/data/keywords?limit=1')).status).toBe(200);
    await proxy.refuse();
    expectError(await api.get('/v1/data/keywords', lines), 503);
    await proxy.accept();
    await expectReady(server.url);
  });

  it('4c: because the client disconnects is not read to its end', async () => {
    const scans = async () => {
      await database.query('select pg_stat_clear_snapshot()');
      const { rows } = await database.query(
        `select sum(idx_tup_fetch)::integer as rows from pg_stat_user_tables where relname = 'keywords'`,
      );
      return rows[0].rows as number;
    };
    const before = await scans();
    await new Promise<void>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, ...lines };
      const sent = request(`${server.url}/v1/data/keywords`, { headers }, (response) => {
        response.once('data', () => {
          response.destroy();
          resolve();
        });
      });
      sent.on('error', reject).end();
    });
    // A database connection reports its statistics only after it has been idle for a short time.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect((await scans()) - before).toBeLessThan(total / 2);
  });
});
