import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake, type Interaction, type NewInteraction } from '../src/index.ts';
import { limits } from '../src/limits.ts';
import { type Fate, type Seen, startHttpProxy } from './support/http-proxy.ts';

/** This file tests which interactions `record()` sends together, and the outcome of each interaction. */

let server: SharedServer;
let key: string;
let intake: Intake;

beforeAll(async () => {
  server = await sharedServer();
  key = await server.createKey('recording');
  intake = new Intake({ url: server.url, key });
});

async function storedShop(by = intake): Promise<string> {
  const shop = newShop();
  await by.upload('shops', [shop]).finish();
  return shop.shop_id;
}

async function throughProxy(fateOf: (seen: Seen, count: number) => Fate | Promise<Fate> = () => 'pass') {
  const proxy = await startHttpProxy(server.url, fateOf);
  onTestFinished(() => proxy.close());
  return { ...proxy, intake: new Intake({ url: proxy.url, key }) };
}

const interactionWith = (item_id: string, fields: Partial<NewInteraction> = {}): NewInteraction => ({
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id,
  event_timestamp: 1_700_000_000,
  ...fields,
});

async function storedOf(item_id: string, from = intake): Promise<Interaction[]> {
  const all: Interaction[] = [];
  for await (const one of from.interactions.list({ item_id, limit: 1000 })) all.push(one);
  return all;
}

const sizeOf = ({ url, body }: Seen) => (url === '/user-interactions' ? 1 : JSON.parse(body).records.length);

it('sends together what waits while a request is pending, and a single one alone', async () => {
  const item_id = await storedShop();
  const { seen, intake } = await throughProxy();
  await intake.record(interactionWith(item_id));
  const first = intake.record(interactionWith(item_id));
  await expect.poll(() => seen.length).toBe(2);
  await Promise.all([first, ...many(1_500, () => intake.record(interactionWith(item_id)))]);
  const sizes = seen.map(sizeOf);
  expect(sizes.slice(0, 2)).toEqual([1, 1]);
  expect(sizes.reduce((sum, size) => sum + size)).toBe(1_502);
  expect(sizes.length).toBeLessThanOrEqual(6);
  expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(seen.length);
  expect(seen.every(({ startedMs }, at) => at === 0 || startedMs >= (seen[at - 1]?.endedMs ?? 0))).toBe(true);
  expect(await storedOf(item_id)).toHaveLength(1_502);
});

it('resolves each promise of a batch to the interaction as the service shows it', async () => {
  const item_id = await storedShop();
  const times = [
    1,
    99_999_999_999,
    100_000_000_000,
    1_700_000_000_123,
    253_402_300_799_999,
    '2019-03-14T09:26:53.1234567+02:00',
    '2019-03-14t09:26z',
    '2019-03-14T09:26',
    '2019-03-14T09:26:53-0130',
    '2019-03-14T09:26:53.5+14',
    '0001-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999999Z',
    '2024-02-29T23:59:59.999999999-23:59',
  ];
  const recorded = await Promise.all(
    times.map((event_timestamp, at) =>
      intake.record(
        interactionWith(at % 2 ? item_id.toUpperCase() : item_id, {
          event_timestamp,
          ...(at % 3 === 0 && { user_id: 'jürgen 😀', platform: 'WEB', recommendation_id: randomUUID() }),
        }),
      ),
    ),
  );
  expect(await storedOf(item_id)).toEqual(recorded.toReversed());
});

it('rejects each promise of a batch with its own error, and the service keeps those as rejections', async () => {
  const item_id = await storedShop();
  const own = new Intake({ url: server.url, key: await server.createKey('rejecting') });
  await own.upload('shops', [newShop({ shop_id: item_id })]).finish();
  const results = await Promise.allSettled([
    own.record(interactionWith(item_id)),
    own.record(interactionWith(randomUUID())),
    own.record(interactionWith(item_id, { platform: 'TV' as 'WEB', event_timestamp: 'yesterday' })),
    own.record(interactionWith(item_id)),
    own.record(7 as unknown as NewInteraction),
    own.record({ big: 1n } as unknown as NewInteraction),
  ]);
  const invalid = {
    code: 'invalid_request',
    status: 400,
    requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
  };
  expect(results).toMatchObject([
    { status: 'fulfilled', value: { item_id } },
    { reason: { ...invalid, details: [{ field: 'item_id', code: 'reference_not_found' }] } },
    {
      reason: {
        ...invalid,
        details: [
          { field: 'platform', code: 'invalid_value' },
          { field: 'event_timestamp', code: 'invalid_format' },
        ],
      },
    },
    { status: 'fulfilled', value: { item_id } },
    { reason: { ...invalid, details: [{ field: 'body', code: 'not_an_object' }] } },
    { reason: expect.any(TypeError) },
  ]);
  const rejections = [];
  for await (const one of own.rejections.list()) rejections.push(one);
  expect(rejections.map(({ type }) => type)).toEqual(many(3, () => 'interactions'));
});

it('sends a batch again under its key until it is answered', async () => {
  const item_id = await storedShop();
  const fates: Fate[] = ['cut after', 'cut within', { status: 503 }];
  const { seen, intake } = await throughProxy((_, count) => fates[count - 1] ?? 'pass');
  const recorded = await Promise.all(many(50, () => intake.record(interactionWith(item_id))));
  expect(seen).toHaveLength(4);
  expect(new Set(seen.map(({ headers, body }) => `${headers['idempotency-key']} ${body}`)).size).toBe(1);
  expect(await storedOf(item_id)).toEqual(recorded.toReversed());
});

it('holds a bounded number of bytes; further interactions wait, and none is refused', async () => {
  const { interactionBytesQueuedMax } = limits;
  limits.interactionBytesQueuedMax = 2_000;
  onTestFinished(() => {
    limits.interactionBytesQueuedMax = interactionBytesQueuedMax;
  });
  const item_id = await storedShop();
  const { seen, intake } = await throughProxy();
  const recorded = await Promise.all(
    many(100, (at) => intake.record(interactionWith(item_id, { event_timestamp: at + 1 }))),
  );
  expect(seen.length).toBeGreaterThan(5);
  expect(Math.max(...seen.map(({ body }) => body.length))).toBeLessThan(2_300);
  expect((await storedOf(item_id)).toReversed()).toEqual(recorded);
});

it('flush waits for what is recorded, close accepts no more, and a signal withdraws what waits', async () => {
  const item_id = await storedShop();
  const { seen, intake } = await throughProxy();
  await intake.flush();
  const settled: string[] = [];
  const aborted = new AbortController();
  const first = intake.record(interactionWith(item_id)).then(() => settled.push('first'));
  await expect.poll(() => seen.length).toBe(1);
  const withdrawn = intake.record(interactionWith(item_id, { city: 'no' }), { signal: aborted.signal });
  intake.record(interactionWith(randomUUID())).catch(() => settled.push('second'));
  intake.record(interactionWith(item_id)).then(() => settled.push('third'));
  aborted.abort(new Error('withdrawn'));
  await expect(withdrawn).rejects.toThrow('withdrawn');
  await intake.flush();
  await first;
  expect(settled.toSorted()).toEqual(['first', 'second', 'third']);
  const last = intake.record(interactionWith(item_id));
  await intake.close();
  expect(await last).toMatchObject({ item_id });
  await expect(intake.record(interactionWith(item_id))).rejects.toMatchObject({ code: 'closed' });
  expect((await storedOf(item_id)).map(({ city }) => city)).toEqual([null, null, null]);
});
