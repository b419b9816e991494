import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';
import { loseCommit, saysBatch } from '../support/lose-commit.ts';
import {
  badTag,
  danglingTransaction,
  many,
  newShop,
  newTag,
  newTransaction,
} from '../support/new-records.ts';
import { countStored } from '../support/query-database.ts';
import { replayRejections } from '../support/rejections.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/** GET /v1/requests/{request_id} returns the result of an earlier upload. */

let directUrl: string;
let proxy: TcpProxy;
let server: BuiltServer;
let key: string;
let api: Api;
let otherApi: Api;
beforeAll(async () => {
  directUrl = await createTestDatabase();
  proxy = await startTcpProxy(directUrl);
  server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
  key = await server.createKey('acme');
  api = apiOf(server.url, key);
  otherApi = apiOf(server.url, await server.createKey('other'));
});
afterAll(async () => {
  await server.stop();
  await proxy.close();
});

const receiptOf = (requestId: string, of = api) => of.get(`/v1/requests/${requestId}`);

async function expectReceipt(answer: Answer): Promise<Answer['body']> {
  const { status, body } = await receiptOf(answer.body.request_id);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body;
}

describe('the receipt of an upload', () => {
  it('8: exists, and so does the repeated answer, if an unknown field has a name that cannot be stored', async () => {
    const records = [newTag({ 'nul\0': 1, 'half\ud800': 1 })];
    const headers = { 'idempotency-key': randomUUID() };
    const answer = await api.post('/v1/data/tags', { records }, headers);
    const { warnings } = answer.body.batches[0].data;
    expect(warnings.map(({ field }: { field: string }) => field)).toEqual(['nul\ufffd', 'half\ufffd']);
    expect((await expectReceipt(answer)).batches).toEqual(answer.body.batches);
    expect(await api.post('/v1/data/tags', { records }, headers)).toMatchObject({
      status: 200,
      body: answer.body,
    });
  });

  it('has the answer again, with the time, the key, the size and the duration', async () => {
    const records = [newTag({ name: 'Zoë 🎓' }), badTag(), newTag({ colour: 'green' }), null];
    const before = Date.now();
    const answer = await api.upload('tags', records);
    const after = Date.now();
    const receipt = await expectReceipt(answer);
    expect(receipt).toEqual({
      request_id: answer.body.request_id,
      operation: 'upload',
      type: 'tags',
      mode: 'replace',
      run_id: null,
      file: null,
      first_record: null,
      status: 207,
      received: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/),
      key_id: key.split('_')[1],
      idempotency_key: null,
      body_bytes: Buffer.byteLength(JSON.stringify({ records })),
      duration_ms: expect.any(Number),
      batch_count: 1,
      complete: true,
      missing_batches: [],
      counts: answer.body.batches[0].data.counts,
      batches: answer.body.batches,
    });
    expect(Date.parse(receipt.received)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(receipt.received)).toBeLessThanOrEqual(after);
    expect(Number.isInteger(receipt.duration_ms)).toBe(true);
    expect(receipt.duration_ms).toBeGreaterThanOrEqual(0);
    // Both durations are rounded, so allow a difference of 2 ms.
    expect(receipt.duration_ms).toBeLessThanOrEqual(after - before + 2);
  });

  it.each([
    ['all good', 200, [newTag, newTag]],
    ['some bad', 207, [newTag, badTag]],
    ['all bad', 400, [badTag, badTag]],
  ])('of records %s has the status %i and its batch', async (_what, status, makers) => {
    const answer = await api.upload(
      'tags',
      makers.map((make) => make()),
    );
    expect(answer.status).toBe(status);
    const receipt = await expectReceipt(answer);
    expect(receipt).toMatchObject({ status, complete: true, missing_batches: [] });
    expect(receipt.batches).toEqual(answer.body.batches);
  });

  it('of records that all have missing references exists too', async () => {
    const answer = await api.upload('transactions', [danglingTransaction()]);
    expect(answer.status).toBe(400);
    expect(await expectReceipt(answer)).toMatchObject({
      status: 400,
      type: 'transactions',
      batches: answer.body.batches,
    });
  });

  it('of unchanged and stale records has the counts of that time', async () => {
    const tag = newTag({ updated: '2026-01-02T00:00:00Z' });
    const first = await api.upload('tags', [tag]);
    const second = await api.upload('tags', [tag, { ...tag, updated: '2026-01-01T00:00:00Z' }]);
    expect(second.body.batches[0].data).toMatchObject({ counts: { unchanged: 1, stale: 1 }, stale: [1] });
    for (const answer of [first, second])
      expect((await expectReceipt(answer)).batches).toEqual(answer.body.batches);
  });

  it('has every batch, in the order sent, each with its own status and indexes', async () => {
    const records = [
      ...many(1_000, () => newTag()),
      ...many(1_000, () => badTag()),
      ...many(1_000, (at) => (at % 2 ? newTag() : badTag())),
      ...many(1_000, () => newTag()),
      newTag(),
    ];
    const answer = await api.upload('tags', records);
    const receipt = await expectReceipt(answer);
    expect(receipt).toMatchObject({ status: 207, batch_count: 5, complete: true, missing_batches: [] });
    expect(receipt.batches.map(({ batch, status }: Batch) => [batch, status])).toEqual([
      [1, 200],
      [2, 400],
      [3, 207],
      [4, 200],
      [5, 200],
    ]);
    expect(receipt.batches).toEqual(answer.body.batches);
  });

  it('of batches that all failed is 400', async () => {
    const answer = await api.upload(
      'tags',
      many(1_001, () => badTag()),
    );
    const receipt = await expectReceipt(answer);
    expect(receipt).toMatchObject({ status: 400, batch_count: 2, batches: answer.body.batches });
  });

  it('is found by an id in capitals, and names the key that sent it', async () => {
    const narrow = await server.createKey('acme', 'data:write:tags');
    const { body } = await apiOf(server.url, narrow).upload('tags', [newTag()]);
    const { status, body: receipt } = await receiptOf(body.request_id.toUpperCase());
    expect([status, receipt.request_id, receipt.key_id]).toEqual([
      200,
      body.request_id,
      narrow.split('_')[1],
    ]);
  });

  it('of a compressed body has a size, and the answer', async () => {
    const text = JSON.stringify({ records: many(50, () => newTag()) });
    const answer = await api.send('/v1/data/tags', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: gzipSync(text),
    });
    const receipt = await expectReceipt(answer);
    expect([gzipSync(text).length, Buffer.byteLength(text)]).toContain(receipt.body_bytes);
    expect(receipt.batches).toEqual(answer.body.batches);
  });
});

interface Batch {
  readonly batch: number;
  readonly status: number;
}

describe('a request that was refused as a whole', () => {
  it.each([
    ['no JSON', '/v1/data/tags', '{"records":['],
    ['no records', '/v1/data/tags', '{"records":[]}'],
    ['too many records', '/v1/data/tags', `{"records":[${'{},'.repeat(5_000)}{}]}`],
    ['an unknown parameter', '/v1/data/tags?dryrun=true', '{"records":[{}]}'],
    ['an unknown type', '/v1/data/tag', '{"records":[{}]}'],
  ])('for %s has no receipt', async (_what, path, text) => {
    const alone = apiOf(server.url, await server.createKey(`refused-${randomUUID().slice(0, 8)}`));
    const headers = { 'content-type': 'application/json' };
    const refused = await alone.send(path, { method: 'POST', headers, body: text });
    expect([400, 404]).toContain(refused.status);
    expectError(await receiptOf(refused.headers.get('x-request-id')!, alone), 404);
    expect((await alone.get('/v1/requests')).body).toEqual({ requests: [], next_cursor: null });
  });
});

describe('a missing receipt', () => {
  it('is 404, with the same message whether unknown, malformed, foreign or of another request', async () => {
    const { body: theirs } = await otherApi.upload('tags', [newTag()]);
    const { headers } = await api.get('/v1/requests');
    const ids = [
      theirs.request_id,
      randomUUID(),
      headers.get('x-request-id'),
      'x',
      '123',
      `${randomUUID()}0`,
      '%20',
      '%00',
      '__proto__',
      "'%20or%20true--",
      'x'.repeat(500),
      '00000000-0000-0000-0000-000000000000',
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
    ];
    const answers = await Promise.all(ids.map((id) => receiptOf(id)));
    for (const answer of answers) {
      expectError(answer, 404);
      expect(answer.body).toEqual(answers[0]!.body);
    }
    expect((await receiptOf(theirs.request_id, otherApi)).status).toBe(200);
  });
});

describe('reading a receipt', () => {
  it.each(['batches=1', 'request_id=x', 'limit=1', '__proto__=1'])('with ?%s is refused', async (query) => {
    const { body } = await api.upload('tags', [newTag()]);
    expectError(await api.get(`/v1/requests/${body.request_id}?${query}`), 400, [query.split('=')[0]!]);
  });

  it('needs data:read, and nothing more', async () => {
    const { body } = await api.upload('tags', [newTag()]);
    const others = ['data:write', 'data:write:tags', 'interactions:write', 'interactions:read'];
    const without = apiOf(server.url, await server.createKey('acme', ...others));
    expectError(await receiptOf(body.request_id, without), 403);
    expectError(await receiptOf(randomUUID(), without), 403);
    expectError(await without.get('/v1/requests'), 403);
    const reader = apiOf(server.url, await server.createKey('acme', 'data:read'));
    expect((await receiptOf(body.request_id, reader)).status).toBe(200);
    expect((await reader.get('/v1/requests')).status).toBe(200);
    expectError(await receiptOf(body.request_id, apiOf(server.url)), 401);
  });
});

describe('an upload with a batch that was not stored', () => {
  it('has a receipt of the others, in their order, that lists the missing one', async () => {
    const tags = many(3_000, () => newTag());
    loseCommit(proxy, 2, false);
    const answer = await api.upload('tags', tags).finally(() => proxy.unwatch());
    expect(answer.body.batches.map(({ status }: Batch) => status)).toEqual([200, 500, 200]);
    const receipt = await expectReceipt(answer);
    expect(receipt).toMatchObject({ batch_count: 3, complete: false, missing_batches: [2] });
    expect(receipt.batches).toEqual([answer.body.batches[0], answer.body.batches[2]]);
    expect(await countStored(directUrl, 'tags', 'tag_id', idsOf(tags))).toBe(2_000);
  });

  it('though the answer was lost, has it on its receipt if it was stored after all', async () => {
    const tags = many(3_000, (at) => (at === 1_500 ? badTag() : newTag()));
    loseCommit(proxy, 2, true);
    const answer = await api.upload('tags', tags).finally(() => proxy.unwatch());
    expect(answer.body.batches.map(({ status }: Batch) => status)).toEqual([200, 500, 200]);
    const receipt = await expectReceipt(answer);
    expect(receipt).toMatchObject({ batch_count: 3, complete: true, missing_batches: [] });
    expect(receipt.batches[1]).toMatchObject({
      batch: 2,
      status: 207,
      data: { request_id: answer.body.request_id, counts: { received: 1_000, created: 999, failed: 1 } },
    });
    expect(receipt.status).toBe(207);
    expect(await countStored(directUrl, 'tags', 'tag_id', idsOf(tags))).toBe(2_999);
  });

  it('in its first has a receipt of the later ones', async () => {
    const tags = many(2_000, () => newTag());
    loseCommit(proxy, 1, false);
    const answer = await api.upload('tags', tags).finally(() => proxy.unwatch());
    expect(answer.body.batches.map(({ status }: Batch) => status)).toEqual([500, 200]);
    const receipt = await expectReceipt(answer);
    expect(receipt).toMatchObject({ batch_count: 2, complete: false, missing_batches: [1] });
    expect(receipt.batches).toEqual([answer.body.batches[1]]);
  });

  it('in any has no receipt, and stored nothing', async () => {
    const tags = many(10, () => newTag());
    loseCommit(proxy, 1, false);
    const answer = await api.upload('tags', tags).finally(() => proxy.unwatch());
    expect(answer.status).toBe(500);
    expectError(await receiptOf(answer.body.request_id), 404);
    expect(await countStored(directUrl, 'tags', 'tag_id', idsOf(tags))).toBe(0);
  });

  const idsOf = (tags: { tag_id: string }[]) => tags.map(({ tag_id }) => tag_id);
});

describe('the receipt of a replay', () => {
  it('exists as for an upload', async () => {
    const alone = apiOf(server.url, await server.createKey('replays'));
    await alone.upload('tags', [badTag(), badTag()]);
    await alone.upload('transactions', [danglingTransaction()]);
    const one = await replayRejections(alone, { type: 'tags' });
    const receipt = await receiptOf(one.body.request_id, alone);
    expect(receipt).toMatchObject({
      status: 200,
      body: {
        request_id: expect.stringMatching(uuidV7),
        operation: 'replay',
        type: 'tags',
        status: 400,
        complete: true,
        idempotency_key: null,
        batches: one.body.batches,
      },
    });
    const several = await replayRejections(alone);
    expect((await receiptOf(several.body.request_id, alone)).body).toMatchObject({
      operation: 'replay',
      type: null,
      batches: several.body.batches,
    });
  });

  it.each([
    ['was carried out', true],
    ['never arrived', false],
  ])('whose only COMMIT %s is 500, with an unknown outcome', async (_what, arrives) => {
    const alone = apiOf(server.url, await server.createKey(`replays-${arrives}`));
    const shop = newShop();
    const transaction = newTransaction(shop.shop_id);
    await alone.upload('transactions', [transaction]);
    await alone.upload('shops', [shop]);
    loseCommit(proxy, 1, arrives);
    const lost = await replayRejections(alone).finally(() => proxy.unwatch());
    expect(lost.status).toBe(500);
    expect(lost.headers.has('retry-after')).toBe(true);
    expect(JSON.stringify(lost.body)).toMatch(/may or may not/i);
    expect(JSON.stringify(lost.body)).not.toMatch(/interaction/i);
    const next = await replayRejections(alone);
    expect([next.status, next.body.batches.length, next.body.remaining]).toEqual([200, arrives ? 0 : 1, 0]);
    expect((await alone.batch('transactions', [transaction])).counts.unchanged).toBe(1);
  });

  it('in which the database is lost reports which batches are stored, and the next finishes', async () => {
    const alone = apiOf(server.url, await server.createKey('replays-broken-off'));
    const shop = newShop();
    const transactions = many(2_500, () => newTransaction(shop.shop_id));
    await alone.upload('transactions', transactions);
    await alone.upload('shops', [shop]);
    let begun = 0;
    proxy.watch((bytes) => {
      if (saysBatch(bytes) && ++begun === 2) void proxy.refuse();
      return begun < 2;
    });
    const broken = await replayRejections(alone).finally(() => proxy.unwatch());
    await proxy.accept();
    const ids = transactions.map(({ transaction_id }) => transaction_id);
    expect(await countStored(directUrl, 'transactions', 'transaction_id', ids)).toBe(1_000);
    expect(broken.status).toBe(207);
    expect(broken.headers.has('retry-after')).toBe(true);
    expect(broken.body.batches.map(({ status }: Batch) => status).slice(0, 2)).toEqual([200, 500]);
    expect(broken.body.batches[0].data.counts).toMatchObject({ received: 1_000, created: 1_000 });
    const next = await replayRejections(alone);
    expect([next.status, next.body.remaining]).toEqual([200, 0]);
    expect(await countStored(directUrl, 'transactions', 'transaction_id', ids)).toBe(2_500);
  });
});
