// @module-tag pooler

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { loseCommit, saysBatch } from '../support/lose-commit.ts';
import { badTag, many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import { countStored, everyRowOf, queryDatabase } from '../support/query-database.ts';
import { type Link, startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { untilStored } from '../support/until-stored.ts';

/** Tests retrying an upload with its Idempotency-Key (row 26a of docs/api-behaviour.md). */

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

interface Batch {
  readonly status: number;
  readonly data: { readonly counts: Record<string, number> };
}
const batchesOf = ({ body }: Answer): Batch[] => body.batches;
const statusesOf = (answer: Answer) => batchesOf(answer).map(({ status }) => status);
const createdOf = (answer: Answer) => batchesOf(answer).map(({ data }) => data.counts.created);

const upload = (records: unknown[], idempotencyKey: string, to = api, type = 'tags') =>
  to.post(`/v1/data/${type}`, { records }, { 'idempotency-key': idempotencyKey });

function uploadText(text: string, idempotencyKey: string): Promise<Answer> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': idempotencyKey };
  return api.send('/v1/data/tags', { method: 'POST', headers, body: text });
}

const stored = (tags: { tag_id: string }[]) =>
  countStored(
    directUrl,
    'tags',
    'tag_id',
    tags.map(({ tag_id }) => tag_id),
  );

async function receiptsOf(idempotencyKey: string, of = api): Promise<{ request_id: string }[]> {
  const query = new URLSearchParams({ idempotency_key: idempotencyKey });
  const { status, body } = await of.get(`/v1/requests?${query}`);
  expect(status).toBe(200);
  return body.requests;
}

function expectSame(again: Answer, first: Answer) {
  expect({ status: again.status, body: again.body }).toEqual({ status: first.status, body: first.body });
}

describe('the same upload with the same key', () => {
  it('26a: gets the first answer again, under the first request id', async () => {
    const tag = newTag({ updated: '2026-01-02T00:00:00Z' });
    const records = [
      tag,
      { ...tag, name: 'renamed' },
      { ...tag, updated: '2026-01-01T00:00:00Z' },
      badTag(),
      newTag({ colour: 'green' }),
      null,
    ];
    const idempotencyKey = randomUUID();
    const first = await upload(records, idempotencyKey);
    expect(first.status).toBe(207);
    expect(batchesOf(first)[0]!.data.counts).toMatchObject({ created: 2, updated: 1, stale: 1, failed: 2 });
    for (const _ of [1, 2]) expectSame(await upload(records, idempotencyKey), first);
  });

  it('26a: writes nothing at all', async () => {
    const records = [newTag(), badTag(), ...many(1_500, () => newTag())];
    const idempotencyKey = randomUUID();
    const first = await upload(records, idempotencyKey);
    const before = await everyRowOf(directUrl);
    expectSame(await upload(records, idempotencyKey), first);
    expect(await everyRowOf(directUrl)).toEqual(before);
  });

  it('26a: does not undo later changes', async () => {
    const [tag, idempotencyKey] = [newTag(), randomUUID()];
    const first = await upload([tag], idempotencyKey);
    await api.upload('tags', [{ ...tag, name: 'renamed' }]);
    expectSame(await upload([tag], idempotencyKey), first);
    expect(await api.batch('tags', [{ ...tag, name: 'renamed' }])).toMatchObject({
      counts: { unchanged: 1 },
    });
  });

  it('26a: has the answer of every batch again', async () => {
    const records = [...many(1_000, () => badTag()), ...many(1_000, () => newTag()), newTag(), badTag()];
    const idempotencyKey = randomUUID();
    const first = await upload(records, idempotencyKey);
    expect(statusesOf(first)).toEqual([400, 200, 207]);
    expectSame(await upload(records, idempotencyKey), first);
  });

  it('26a: fails again if it failed, though by now it would be stored', async () => {
    const [shop, idempotencyKey] = [newShop(), randomUUID()];
    const records = [newTransaction(shop.shop_id)];
    const first = await upload(records, idempotencyKey, api, 'transactions');
    expect(first.status).toBe(400);
    await api.upload('shops', [shop]);
    expectSame(await upload(records, idempotencyKey, api, 'transactions'), first);
    expect((await upload(records, randomUUID(), api, 'transactions')).status).toBe(200);
  });

  it('26a: has one receipt, which is found by the key', async () => {
    const idempotencyKey = `nightly export / ${randomUUID()}`;
    const records = [newTag()];
    const first = await upload(records, idempotencyKey);
    await upload(records, idempotencyKey);
    expect(await receiptsOf(idempotencyKey)).toMatchObject([
      {
        request_id: first.body.request_id,
        idempotency_key: idempotencyKey,
        counts: { received: 1, created: 1 },
      },
    ]);
  });

  it.each([
    ['good records', () => [newTag({ updated: '2026-01-02T00:00:00Z' }), newTag({ colour: 'green' })]],
    ['bad records', () => [newTag(), badTag({ updated: 'yesterday', colour: 'green' })]],
  ])('26a: of %s may have other spaces, and the fields in another order', async (_what, make) => {
    const [records, idempotencyKey] = [make(), randomUUID()];
    const first = await upload(records, idempotencyKey);
    expect(createdOf(first)[0]).toBeGreaterThan(0);
    expectSame(await uploadText(JSON.stringify({ records }, null, 4), idempotencyKey), first);
    const reversed = records.map((record) => Object.fromEntries(Object.entries(record).toReversed()));
    expectSame(await upload(reversed, idempotencyKey), first);
  });

  it('26a: without a key is another request each time', async () => {
    const records = [newTag()];
    const answers = [await api.upload('tags', records), await api.upload('tags', records)];
    expect(answers.map(createdOf)).toEqual([[1], [0]]);
    expect(answers[0]!.body.request_id).not.toBe(answers[1]!.body.request_id);
  });
});

describe('another upload with the same key', () => {
  it('26b: that differs only in an unknown field is the same upload', async () => {
    const [tag, idempotencyKey] = [newTag(), randomUUID()];
    const first = await upload([tag], idempotencyKey);
    expectSame(await upload([{ ...tag, colour: 'green' }], idempotencyKey), first);
  });

  it.each([
    ['a value', (tag: object) => [{ ...tag, name: 'other' }]],
    ['a record more', (tag: object) => [tag, newTag()]],
    ['another record', () => [newTag()]],
    ['a bad record', () => [badTag()]],
  ])('26a: with %s is 422, and writes nothing', async (_what, change) => {
    const [tag, idempotencyKey] = [newTag(), randomUUID()];
    const first = await upload([tag], idempotencyKey);
    const before = await everyRowOf(directUrl);
    expectError(await upload(change(tag), idempotencyKey), 422);
    expect(await everyRowOf(directUrl)).toEqual(before);
    expectSame(await upload([tag], idempotencyKey), first);
  });

  it('26a: with the same body for another type is 422, and writes nothing', async () => {
    const [id, idempotencyKey] = [randomUUID(), randomUUID()];
    // Tags and keywords have the same columns, so with the same id only the type differs.
    const record = { tag_id: id, keyword_id: id, name: 'vegan' };
    const first = await upload([record], idempotencyKey);
    expect(first.status).toBe(200);
    const before = await everyRowOf(directUrl);
    expectError(await upload([record], idempotencyKey, api, 'keywords'), 422);
    expect(await everyRowOf(directUrl)).toEqual(before);
  });

  it('26a: at the same time: one is stored and the other is 422', async () => {
    const idempotencyKey = randomUUID();
    const bodies = [[newTag()], [newTag()]];
    const answers = await Promise.all(bodies.map((records) => upload(records, idempotencyKey)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 422]);
    expect(await stored(bodies.flat())).toBe(1);
    const storedAt = answers.findIndex(({ status }) => status === 200);
    expect(await stored(bodies[storedAt]!)).toBe(1);
  });

  it('26a: of another organisation is independent', async () => {
    const idempotencyKey = randomUUID();
    const answers = [
      await upload([newTag()], idempotencyKey),
      await upload([newTag()], idempotencyKey, otherApi),
    ];
    expect(answers.map(createdOf)).toEqual([[1], [1]]);
    expect(await receiptsOf(idempotencyKey)).toHaveLength(1);
    expect(await receiptsOf(idempotencyKey, otherApi)).toHaveLength(1);
  });

  it('26a: is accepted once the key has expired, after 24 hours and no sooner', async () => {
    const idempotencyKey = randomUUID();
    const age = (hours: number) =>
      queryDatabase(
        directUrl,
        `update upload_idempotency_keys set claimed_at = now() - make_interval(hours => $1) where idempotency_key = $2`,
        [hours, idempotencyKey],
      );
    const first = await upload([newTag()], idempotencyKey);
    await age(23);
    expectError(await upload([newTag()], idempotencyKey), 422);
    await age(25);
    const next = await upload([newTag()], idempotencyKey);
    expect([next.status, createdOf(next)]).toEqual([200, [1]]);
    const ids = (await receiptsOf(idempotencyKey)).map(({ request_id }) => request_id);
    expect(ids).toEqual([next.body.request_id, first.body.request_id]);
  });
});

describe('keys', () => {
  it.each([1, 255])('26a: one of %i characters is accepted', async (length) => {
    const [tag, idempotencyKey] = [newTag(), 'k'.repeat(length)];
    const first = await upload([tag], idempotencyKey);
    expect(first.status).toBe(200);
    expectSame(await upload([tag], idempotencyKey), first);
  });

  it.each([0, 256])('26a: one of %i characters is refused, and nothing is stored', async (length) => {
    const tag = newTag();
    expectError(await upload([tag], 'k'.repeat(length)), 400, ['Idempotency-Key']);
    expect(await stored([tag])).toBe(0);
  });

  it('26a: that differ only in case are two', async () => {
    const [tag, idempotencyKey] = [newTag(), `key-${randomUUID()}`];
    const answers = [await upload([tag], idempotencyKey), await upload([tag], idempotencyKey.toUpperCase())];
    expect(answers.map(createdOf)).toEqual([[1], [0]]);
  });

  it('26a: of a request that was refused as a whole may be used again', async () => {
    const [tag, idempotencyKey] = [newTag(), randomUUID()];
    expectError(await upload([], idempotencyKey), 400, ['records']);
    expect((await uploadText('{"records":[', idempotencyKey)).status).toBe(400);
    const tooMany = many(5_001, () => ({}));
    expectError(await upload(tooMany, idempotencyKey), 400, ['records']);
    expect(createdOf(await upload([tag], idempotencyKey))).toEqual([1]);
  });

  it('26a: of an interaction is another one', async () => {
    const [tag, idempotencyKey] = [newTag(), randomUUID()];
    expect((await upload([tag], idempotencyKey)).status).toBe(200);
    const interaction = {
      interaction_type: 'SHARE',
      item_type: 'TAG',
      item_id: tag.tag_id,
      event_timestamp: 1_700_000_000,
    };
    const headers = { 'idempotency-key': idempotencyKey };
    expect((await api.post('/user-interactions', interaction, headers)).status).toBe(201);
  });
});

describe('Idempotency-Replayed', () => {
  const replayed = ({ headers }: Answer) => headers.get('idempotency-replayed');

  it('26a: is set if the whole answer is the stored one, whatever its status, and otherwise not', async () => {
    for (const records of [[newTag()], [newTag(), badTag()], [badTag()]]) {
      const idempotencyKey = randomUUID();
      expect(replayed(await upload(records, idempotencyKey))).toBeNull();
      for (const _ of [1, 2]) expect(replayed(await upload(records, idempotencyKey))).toBe('true');
      expect(replayed(await upload(records, randomUUID()))).toBeNull();
      expect(replayed(await api.upload('tags', records))).toBeNull();
      const dry = { 'idempotency-key': idempotencyKey };
      expect(replayed(await api.post('/v1/data/tags?dry_run=true', { records }, dry))).toBeNull();
      expect(replayed(await upload([newTag()], idempotencyKey))).toBeNull();
    }
  });
});

it('26a: every answer repeats the Idempotency-Key of its request, and only that', async () => {
  const sent = { 'idempotency-key': `nightly 7: ${randomUUID()}` };
  const interaction = { interaction_type: 'SHARE' };
  const answers = [
    ...[await api.post('/v1/data/tags', { records: [newTag()] }, sent)],
    ...[await api.post('/v1/data/tags', { records: [newTag()] }, sent)],
    ...[await api.post('/v1/data/tags?dry_run=true', { records: [badTag()] }, sent)],
    ...[await api.post('/v1/data/tags', {}, sent), await api.post('/user-interactions', interaction, sent)],
    ...[await apiOf(server.url, 'wrong').post('/v1/data/tags', { records: [newTag()] }, sent)],
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 422, 422, 400, 400, 401]);
  for (const { headers } of answers) expect(headers.get('idempotency-key')).toBe(sent['idempotency-key']);
  expect((await api.upload('tags', [newTag()])).headers.get('idempotency-key')).toBeNull();
  // Node would send these characters in UTF-8 or in Latin 1.
  const other = { 'idempotency-key': `\u00e9 ${randomUUID()}` };
  const answer = await api.post('/v1/data/tags', { records: [newTag()] }, other);
  expect(answer.headers.get('idempotency-key')).toBeNull();
});

describe('twins', () => {
  it('26a: 30 concurrent requests to two processes, with 5 batches each: one answer, and each record is stored once', async () => {
    const idempotencyKey = randomUUID();
    const records = many(5_000, (at) => (at % 500 === 0 ? badTag() : newTag()));
    const other = await startBuiltServer({ DATABASE_URL: directUrl });
    const apis = [api, apiOf(other.url, key)];
    const answers = await Promise.all(
      many(30, (at) => untilStored(() => upload(records, idempotencyKey, apis[at % 2]))),
    ).finally(() => other.stop());
    for (const answer of answers) expectSame(answer, answers[0]!);
    expect(statusesOf(answers[0]!)).toEqual(Array(5).fill(207));
    expect(createdOf(answers[0]!)).toEqual(Array(5).fill(998));
    expect(await stored(records)).toBe(4_990);
    expect(await receiptsOf(idempotencyKey)).toHaveLength(1);
    const rejections = await queryDatabase(directUrl, 'select from rejections where request_id = $1', [
      answers[0]!.body.request_id,
    ]);
    expect(rejections).toHaveLength(10);
    expectSame(await upload(records, idempotencyKey), answers[0]!);
  });
});

it('26a: a body nested too deeply to be compared is refused or accepted, and never an error of the service', async () => {
  const nested = (levels: number) =>
    `{"records":[{"tag_id":"${randomUUID()}","name":"x","note":${'['.repeat(levels)}${']'.repeat(levels)}}]}`;
  expect((await uploadText(nested(10), randomUUID())).status).toBe(200);
  for (const levels of [1_000, 100_000])
    expect([200, 400]).toContain((await uploadText(nested(levels), randomUUID())).status);
});

describe('an interrupted upload', () => {
  const tags = () => many(5_000, () => newTag());

  it.each([
    ['never arrived', false],
    ['was carried out', true],
  ])(
    '26a: by a COMMIT that %s: the retry finishes it, each batch with its first answer',
    async (_what, arrives) => {
      const [records, idempotencyKey] = [tags(), randomUUID()];
      loseCommit(proxy, 3, arrives);
      const first = await upload(records, idempotencyKey).finally(() => proxy.unwatch());
      expect(first.status).toBe(207);
      const broken = statusesOf(first).indexOf(500);
      expect(broken).toBeGreaterThanOrEqual(0);
      const again = await upload(records, idempotencyKey);
      expect(again.body.request_id).toBe(first.body.request_id);
      expect([again.status, createdOf(again)]).toEqual([200, Array(5).fill(1_000)]);
      for (const [at, batch] of batchesOf(first).entries())
        if (batch.status === 200) expect(again.body.batches[at]).toEqual(batch);
      expect(await stored(records)).toBe(5_000);
      // If part of the upload still had to be stored, the response as a whole is not marked as replayed.
      expect(again.headers.get('idempotency-replayed')).toBe(arrives ? 'true' : null);
      const third = await upload(records, idempotencyKey);
      expectSame(third, again);
      expect(third.headers.get('idempotency-replayed')).toBe('true');
      const receipt = await api.get(`/v1/requests/${first.body.request_id}`);
      expect(receipt.body).toMatchObject({
        complete: true,
        missing_batches: [],
        batches: again.body.batches,
      });
    },
  );

  it('26a: by the end of the process: the retry at the next one finishes it', async () => {
    const [records, idempotencyKey] = [tags(), randomUUID()];
    const doomed = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
    let seen = 0;
    const inBatch = new Set<Link>();
    proxy.watch((bytes, link) => {
      if (saysBatch(bytes)) inBatch.add(link);
      // Maintenance commits too, while it numbers changes.
      const isBatch = bytes.includes('commit\0') && inBatch.delete(link);
      if (isBatch && ++seen === 3) doomed.process.kill('SIGKILL');
      return seen < 3;
    });
    const lost = upload(records, idempotencyKey, apiOf(doomed.url, key));
    await expect(lost).rejects.toThrow();
    proxy.unwatch();
    const [receipt] = await receiptsOf(idempotencyKey);
    expect(receipt).toMatchObject({ batch_count: 5, complete: false, missing_batches: [3, 4, 5] });
    expect(await stored(records)).toBe(2_000);
    const again = await upload(records, idempotencyKey);
    expect(again.body.request_id).toBe(receipt!.request_id);
    expect([again.status, createdOf(again)]).toEqual([200, Array(5).fill(1_000)]);
    expect(await stored(records)).toBe(5_000);
    expect(await receiptsOf(idempotencyKey)).toMatchObject([{ complete: true, missing_batches: [] }]);
  });
});
