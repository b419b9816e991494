import { beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake, type NewInteraction } from '../src/index.ts';
import { type Fate, startHttpProxy } from './support/http-proxy.ts';

/** This file tests batches that one tab stores for the next page while it is still open. The tabs are clients in one process. */

const hourMs = 3_600_000;

let server: SharedServer;
let key: string;
let shopId: string;
let page: EventTarget & { visibilityState: string };
let storage: Record<string, unknown>;

beforeAll(async () => {
  server = await sharedServer();
  key = await server.createKey('kept-batches');
});

beforeEach(async () => {
  const shop = newShop();
  shopId = shop.shop_id;
  await new Intake({ url: server.url, key }).upload('shops', [shop]).finish();
  page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  storage = Object.create({
    getItem: (name: string) => storage[name] ?? null,
    setItem: (name: string, value: string) => {
      storage[name] = value;
    },
    removeItem: (name: string) => {
      delete storage[name];
    },
  });
  vi.stubGlobal('document', page);
  vi.stubGlobal('localStorage', storage);
  return () => {
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  };
});

const interactions = (count: number, userId = ''): NewInteraction[] =>
  many(count, (at) => ({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shopId,
    user_id: `${at}${userId}`,
    event_timestamp: at + 1,
  }));

/** Starts a proxy that holds the first request until `release` is called. All others pass. */
async function holdFirst() {
  let release = (_: Fate) => {};
  const held = new Promise<Fate>((resolve) => {
    release = resolve;
  });
  const proxy = await startHttpProxy(server.url, (_, count) => (count === 1 ? held : 'pass'));
  onTestFinished(proxy.close);
  return { ...proxy, release };
}

function show(visibilityState: string): void {
  page.visibilityState = visibilityState;
  page.dispatchEvent(new Event('visibilitychange'));
}

const keptCount = () => Object.keys(storage).length;

function setClock(aheadMs: number): void {
  const startedMs = performance.timeOrigin;
  vi.spyOn(Date, 'now').mockImplementation(() => startedMs + performance.now() + aheadMs);
}

async function countOf(): Promise<number> {
  let count = 0;
  const filters = { item_id: shopId, limit: 1_000 };
  for await (const _ of new Intake({ url: server.url, key }).interactions.list(filters)) count++;
  return count;
}

const limited: Fate = {
  status: 429,
  type: 'application/json',
  body: JSON.stringify({ code: 'too_many_requests', message: 'Too many requests. Nothing was stored.' }),
};

it.each([1, 3])('another tab may store what a hidden tab fails to send (%s interactions)', async (count) => {
  const { url, seen, release } = await holdFirst();
  const hidden = new Intake({ url, key, retryForMs: 0 });
  const results = Promise.allSettled(interactions(count).map((one) => hidden.record(one)));
  await expect.poll(() => seen.length).toBe(1);
  show('hidden');
  expect(keptCount()).toBe(1);
  new Intake({ url, key });
  await expect.poll(keptCount).toBe(0);
  release(limited);
  for (const result of await results) {
    const { reason } = result as PromiseRejectedResult;
    expect(reason).toMatchObject({
      code: 'too_many_requests',
      outcome: 'unknown',
      idempotencyKeys: [seen[0]?.headers['idempotency-key']],
    });
    expect(reason.message).not.toContain('Nothing was stored');
  }
  expect(await countOf()).toBe(count);
});

it('what a tab kept but never sent is not sent after a day, because another tab may have sent it', async () => {
  const { url, seen, release } = await holdFirst();
  const frozen = new Intake({ url, key });
  // Two requests, of which the second does not fit into the bytes that outlive the page.
  const results = Promise.allSettled(interactions(300, 'x'.repeat(200)).map((one) => frozen.record(one)));
  await expect.poll(() => seen.length).toBe(1);
  show('hidden');
  expect(keptCount()).toBe(2);
  new Intake({ url, key });
  await expect.poll(keptCount).toBe(0);
  expect(seen).toHaveLength(3);
  setClock(25 * hourMs);
  show('visible');
  release('cut before');
  const outcomes = (await results).map((result) => (result as PromiseRejectedResult).reason.outcome);
  expect(new Set(outcomes)).toEqual(new Set(['unknown']));
  expect(seen).toHaveLength(3);
  expect(await countOf()).toBe(300);
});

it('what a tab kept is not split, because another tab may have sent it as a whole', async () => {
  const { url, seen, release } = await holdFirst();
  const hidden = new Intake({ url, key });
  const results = Promise.allSettled(interactions(4).map((one) => hidden.record(one)));
  await expect.poll(() => seen.length).toBe(1);
  show('hidden');
  new Intake({ url, key });
  await expect.poll(keptCount).toBe(0);
  const body = JSON.stringify({ code: 'body_too_large', message: 'The body is too large.' });
  release({ status: 413, type: 'application/json', body });
  const outcomes = (await results).map((result) => (result as PromiseRejectedResult).reason.outcome);
  expect(outcomes).toEqual(many(4, () => 'unknown'));
  expect(seen).toHaveLength(2);
  expect(await countOf()).toBe(4);
});

it('what was kept while the clock was days ahead is not sent, because its age is unknown', async () => {
  const { url, seen, release } = await holdFirst();
  setClock(72 * hourMs);
  const closed = new Intake({ url, key, retryForMs: 0 });
  const result = closed.record(interactions(1)[0]!).catch(() => {});
  await expect.poll(() => seen.length).toBe(1);
  show('hidden');
  expect(keptCount()).toBe(1);
  setClock(48 * hourMs);
  show('visible');
  const next = new Intake({ url, key });
  expect(keptCount()).toBe(0);
  // What was loaded would be sent before it.
  await next.record(interactions(1)[0]!);
  expect(seen).toHaveLength(2);
  expect(seen[1]?.headers['idempotency-key']).not.toBe(seen[0]?.headers['idempotency-key']);
  release('cut before');
  await result;
  expect(await countOf()).toBe(1);
});
