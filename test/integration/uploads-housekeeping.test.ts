import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { keepHouse, rollUp } from '../../src/ingest/housekeeping.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

let test: TestApp;
let key: string;
let organisationId: string;
beforeAll(async () => {
  test = await createTestApp();
  ({ key, organisationId } = await test.organisation('acme'));
});
afterAll(() => test.close());

const dayMs = 86_400_000;
const headers = () => ({ authorization: `Bearer ${key}` });

async function upload(type: string, records: unknown[]) {
  const answer = await test.app.inject({
    method: 'POST',
    url: `/v1/data/${type}`,
    headers: headers(),
    payload: { records },
  });
  return answer.json();
}

async function overview() {
  const answer = await test.app.inject({ url: '/v1/data', headers: headers() });
  return answer.json();
}

async function rowsOf(query: string): Promise<Record<string, unknown>[]> {
  return (await test.pool.query(query)).rows;
}

const tag = (updated?: string) => ({ tag_id: randomUUID(), name: 'x', ...(updated && { updated }) });

it('differences are rolled up, twice at once too, and the overview says the same before and after', async () => {
  await upload('tags', [tag('2026-01-02T03:04:05.000006Z'), tag()]);
  await upload('tags', [tag('2025-01-01T00:00:00Z'), { tag_id: 'no' }]);
  const before = await overview();
  expect(before.types).toMatchObject([
    { type: 'tags', records: 3, newest_updated: '2026-01-02T03:04:05.000006Z', open_rejections: 1 },
  ]);
  expect(await rowsOf('select from record_count_changes')).toHaveLength(2);
  await Promise.all([rollUp(test.pool), rollUp(test.pool)]);
  expect(await rowsOf('select from record_count_changes')).toEqual([]);
  expect(await rowsOf('select from record_counts')).toHaveLength(1);
  expect(await overview()).toEqual(before);
  await upload('tags', [tag()]);
  await rollUp(test.pool);
  expect((await overview()).types).toMatchObject([{ records: 4, open_rejections: 1 }]);
});

it('partitions are there for last week and four ahead, and keeping house again changes nothing', async () => {
  const partitions = () =>
    rowsOf(`select inhparent::regclass::text as parent, count(*)::int as partitions from pg_inherits
            where inhparent in ('receipts'::regclass, 'receipt_batches'::regclass, 'rejections'::regclass) group by 1 order by 1`);
  const expected = [
    { parent: 'receipt_batches', partitions: 6 },
    { parent: 'receipts', partitions: 6 },
    { parent: 'rejections', partitions: 6 },
  ];
  expect(await partitions()).toEqual(expected);
  await keepHouse(test.pool, 30);
  expect(await partitions()).toEqual(expected);
});

it('a week that ended before the days to keep goes, and what was rejected in it is counted no longer', async () => {
  const old = new Date(Date.now() - 50 * dayMs);
  const monday = new Date(Math.floor((old.getTime() - 4 * dayMs) / (7 * dayMs)) * 7 * dayMs + 4 * dayMs);
  const name = `rejections_${monday.toISOString().slice(0, 10).replaceAll('-', '_')}`;
  await test.pool.query(
    `create table ${name} partition of rejections for values from ('${uuidFloor(monday.getTime())}') to ('${uuidFloor(monday.getTime() + 7 * dayMs)}')`,
  );
  await test.pool.query(
    `insert into rejections values ($1, $2, 'shops', $3, 0, null, '{}', '{name}', '{required}', '{m}')`,
    [organisationId, uuidFloor(old.getTime()), randomUUID()],
  );
  await test.pool.query(
    `insert into record_count_changes (organisation_id, type, records, rejections) values ($1, 'shops', 0, 1)`,
    [organisationId],
  );
  const openShops = async () =>
    (await overview()).types.find((one: { type: string }) => one.type === 'shops');
  expect(await openShops()).toMatchObject({ open_rejections: 1 });
  await keepHouse(test.pool, 60);
  expect(await openShops()).toMatchObject({ open_rejections: 1 });
  await keepHouse(test.pool, 30);
  expect(await openShops()).toMatchObject({ open_rejections: 0 });
  expect(await rowsOf(`select from pg_class where relname = '${name}'`)).toEqual([]);
});

it('a mark that marks nothing goes after a while, and one that does stays', async () => {
  const marks = () => rowsOf('select type from open_rejections order by type');
  await upload('keywords', [{ keyword_id: 'no' }]);
  expect(await marks()).toEqual([{ type: 'keywords' }, { type: 'tags' }]);
  await test.pool.query(`delete from rejections where type = 'keywords'`);
  await keepHouse(test.pool, 30);
  expect(await marks()).toEqual([{ type: 'keywords' }, { type: 'tags' }]);
  await test.pool.query(`update open_rejections set seen_at = now() - interval '2 hours'`);
  await keepHouse(test.pool, 30);
  expect(await marks()).toEqual([{ type: 'tags' }]);
});

it('a key of an upload is forgotten after its day', async () => {
  const sent = {
    method: 'POST' as const,
    url: '/v1/data/tags',
    headers: { ...headers(), 'idempotency-key': 'k' },
  };
  const first = (await test.app.inject({ ...sent, payload: { records: [tag()] } })).json();
  expect((await test.app.inject({ ...sent, payload: { records: [tag()] } })).statusCode).toBe(422);
  await test.pool.query(`update upload_idempotency_keys set claimed_at = now() - interval '25 hours'`);
  const second = await test.app.inject({ ...sent, payload: { records: [tag()] } });
  expect(second.statusCode).toBe(200);
  expect(second.json().request_id).not.toBe(first.request_id);
  await test.pool.query(`update upload_idempotency_keys set claimed_at = now() - interval '25 hours'`);
  await keepHouse(test.pool, 30);
  expect(await rowsOf('select from upload_idempotency_keys')).toEqual([]);
});
