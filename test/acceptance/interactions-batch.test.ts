import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { allPages } from '../support/all-pages.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { many } from '../support/new-records.ts';
import { listRejections } from '../support/rejections.ts';

/** Tests batches of interactions (rows 100 and 101 of docs/api-behaviour.md). */

const path = '/user-interactions/batch';
const [shop, tag, student] = Array.from({ length: 3 }, () => randomUUID());
let server: SharedServer;
let api: Api;

beforeAll(async () => {
  server = await sharedServer();
  api = await organisation('acme');
});

/** Creates an organisation with a shop, a tag and a student. */
async function organisation(name: string): Promise<Api> {
  const made = apiOf(server.url, await server.createKey(name));
  await made.batch('shops', [{ shop_id: shop, name: 'Shop', region: 'GB' }]);
  await made.batch('tags', [{ tag_id: tag, name: 'vegan' }]);
  await made.batch('customers', [{ customer_id: student, user_id: randomUUID(), region: 'GB' }]);
  return made;
}

const full = (more: object = {}) => ({
  interaction_type: 'DISCOUNT_CODE',
  user_id: 'visitor-7d1f',
  student_id: student,
  item_type: 'SHOP',
  item_id: shop,
  city: 'Łódź',
  country: 'PL',
  platform: 'IOS',
  event_timestamp: '2019-03-14T09:26:53.123456+02:00',
  source: 'SERVICE',
  recommendation_id: '0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9',
  ...more,
});
const short = (more: object = {}) => ({
  interaction_type: 'SHARE',
  item_type: 'TAG',
  item_id: tag,
  event_timestamp: 1_500_000_000,
  ...more,
});
const send = (records: unknown, to = api, headers = {}) => to.post(path, { records }, headers);
const dataOf = ({ body }: Answer) => body.batches[0].data;
async function stored(from = api): Promise<Record<string, unknown>[]> {
  const pages = await allPages<Record<string, unknown>>(from, '/user-interactions', 'interactions', {
    limit: '1000',
  });
  return pages.flat();
}

describe('a batch', () => {
  it('100: is answered like an upload, and read back as sent, in the order sent', async () => {
    const one = await organisation('answered');
    const answer = await send([full(), short()], one);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ type: 'interactions', batches: [{ batch: 1, status: 200 }] });
    const { counts, message, errors } = dataOf(answer);
    expect(counts).toEqual({ received: 2, created: 2, updated: 0, unchanged: 0, stale: 0, failed: 0 });
    expect({ message, errors }).toEqual({ message: '2 records received: 2 created.', errors: [] });
    const [second, first] = await stored(one);
    const none = { city: null, country: null, platform: null, source: null, recommendation_id: null };
    expect(first).toMatchObject(full());
    expect(second).toMatchObject({ ...short(), ...none, user_id: null, student_id: null });
  });

  it('101: has a receipt with the same answer', async () => {
    const { body } = await send([full(), full({ item_id: randomUUID() })]);
    const receipt = await api.get(`/v1/requests/${body.request_id}`);
    expect(receipt.body).toMatchObject({ operation: 'upload', type: 'interactions', status: 207 });
    expect(receipt.body.batches).toEqual(body.batches);
    const { body: list } = await api.get('/v1/requests?type=interactions&status=207');
    expect(list.requests.map((one: { request_id: string }) => one.request_id)).toContain(body.request_id);
  });

  it('100: returns the id of each stored one, in the order sent, and again for a retry and on the receipt', async () => {
    const one = await organisation('named');
    const records = Array.from({ length: 1_003 }, (_, at) => short({ event_timestamp: at + 1 }));
    records[1] = short({ item_id: randomUUID(), event_timestamp: 2 });
    records[1_001] = short({ item_type: 'PLACE', event_timestamp: 1_002 });
    const key = { 'idempotency-key': 'named' };
    const { body } = await send(records, one, key);
    const ids = body.batches.flatMap((batch: Answer['body']) => batch.data.interaction_ids);
    expect(ids).toHaveLength(1_003);
    expect([ids[1], ids[1_001]]).toEqual([null, null]);
    const times = new Map((await stored(one)).map((each) => [each.interaction_id, each.event_timestamp]));
    expect(times.size).toBe(1_001);
    for (const [at, id] of ids.entries()) if (id !== null) expect(times.get(id), `${at}`).toBe(at + 1);
    expect((await send(records, one, key)).body).toEqual(body);
    const receipt = await one.get(`/v1/requests/${body.request_id}`);
    expect(receipt.body.batches).toEqual(body.batches);
    const rehearsed = await one.post(`${path}?dry_run=true`, { records: [short()] });
    expect(dataOf(rehearsed)).not.toHaveProperty('interaction_ids');
    expect(await one.batch('tags', [{ tag_id: randomUUID(), name: 'a' }])).not.toHaveProperty(
      'interaction_ids',
    );
  });

  it('100: may be sent as lines', async () => {
    const one = await organisation('lines');
    const answer = await one.send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: [full(), short(), short({ platform: 'WEB' })].map((each) => JSON.stringify(each)).join('\n'),
    });
    expect([answer.status, dataOf(answer).counts.created]).toEqual([200, 3]);
    expect(await stored(one)).toHaveLength(3);
  });

  it('100: of 2,500 is three transactions, each in the order sent', async () => {
    const one = await organisation('large');
    const records = Array.from({ length: 2_500 }, (_, at) => short({ event_timestamp: at + 1 }));
    const { status, body } = await send(records, one);
    const created = body.batches.map((batch: Answer['body']) => batch.data.counts.created);
    expect([status, created]).toEqual([200, [1_000, 1_000, 500]]);
    const times = (await stored(one)).map((each) => each.event_timestamp);
    expect(times.toReversed()).toEqual(records.map((each) => each.event_timestamp));
  });

  it('100: may have 5,000 and no more', async () => {
    const one = await organisation('most');
    const records = Array.from({ length: 5_001 }, () => short());
    expectError(await send(records, one), 400, ['records']);
    expect((await stored(one)).length).toBe(0);
    expect((await send(records.slice(1), one)).status).toBe(200);
    expectError(await send([], one), 400, ['records']);
    expectError(await one.post(path, full()), 400, ['records']);
  });

  it('100: stores every valid form of an interaction', async () => {
    const one = await organisation('written');
    const written = [
      full({ event_timestamp: 1_700_000_000_123 }),
      full({ event_timestamp: '2019-03-14t09:26z', city: 'a "quoted" \\ place', student_id: null }),
      { ...full(), item_id: shop!.toUpperCase() },
    ];
    expect(dataOf(await send(written, one)).counts.created).toBe(3);
    const found = (await stored(one)).toReversed();
    expect(found).toMatchObject([written[0], written[1], { ...full() }]);
  });

  it('100: reports each failed one, and stores the others', async () => {
    const one = await organisation('in-part');
    const records = [
      full({ item_id: randomUUID() }),
      full({ student_id: randomUUID(), item_id: randomUUID() }),
      // The id belongs to a shop, but the item type is TAG.
      full({ item_type: 'TAG' }),
      full({ item_type: 'PLACE' }),
      full({ event_timestamp: 'yesterday', source: 'service' }),
      7,
      full(),
    ];
    const answer = await send(records, one);
    expect(answer.status).toBe(207);
    const { counts, errors } = dataOf(answer);
    expect(counts).toMatchObject({ received: 7, created: 1, failed: 6 });
    const told = errors.map(({ index, id, field, code }: Record<string, unknown>) => [
      index,
      id,
      field,
      code,
    ]);
    expect(told).toEqual([
      [0, null, 'item_id', 'reference_not_found'],
      [1, null, 'student_id', 'reference_not_found'],
      [1, null, 'item_id', 'reference_not_found'],
      [2, null, 'item_id', 'reference_not_found'],
      [3, null, 'item_type', 'invalid_value'],
      [4, null, 'event_timestamp', 'invalid_format'],
      [4, null, 'source', 'invalid_value'],
      [5, null, null, 'not_an_object'],
    ]);
    expect(await listRejections(one, { type: 'interactions' })).toHaveLength(6);
    expect(await stored(one)).toHaveLength(1);
  });

  it('100: stores the good ones when several fail in the same way for the first time', async () => {
    const fresh = await organisation('fresh');
    const sent = await send([short(), ...many(2, () => short({ event_timestamp: true }))], fresh);
    expect(sent.status, JSON.stringify(sent.body)).toBe(207);
    expect(dataOf(sent).counts).toMatchObject({ received: 3, created: 1, failed: 2 });
    expect(await listRejections(fresh)).toHaveLength(2);
  });

  it('100: lists unknown fields in its warnings', async () => {
    const { warnings } = dataOf(await send([full({ shoe_size: 43 })]));
    expect(warnings).toMatchObject([{ code: 'unknown_field', field: 'shoe_size', count: 1 }]);
  });

  it('101: needs only the permission to record interactions', async () => {
    const reader = apiOf(server.url, await server.createKey('acme', 'data:write', 'interactions:read'));
    const refused = await send([full()], reader);
    expect([refused.status, refused.body.permission]).toEqual([403, 'interactions:write']);
    const writer = apiOf(server.url, await server.createKey('acme', 'interactions:write'));
    expect((await send([full()], writer)).status).toBe(200);
  });

  it('101: has no other method', async () => {
    const answer = await api.get(path);
    expectError(answer, 405);
    expect(answer.headers.get('allow')).toBe('POST');
  });
});

describe('a dry run', () => {
  it('101: predicts the outcome of each, and stores nothing', async () => {
    const one = await organisation('rehearsed');
    const records = [full(), full({ item_id: randomUUID() }), full({ platform: 'TV' })];
    const rehearsed = await one.post(`${path}?dry_run=true`, { records });
    expect([rehearsed.status, rehearsed.body.dry_run]).toEqual([207, true]);
    expect(await stored(one)).toEqual([]);
    expect(await listRejections(one)).toEqual([]);
    expectError(await one.get(`/v1/requests/${rehearsed.body.request_id}`), 404);
    const sent = await send(records, one);
    const { errors, counts, message } = dataOf(sent);
    expect(dataOf(rehearsed)).toMatchObject({ errors, counts, message });
  });
});

describe('an Idempotency-Key', () => {
  it('101: a retry stores nothing and repeats the answer, whether the records come in JSON or in lines', async () => {
    const one = await organisation('retried');
    const records = [full(), short(), full({ item_id: randomUUID() })];
    const key = { 'idempotency-key': 'history 1' };
    const first = await send(records, one, key);
    const lines = await one.send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson', ...key },
      body: records.map((each) => JSON.stringify(each)).join('\n'),
    });
    for (const again of [await send(records, one, key), lines]) {
      expect([again.status, again.body]).toEqual([207, first.body]);
      expect(again.headers.get('idempotency-replayed')).toBe('true');
    }
    expect(await stored(one)).toHaveLength(2);
    expect(await listRejections(one)).toHaveLength(1);
  });

  it('101: concurrent duplicates store each batch once', async () => {
    const one = await organisation('twins');
    const records = Array.from({ length: 2_000 }, (_, at) => short({ event_timestamp: at + 1 }));
    const key = { 'idempotency-key': 'twins' };
    const answers = await Promise.all(Array.from({ length: 4 }, () => send(records, one, key)));
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(await stored(one)).toHaveLength(2_000);
  });

  it('101: with another body, or used for records, is 422', async () => {
    const key = { 'idempotency-key': randomUUID() };
    expect((await send([full()], api, key)).status).toBe(200);
    expectError(await send([full({ city: 'Leeds' })], api, key), 422);
    const record = { shop_id: randomUUID(), name: 'Shop', region: 'GB' };
    expectError(await api.post('/v1/data/shops', { records: [record] }, key), 422);
  });

  it('100: without one, the same batch sent twice is stored twice', async () => {
    const one = await organisation('careless');
    await send([short()], one);
    await send([short()], one);
    expect(await stored(one)).toHaveLength(2);
  });
});
