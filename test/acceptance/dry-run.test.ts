import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';
import {
  badTag,
  danglingTransaction,
  many,
  newShop,
  newTag,
  newTransaction,
} from '../support/new-records.ts';
import { everyRowOf } from '../support/query-database.ts';

/** Tests dry runs: POST /v1/data/{type}?dry_run=true checks an upload without storing it. */

let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
});
/** Each test has its own organisation, so that counts do not include data from other tests. */
let organisation: string;
beforeEach(async () => {
  organisation = `acme-${randomUUID().slice(0, 8)}`;
  api = apiOf(server.url, await server.createKey(organisation));
});
afterAll(() => server.stop());

const dryRun = (type: string, records: unknown, headers: Record<string, string> = {}) =>
  api.post(`/v1/data/${type}?dry_run=true`, { records }, headers);

const earlier = '2026-01-01T00:00:00Z';
const later = '2026-01-02T00:00:00Z';

/** Returns the response without the values that differ each time. */
function comparable({ status, headers, body }: Answer): object {
  const { request_id, dry_run, cleared, batches, ...rest } = body;
  expect(request_id).toMatch(uuidV7);
  return {
    status,
    retryAfter: headers.get('retry-after'),
    ...rest,
    batches: batches.map(({ data, ...batch }: { data: Record<string, unknown> }) => {
      expect(data.request_id).toBe(request_id);
      const { request_id: _, batch_id, ...kept } = data;
      expect(batch_id).toMatch(uuidV7);
      return { ...batch, data: kept };
    }),
  };
}

/**
 * Sends two dry runs, checks that they wrote nothing, and then uploads the same records. All responses must agree.
 * Returns the last response.
 */
async function expectForetold(type: string, records: unknown[]): Promise<Answer> {
  const before = await everyRowOf(server.databaseUrl);
  const overview = await api.get('/v1/data');
  const [dry, again] = [await dryRun(type, records), await dryRun(type, records)];
  expect(dry.body.dry_run).toBe(true);
  expect(await everyRowOf(server.databaseUrl)).toEqual(before);
  expect((await api.get('/v1/data')).body).toEqual(overview.body);
  const real = await api.upload(type, records);
  expect(real.body).not.toHaveProperty('dry_run');
  expect(comparable(dry)).toEqual(comparable(real));
  expect(comparable(again)).toEqual(comparable(real));
  return real;
}

const countsOf = ({ body }: Answer) =>
  body.batches.map(({ data }: { data: { counts: Record<string, number> } }) =>
    Object.fromEntries(Object.entries(data.counts).filter(([, count]) => count > 0)),
  );

describe('a dry run predicts the upload', () => {
  it('of good records', async () => {
    const real = await expectForetold('tags', [newTag(), newTag({ updated: later, is_deleted: true })]);
    expect([real.status, countsOf(real)]).toEqual([200, [{ received: 2, created: 2 }]]);
  });

  it('of bad records, and of values that are not records', async () => {
    const real = await expectForetold('tags', [badTag(), {}, null, 7, [], newTag({ updated: 'yesterday' })]);
    expect([real.status, countsOf(real)]).toEqual([400, [{ received: 6, failed: 6 }]]);
  });

  it('of good and bad ones together', async () => {
    const real = await expectForetold('tags', [newTag(), badTag(), newTag()]);
    expect([real.status, countsOf(real)]).toEqual([207, [{ received: 3, created: 2, failed: 1 }]]);
  });

  it('of unknown fields, and of an `updated` in the future', async () => {
    const ahead = new Date(Date.now() + 48 * 3_600_000).toISOString();
    const real = await expectForetold('tags', [newTag({ colour: 'green' }), newTag({ updated: ahead })]);
    expect(real.body.batches[0].data.warnings).toHaveLength(2);
  });

  it('of missing references, and of existing ones', async () => {
    const shop = newShop();
    await api.upload('shops', [shop]);
    const records = [newTransaction(shop.shop_id), danglingTransaction(), newTransaction(shop.shop_id)];
    const real = await expectForetold('transactions', records);
    expect([real.status, countsOf(real)]).toEqual([207, [{ received: 3, created: 2, failed: 1 }]]);
    expect(real.body.batches[0].data.errors).toMatchObject([{ index: 1, code: 'reference_not_found' }]);
  });

  it('of references to a shop that was itself only a dry run', async () => {
    const shop = newShop();
    expect((await dryRun('shops', [shop])).status).toBe(200);
    const real = await expectForetold('transactions', [newTransaction(shop.shop_id)]);
    expect(real.status).toBe(400);
  });

  it('of changed, unchanged and stale records', async () => {
    const tags = many(3, () => newTag({ updated: later }));
    await api.upload('tags', tags);
    const real = await expectForetold('tags', [
      { ...tags[0], name: 'renamed' },
      tags[1],
      { ...tags[2], name: 'renamed', updated: earlier },
      newTag(),
    ]);
    expect(countsOf(real)).toEqual([{ received: 4, created: 1, updated: 1, unchanged: 1, stale: 1 }]);
    expect(real.body.batches[0].data.stale).toEqual([2]);
  });

  it('of an id that is repeated within a batch', async () => {
    const tag = newTag({ updated: later });
    const real = await expectForetold('tags', [
      tag,
      tag,
      { ...tag, name: 7 },
      { ...tag, name: 'renamed' },
      { ...tag, updated: earlier },
      { ...tag, name: 'renamed', updated: null },
      { ...tag, name: 'older', updated: earlier },
    ]);
    expect(countsOf(real)).toEqual([
      { received: 7, created: 1, updated: 3, unchanged: 1, stale: 1, failed: 1 },
    ]);
  });

  it('of an id that is repeated in a later batch', async () => {
    const [created, changed, aged, failing] = many(4, () => newTag({ updated: later }));
    await api.upload('tags', [changed]);
    const fill = (count: number) => many(count, () => newTag());
    const records = [
      created,
      { ...changed, name: 'renamed' },
      aged,
      { ...failing, name: 7 },
      ...fill(996),
      created,
      { ...changed, name: 'renamed' },
      { ...aged, updated: earlier },
      failing,
      { ...created, name: 'renamed' },
      ...fill(995),
      created,
      { ...changed, name: 'renamed' },
      { ...aged, name: 'renamed' },
      failing,
    ];
    const real = await expectForetold('tags', records);
    expect(countsOf(real)).toEqual([
      { received: 1_000, created: 998, updated: 1, failed: 1 },
      { received: 1_000, created: 996, updated: 1, unchanged: 2, stale: 1 },
      { received: 4, updated: 2, unchanged: 2 },
    ]);
  });

  it('of a reference that is repeated in a later batch, once existing and once missing', async () => {
    const shop = newShop();
    await api.upload('shops', [shop]);
    const [good, bad] = [newTransaction(shop.shop_id), danglingTransaction()];
    const records = [
      good,
      bad,
      ...many(998, () => newTransaction(shop.shop_id)),
      { ...good, shop_id: bad.shop_id },
      { ...bad, shop_id: shop.shop_id },
      good,
    ];
    const real = await expectForetold('transactions', records);
    expect(countsOf(real)).toEqual([
      { received: 1_000, created: 999, failed: 1 },
      { received: 3, created: 1, unchanged: 1, failed: 1 },
    ]);
  });

  it('of 5,000 records', async () => {
    const real = await expectForetold(
      'tags',
      many(5_000, (at) => (at % 7 === 0 ? badTag() : newTag())),
    );
    expect(real.status).toBe(207);
    expect(real.body.batches).toHaveLength(5);
  });
});

describe('a dry run', () => {
  it('is marked as such, and has the members of every upload', async () => {
    const { body } = await dryRun('tags', [newTag()]);
    expect(Object.keys(body).toSorted()).toEqual(['batches', 'cleared', 'dry_run', 'request_id', 'type']);
  });

  it('leaves no receipt, no rejection and nothing in the overview', async () => {
    const dry = await dryRun('tags', [newTag(), badTag()]);
    expectError(await api.get(`/v1/requests/${dry.body.request_id}`), 404);
    expect((await api.get('/v1/requests')).body.requests).toEqual([]);
    expect((await api.get('/v1/rejections')).body.rejections).toEqual([]);
    expect((await api.get('/v1/rejections/summary')).body.rejections).toEqual([]);
    expect((await api.get('/v1/data')).body).toEqual({ types: [] });
  });

  it('of a record that was rejected before keeps the rejection', async () => {
    const tag = newTag();
    await api.upload('tags', [{ ...tag, name: 7 }]);
    expect((await dryRun('tags', [tag])).status).toBe(200);
    expect((await api.get('/v1/rejections')).body.rejections).toHaveLength(1);
  });

  it('claims no Idempotency-Key', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const before = await everyRowOf(server.databaseUrl);
    expect((await dryRun('tags', [newTag()], headers)).status).toBe(200);
    expect(await everyRowOf(server.databaseUrl)).toEqual(before);
    const real = await api.post('/v1/data/tags', { records: [newTag()] }, headers);
    expect([real.status, countsOf(real)]).toEqual([200, [{ received: 1, created: 1 }]]);
  });

  it('43: refuses the Idempotency-Key that the upload would refuse, and does not change it', async () => {
    const malformed = { 'idempotency-key': 'x'.repeat(256) };
    expectError(await dryRun('tags', [newTag()], malformed), 400, ['Idempotency-Key']);
    const headers = { 'idempotency-key': randomUUID() };
    const records = [newTag(), badTag()];
    const real = await api.post('/v1/data/tags', { records }, headers);
    const before = await everyRowOf(server.databaseUrl);
    expectError(await dryRun('tags', [newTag()], headers), 422);
    expectError(await dryRun('keywords', records, headers), 422);
    const same = await dryRun('tags', records, headers);
    expect([same.status, countsOf(same)]).toEqual([207, [{ received: 2, unchanged: 1, failed: 1 }]]);
    expect(same.body.request_id).not.toBe(real.body.request_id);
    expect(await everyRowOf(server.databaseUrl)).toEqual(before);
    expect((await api.post('/v1/data/tags', { records }, headers)).body).toEqual(real.body);
  });

  it('43: does not see the keys of another organisation', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    await api.post('/v1/data/tags', { records: [newTag()] }, headers);
    const other = apiOf(server.url, await server.createKey(`${organisation}-other`));
    const { status } = await other.post('/v1/data/tags?dry_run=true', { records: [newTag()] }, headers);
    expect(status).toBe(200);
  });

  it('is refused as a whole if the upload would be', async () => {
    expectError(await dryRun('tags', []), 400, ['records']);
    expectError(
      await dryRun(
        'tags',
        many(5_001, () => newTag()),
      ),
      400,
      ['records'],
    );
    expectError(await dryRun('tags', [newTag()], { 'idempotency-key': 'x'.repeat(256) }), 400, [
      'Idempotency-Key',
    ]);
    expectError(await dryRun('tag', [newTag()]), 404);
    const reader = apiOf(server.url, await server.createKey(organisation, 'data:read', 'data:write:shops'));
    expectError(await reader.post('/v1/data/tags?dry_run=true', { records: [newTag()] }), 403);
  });

  it('with dry_run=false is an upload like any other', async () => {
    const tag = newTag();
    const { status, body } = await api.post('/v1/data/tags?dry_run=false', { records: [tag] });
    expect([status, Object.keys(body)]).toEqual([200, ['request_id', 'type', 'batches']]);
    expect((await api.get(`/v1/requests/${body.request_id}`)).status).toBe(200);
    expect((await api.batch('tags', [tag])).counts.unchanged).toBe(1);
  });

  it('27d: with a misspelt parameter is refused, and writes nothing', async () => {
    const before = await everyRowOf(server.databaseUrl);
    for (const query of [
      'dry_run=1',
      'dry_run=0',
      'dry_run=yes',
      'dry_run=TRUE',
      'dry_run=',
      'dry_run',
      'dry_run=true%20',
      'dry_run=true&dry_run=true',
      'dry_run=true&dry_run=false',
      'dryrun=true',
      'dry-run=true',
      'Dry_run=true',
      'dryRun=true',
      'dry_run=true&records=1',
    ]) {
      const answer = await api.post(`/v1/data/tags?${query}`, { records: [newTag()] });
      const wrong = query.includes('records=') ? 'records' : query.split('=')[0]!;
      expectError(answer, 400, [wrong]);
    }
    expect(await everyRowOf(server.databaseUrl)).toEqual(before);
  });
});
