import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { overviewOf } from '../support/overview.ts';
import {
  discardRejections,
  listRejections,
  replayRejections,
  summariseRejections,
} from '../support/rejections.ts';

/** Tests interactions whose item or student arrives later (rows 102 and 103 of docs/api-behaviour.md). */

let server: SharedServer;
beforeAll(async () => {
  server = await sharedServer();
});

let organisations = 0;
/** Creates an organisation, and an interaction that refers to a shop that the organisation does not have yet. */
async function late() {
  const api = apiOf(server.url, await server.createKey(`late-${++organisations}`));
  const [shop, student] = [randomUUID(), randomUUID()];
  const interaction = {
    interaction_type: 'PAGE_VIEW',
    student_id: student,
    item_type: 'SHOP',
    item_id: shop,
    event_timestamp: 1_500_000_000_000,
  };
  const arrive = async () => {
    await api.batch('shops', [{ shop_id: shop, name: 'Shop', region: 'GB' }]);
    await api.batch('customers', [{ customer_id: student, user_id: randomUUID(), region: 'GB' }]);
  };
  return { api, interaction, arrive };
}

const record = (api: Api, interaction: object, key?: string) =>
  api.post('/user-interactions', interaction, key === undefined ? {} : { 'idempotency-key': key });
const stored = async (api: Api) =>
  (await api.get('/user-interactions')).body.interactions as Answer['body'][];
const expectMissing = (answer: Answer) => expectError(answer, 400, ['student_id', 'item_id']);
const missing = (field: string) => ({ field, code: 'reference_not_found' });

describe('from either address', () => {
  it('102: is kept, replayed once its references exist, and then has its own time', async () => {
    const { api, interaction, arrive } = await late();
    const single = await record(api, { ...interaction, city: 'Leeds', shoe_size: 43 });
    expectError(single, 400, ['student_id', 'item_id']);
    const batch = await api.post('/user-interactions/batch', {
      records: [{ ...interaction, event_timestamp: '2018-01-02T03:04:05+01:00' }],
    });
    expect(batch.status).toBe(400);

    const [one, two, ...others] = await listRejections(api, { type: 'interactions' });
    expect(others).toEqual([]);
    const errors = [missing('student_id'), missing('item_id')];
    expect(one).toMatchObject({
      request_id: single.headers.get('x-request-id'),
      index: 0,
      id: null,
      errors,
      record: { ...interaction, city: 'Leeds' },
    });
    expect(one!.record).not.toHaveProperty('shoe_size');
    expect(two).toMatchObject({ request_id: batch.body.request_id, errors });
    expect(await summariseRejections(api)).toMatchObject([
      { type: 'interactions', ...missing('item_id'), count: 2 },
      { type: 'interactions', ...missing('student_id'), count: 2 },
    ]);

    const early = await replayRejections(api);
    expect([early.status, early.body.remaining]).toEqual([400, 2]);
    await arrive();
    const replayed = await replayRejections(api, { type: 'interactions' });
    expect(replayed.body).toMatchObject({ type: 'interactions', remaining: 0, next_cursor: null });
    expect(replayed.body.batches[0].data.counts).toMatchObject({ received: 2, created: 2 });
    expect(await listRejections(api)).toEqual([]);
    const times = (await stored(api)).map(({ event_timestamp }) => event_timestamp);
    expect(times).toEqual(['2018-01-02T03:04:05+01:00', 1_500_000_000_000]);
    const again = await replayRejections(api);
    expect(again.body.batches).toEqual([]);
    expect(await stored(api)).toHaveLength(2);
  });

  it('102: comes after the records that it refers to in the same replay', async () => {
    const { api, interaction } = await late();
    const [shop, offer] = [randomUUID(), randomUUID()];
    const offers = [
      { offer_id: offer, shop_id: shop, name: 'Tenth', type: 'percent', value: 10, region: 'GB' },
    ];
    await api.upload('offers', offers);
    await record(api, { ...interaction, student_id: null, item_type: 'OFFER', item_id: offer });
    await api.batch('shops', [{ shop_id: shop, name: 'Shop', region: 'GB' }]);
    const { status, body } = await replayRejections(api);
    const types = body.batches.map(({ data }: Answer['body']) => data.type);
    expect([status, types, body.remaining]).toEqual([200, ['offers', 'interactions'], 0]);
    expect(await stored(api)).toHaveLength(1);
  });

  it('102: is not kept if it is invalid and was sent alone', async () => {
    const { api, interaction } = await late();
    expectError(await record(api, { ...interaction, platform: 'TV' }), 400, ['platform']);
    expect(await listRejections(api)).toEqual([]);
  });

  it('102: is counted as open, and can be discarded', async () => {
    const { api, interaction, arrive } = await late();
    await arrive();
    await api.post('/user-interactions/batch', { records: [interaction] });
    await record(api, { ...interaction, item_id: randomUUID() });
    expect((await overviewOf(api)).interactions).toMatchObject({ open_rejections: 1 });
    expect((await discardRejections(api, { type: 'interactions' })).body).toEqual({
      discarded: 1,
      has_more: false,
    });
    expect((await overviewOf(api)).interactions).toMatchObject({ open_rejections: 0 });
  });

  it('102: many at once are each kept', async () => {
    const { api, interaction, arrive } = await late();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, at) => record(api, { ...interaction, event_timestamp: at + 1 })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(400));
    await arrive();
    const { body } = await replayRejections(api);
    expect(body).toMatchObject({ remaining: 0 });
    const times = (await stored(api)).map(({ event_timestamp }) => event_timestamp);
    expect(new Set(times).size).toBe(100);
  });
});

describe('with an Idempotency-Key', () => {
  it('103: has one rejection however often it fails, and none once it is sent again and stored', async () => {
    const { api, interaction, arrive } = await late();
    for (let time = 0; time < 3; time++) expectMissing(await record(api, interaction, 'key'));
    const [kept, ...others] = await listRejections(api);
    expect(others).toEqual([]);
    await arrive();
    const { status, body, headers } = await record(api, interaction, 'key');
    expect([status, body.interaction_id]).toEqual([201, kept!.id]);
    expect(headers.get('idempotency-replayed')).toBeNull();
    expect(await listRejections(api)).toEqual([]);
    expect((await replayRejections(api)).body.batches).toEqual([]);
    expect(await stored(api)).toHaveLength(1);
  });

  it('103: that was replayed is found by a retry, and not stored twice', async () => {
    const { api, interaction, arrive } = await late();
    expectMissing(await record(api, interaction, 'key'));
    await arrive();
    expect((await replayRejections(api)).status).toBe(200);
    const { status, body, headers } = await record(api, interaction, 'key');
    expect([status, headers.get('idempotency-replayed')]).toEqual([201, 'true']);
    expect(await stored(api)).toEqual([body]);
    expectError(await record(api, { ...interaction, city: 'Leeds' }, 'key'), 422);
  });

  it('103: may be corrected under the same key, because nothing was stored yet', async () => {
    const { api, interaction, arrive } = await late();
    await arrive();
    expectError(await record(api, { ...interaction, item_id: randomUUID() }, 'key'), 400, ['item_id']);
    expect((await record(api, interaction, 'key')).status).toBe(201);
    expect(await listRejections(api)).toEqual([]);
    expect((await record(api, interaction, 'key')).headers.get('idempotency-replayed')).toBe('true');
    expect(await stored(api)).toHaveLength(1);
  });

  it('103: sent again while it is replayed, it is stored once', async () => {
    const { api, interaction, arrive } = await late();
    const keys = Array.from({ length: 20 }, (_, at) => `key ${at}`);
    for (const key of keys) expectMissing(await record(api, interaction, key));
    await arrive();
    const [replayed, ...sent] = await Promise.all([
      replayRejections(api),
      ...keys.map((key) => record(api, interaction, key)),
    ]);
    expect(sent.map(({ status }) => status)).toEqual(keys.map(() => 201));
    expect(replayed!.body.remaining).toBe(0);
    const ids = sent.map(({ body }) => body.interaction_id);
    expect((await stored(api)).map(({ interaction_id }) => interaction_id).toSorted()).toEqual(
      ids.toSorted(),
    );
  });
});
