// @module-tag full

import { beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake, type IntakeError, type NewInteraction } from '../src/index.ts';
import { type Fate, type Seen, startHttpProxy } from './support/http-proxy.ts';

/** This file tests answers that look like the service's, but are a gateway's, or are to another request. */

let server: SharedServer;
let key: string;
let shopId: string;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  key = await server.createKey(`foreign-${++made}`);
  const shop = newShop();
  shopId = shop.shop_id;
  await new Intake({ url: server.url, key }).upload('shops', [shop]).finish();
});

const interactions = (count: number, user = 'visitor'): NewInteraction[] =>
  many(count, (at) => ({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shopId.toUpperCase(),
    user_id: `${user} ${at}`,
    event_timestamp: at + 1,
  }));

async function through(fateOf: (seen: Seen, count: number) => Fate | Promise<Fate>) {
  const proxy = await startHttpProxy(server.url, fateOf);
  onTestFinished(() => proxy.close());
  return { seen: proxy.seen, intake: new Intake({ url: proxy.url, key, retryForMs: 2_000 }) };
}

async function countOf(): Promise<number> {
  let count = 0;
  for await (const _ of new Intake({ url: server.url, key }).interactions.list({ limit: 1_000 })) count++;
  return count;
}

const type = 'application/json';

/** Sends a request on to the service, and returns its answer. */
async function forward({ url, method, headers, body }: Seen) {
  const { authorization = '', 'idempotency-key': idempotencyKey = '' } = headers;
  const answer = await fetch(server.url + url, {
    method,
    headers: { authorization, 'content-type': type, 'idempotency-key': String(idempotencyKey) },
    body,
  });
  return {
    status: answer.status,
    type,
    body: await answer.text(),
    key: answer.headers.get('idempotency-key'),
  };
}

it.each([
  [403, 'RequestDenied'],
  [408, 'GatewayTimeout'],
])('%i %s of a gateway does not show that the request was not stored', async (status, code) => {
  const { intake } = await through(async (seen): Promise<Fate> => {
    await forward(seen);
    return { status, type, body: JSON.stringify({ code, message: 'The gateway does not like this.' }) };
  });
  const error = await intake.interactions
    .upload(interactions(2))
    .finish()
    .catch((thrown: IntakeError) => thrown);
  expect(error).toMatchObject({ code: 'unexpected_answer', status, outcome: 'unknown' });
  await expect(intake.record(interactions(1)[0]!)).rejects.toMatchObject({ outcome: 'unknown' });
  expect(await countOf()).toBe(3);
});

it.each(['clock_differs', 'database_unsafe', 'out_of_descriptors', 'lake_unavailable'])(
  'nothing is stored if the service answers %s each time',
  async (code) => {
    const { seen, intake } = await through(
      (): Fate => ({ status: 503, type, retryAfter: 1, body: JSON.stringify({ code, message: 'Not now.' }) }),
    );
    await expect(intake.record(interactions(1)[0]!)).rejects.toMatchObject({ code, outcome: 'failed' });
    expect(seen.length).toBeGreaterThan(1);
  },
);

it('the answer to another interaction is not taken for the result of record()', async () => {
  const [other] = interactions(1, 'other');
  const stored = await new Intake({ url: server.url, key }).record(other!);
  let isForeign = true;
  const { seen, intake } = await through((): Fate => {
    if (!isForeign) return 'pass';
    isForeign = false;
    return { status: 201, type, body: JSON.stringify(stored) };
  });
  const full: NewInteraction = {
    ...interactions(1)[0]!,
    user_id: crypto.randomUUID().toUpperCase(),
    recommendation_id: crypto.randomUUID().toUpperCase(),
    city: 'Leeds',
    event_timestamp: '2026-03-14T10:26:53.5+01:00',
  };
  const recorded = await intake.record(full);
  expect(seen).toHaveLength(2);
  expect(recorded.interaction_id).not.toBe(stored.interaction_id);
  expect(recorded).toMatchObject({ city: 'Leeds', item_id: shopId, event_timestamp: full.event_timestamp });
  expect(await countOf()).toBe(2);
});

it.each([
  ['as the service sends them', true],
  ['without the header, as older versions of the service send them', false],
])('two answers of the same form, %s, are swapped', async (_what, hasKey) => {
  const waiting: { seen: Seen; answer: (fate: Fate) => void }[] = [];
  let isSwapped = false;
  const { seen, intake } = await through(async (one): Promise<Fate> => {
    if (isSwapped) return 'pass';
    const fate = new Promise<Fate>((answer) => waiting.push({ seen: one, answer }));
    const [first, second] = waiting;
    if (first && second) {
      isSwapped = true;
      for (const [from, to] of [[first, second] as const, [second, first] as const]) {
        const { key: echoed, ...answer } = await forward(from.seen);
        expect(echoed).toBe(from.seen.headers['idempotency-key']);
        to.answer(hasKey ? { ...answer, headers: { 'idempotency-key': echoed ?? '' } } : answer);
      }
    }
    return fate;
  });
  const upload = (user: string) => intake.interactions.upload(interactions(3, user)).finish();
  const results = await Promise.all([upload('one'), upload('two')]);
  expect(results.map(({ counts }) => counts.created)).toEqual([3, 3]);
  // A swapped answer is refused, and the request is sent again with its key.
  expect(seen).toHaveLength(hasKey ? 4 : 2);
  expect(await countOf()).toBe(6);
});

it('records that may be stored do not count as failed', async () => {
  const counts = { received: 3, created: 1, updated: 0, unchanged: 0, stale: 0, failed: 2 };
  const errors = [
    { index: 0, id: null, field: null, code: 'outcome_unknown', message: 'may be stored' },
    { index: 2, id: null, field: 'item_id', code: 'reference_not_found', message: 'does not exist' },
  ];
  const data = { counts, errors, warnings: [], error: 'problem' };
  const { intake } = await through(
    (): Fate => ({
      status: 207,
      type,
      body: JSON.stringify({ request_id: crypto.randomUUID(), batches: [{ batch: 1, status: 207, data }] }),
    }),
  );
  const result = await intake.interactions.upload(interactions(3)).finish();
  expect(result.counts).toEqual({ ...counts, failed: 1, unknown: 1 });
  expect(result.failed.map(({ index }) => index)).toEqual([0, 2]);
});
