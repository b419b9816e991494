import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { allPages } from '../support/all-pages.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { badTag, many, newShop, newTag } from '../support/new-records.ts';

/** GET /v1/requests lists an organisation's receipts, newest first. */

interface Receipt {
  readonly request_id: string;
  readonly received: string;
  readonly type: string;
  readonly status: number;
  readonly idempotency_key: string | null;
  readonly counts: Record<string, number>;
}

let server: SharedServer;
let api: Api;
let otherApi: Api;
/** The expected receipts, in upload order. */
const receipts: Receipt[] = [];
const idempotencyKey = `nightly & co+${randomUUID()}`;

beforeAll(async () => {
  server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme'));
  otherApi = apiOf(server.url, await server.createKey('other'));
  for (let at = 0; at < 24; at++) await upload(at);
  await otherApi.upload('tags', [newTag()]);
});

/** Varies the uploads so that every filter matches some of them, but not all. */
async function upload(at: number): Promise<void> {
  const [type, good] = at % 3 ? ['tags', newTag()] : ['shops', newShop()];
  const records = [[good], [good, { ...good, name: 7 }], [{ ...good, name: 7 }]][at % 4 === 3 ? 0 : at % 4]!;
  const headers: Record<string, string> = at === 7 ? { 'idempotency-key': idempotencyKey } : {};
  const { body } = await api.post(`/v1/data/${type}`, { records }, headers);
  const receipt = await api.get(`/v1/requests/${body.request_id}`);
  expect(receipt.status).toBe(200);
  const { batches, ...rest } = receipt.body;
  receipts.push({ ...rest, counts: batches[0].data.counts });
  // Receipt times have a precision of one millisecond, so a larger gap makes the order certain.
  await sleep(2);
}

const list = (query: Record<string, string> = {}, of = api) =>
  of.get(`/v1/requests?${new URLSearchParams(query)}`);
const idsOf = ({ status, body }: Answer): string[] => {
  expect({ status, body }).toMatchObject({ status: 200 });
  return body.requests.map(({ request_id }: Receipt) => request_id);
};
const newestFirst = (matches: (one: Receipt) => boolean = () => true) =>
  receipts
    .filter(matches)
    .toReversed()
    .map(({ request_id }) => request_id);

describe('the list', () => {
  it('returns the receipts, newest first, with sums instead of the batches', async () => {
    const { status, body } = await list({ limit: '100' });
    expect(status).toBe(200);
    expect(body).toEqual({ requests: receipts.toReversed(), next_cursor: null });
  });

  it('sums the counts of all batches', async () => {
    const alone = apiOf(server.url, await server.createKey('sums'));
    const tag = newTag({ updated: '2026-01-02T00:00:00Z' });
    const older = { ...tag, updated: '2026-01-01T00:00:00Z' };
    const records = [
      tag,
      ...many(999, () => newTag()),
      ...many(600, () => badTag()),
      tag,
      older,
      { ...tag, name: 'x' },
    ];
    const answer = await alone.upload('tags', records);
    const { body } = await list({}, alone);
    expect(body.requests).toHaveLength(1);
    expect(body.requests[0]).toMatchObject({
      request_id: answer.body.request_id,
      batch_count: 2,
      counts: { received: 1_603, created: 1_000, updated: 1, unchanged: 1, stale: 1, failed: 600 },
    });
  });

  it('returns nothing of another organisation', async () => {
    expect(idsOf(await list({}, otherApi))).toHaveLength(1);
    expect(idsOf(await list({ idempotency_key: idempotencyKey }, otherApi))).toEqual([]);
  });

  it('of an organisation without uploads is empty', async () => {
    const nobody = apiOf(server.url, await server.createKey('nobody'));
    expect((await list({}, nobody)).body).toEqual({ requests: [], next_cursor: null });
  });
});

describe('filters', () => {
  it.each([
    ['type', 'tags', (one: Receipt) => one.type === 'tags'],
    ['type', 'shops', (one: Receipt) => one.type === 'shops'],
    ['status', '200', (one: Receipt) => one.status === 200],
    ['status', '207', (one: Receipt) => one.status === 207],
    ['status', '400', (one: Receipt) => one.status === 400],
    ['idempotency_key', idempotencyKey, (one: Receipt) => one.idempotency_key === idempotencyKey],
  ])('%s=%s finds its matches, and nothing else', async (name, value, matches) => {
    const expected = newestFirst(matches);
    expect(expected.length).toBeGreaterThan(0);
    expect(expected.length).toBeLessThan(receipts.length);
    expect(idsOf(await list({ [name]: value, limit: '100' }))).toEqual(expected);
  });

  it.each([
    ['type', 'courses'],
    ['idempotency_key', 'never used'],
  ])('%s=%s without matches finds nothing', async (name, value) => {
    expect((await list({ [name]: value })).body).toEqual({ requests: [], next_cursor: null });
  });

  it('from includes its instant, and to does not', async () => {
    const [from, to] = [receipts[5]!.received, receipts[15]!.received];
    const limit = '100';
    expect(idsOf(await list({ from, limit }))).toEqual(newestFirst((one) => one.received >= from));
    expect(idsOf(await list({ to, limit }))).toEqual(newestFirst((one) => one.received < to));
    expect(idsOf(await list({ from, to, limit }))).toEqual(
      newestFirst((one) => one.received >= from && one.received < to),
    );
    expect(idsOf(await list({ from: to, to: from }))).toEqual([]);
  });

  it('from and to reach as far back and ahead as there are years', async () => {
    const query = { from: '0001-01-01T00:00:00Z', to: '9999-12-31T23:59:59Z', limit: '100' };
    expect(idsOf(await list(query))).toEqual(newestFirst());
    expect(idsOf(await list({ to: '1969-12-31T00:00:00Z' }))).toEqual([]);
    expect(idsOf(await list({ from: '9999-12-31T23:59:59Z' }))).toEqual([]);
  });

  it('combine', async () => {
    const from = receipts[3]!.received;
    const matches = (one: Receipt) => one.type === 'tags' && one.status === 200 && one.received >= from;
    expect(newestFirst(matches).length).toBeGreaterThan(0);
    expect(idsOf(await list({ type: 'tags', status: '200', from }))).toEqual(newestFirst(matches));
    const otherType = receipts[7]!.type === 'tags' ? 'shops' : 'tags';
    expect(idsOf(await list({ idempotency_key: idempotencyKey, type: otherType }))).toEqual([]);
  });
});

describe('pages', () => {
  it.each([1, 5, 8, 23, 24, 100])('of %i reach the end without gaps or repeats', async (limit) => {
    const pages = await allPages<Receipt>(api, '/v1/requests', 'requests', { limit: String(limit) });
    expect(pages.flat().map(({ request_id }) => request_id)).toEqual(newestFirst());
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit);
    expect(pages.length).toBeLessThanOrEqual(Math.ceil(24 / limit) + 1);
  });

  it('respect the filters', async () => {
    for (const [name, value] of [
      ['type', 'tags'],
      ['status', '200'],
    ] as const) {
      const pages = await allPages<Receipt>(api, '/v1/requests', 'requests', { limit: '2', [name]: value });
      expect(pages.flat().map(({ request_id }) => request_id)).toEqual(
        newestFirst((one) => String(one[name]) === value),
      );
    }
  });

  it('have 20 by default', async () => {
    const { body } = await list();
    expect(body.requests).toHaveLength(20);
    expect(idsOf(await list({ cursor: body.next_cursor }))).toEqual(newestFirst().slice(20));
  });

  it('are not affected by concurrent uploads', async () => {
    const { body } = await list({ limit: '10' });
    await upload(receipts.length);
    const { body: next } = await list({ limit: '10', cursor: body.next_cursor });
    expect(next.requests.map(({ request_id }: Receipt) => request_id)).toEqual(newestFirst().slice(11, 21));
  });
});

describe('parameters', () => {
  const wrong: [string, string][] = [
    ...['0', '101', '-1', '1.5', '+5', '5x', '1e1', '99999999999999999999', ''].map(
      (value): [string, string] => ['limit', value],
    ),
    ...['x', '', `${randomUUID()}0`].map((value): [string, string] => ['cursor', value]),
    ...['from', 'to'].flatMap((name): [string, string][] =>
      ['', 'yesterday', '2026-01-01', '1700000000', '2026-02-30T00:00:00Z'].map((value) => [name, value]),
    ),
    ...['tag', 'Tags', 'shop_tags', '__proto__', ''].map((value): [string, string] => ['type', value]),
    ...['ok', '2xx', '200.0', ''].map((value): [string, string] => ['status', value]),
    ['idempotency_key', ''],
    ['idempotency_key', 'k'.repeat(256)],
    ['idempotency_key', '\u0000'],
    ['idempotencykey', 'x'],
    ['Type', 'tags'],
    ['statuses', '200'],
    ['operation', 'upload'],
    ['__proto__', '1'],
  ];
  it.each(wrong)('27d: %s=%j is refused, by name', async (name, value) => {
    expectError(await list({ [name]: value }), 400, [name]);
  });

  it('27d: one given twice is refused', async () => {
    expectError(await api.get('/v1/requests?limit=5&limit=5'), 400, ['limit']);
  });
});
