import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { allPages } from '../support/all-pages.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { uuidV7 } from '../support/expect-error.ts';
import { badTag, danglingTransaction, many, newShop, newTag } from '../support/new-records.ts';
import {
  discardRejections,
  listRejections,
  type Rejection,
  replayRejections,
  summariseRejections,
} from '../support/rejections.ts';

/** Failed records are kept until they are corrected. Tests the contents of rejections, their list and their summary. */

let server: SharedServer;
let api: Api;
let organisation: string;
beforeAll(async () => {
  server = await sharedServer();
});
beforeEach(async () => {
  organisation = `acme-${randomUUID().slice(0, 8)}`;
  api = apiOf(server.url, await server.createKey(organisation));
});

const listed = (query: Record<string, string> = {}, of = api) => listRejections(of, query);
const summary = (query: Record<string, string> = {}, of = api) => summariseRejections(of, query);

describe('a failed record', () => {
  it('is kept, with its index, its errors and its content', async () => {
    const bad = { ...badTag(), updated: 'yesterday', colour: 'green' };
    const before = Date.now();
    const { body } = await api.upload('tags', [newTag(), bad, newTag()]);
    const [rejection, ...others] = await listed();
    expect(others).toEqual([]);
    expect(rejection).toEqual({
      rejection_id: expect.stringMatching(uuidV7),
      type: 'tags',
      request_id: body.request_id,
      index: 1,
      id: bad.tag_id,
      rejected: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      errors: body.batches[0].data.errors.map(({ field, code, message }: Rejection['errors'][0]) => ({
        field,
        code,
        message,
      })),
      mode: 'replace',
      record: bad,
    });
    expect(rejection!.errors.map(({ field }) => field)).toEqual(['name', 'updated']);
    expect(Date.parse(rejection!.rejected)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(rejection!.rejected)).toBeLessThanOrEqual(Date.now());
  });

  it('is kept if only its reference is missing', async () => {
    const transaction = danglingTransaction({ discount_name: 'Zoë’s "week" \\o/ 🎓' });
    const { body } = await api.upload('transactions', [transaction]);
    expect(await listed()).toMatchObject([
      {
        type: 'transactions',
        request_id: body.request_id,
        index: 0,
        id: transaction.transaction_id,
        errors: [{ field: 'shop_id', code: 'reference_not_found' }],
        record: transaction,
      },
    ]);
  });

  it('is kept in every batch, by its index in the request, oldest first', async () => {
    const records = many(2_500, (at) => (at % 100 === 7 ? badTag() : newTag()));
    const { body } = await api.upload('tags', records);
    const expected = many(25, (at) => at * 100 + 7);
    const found = await listed();
    expect(found.map(({ index }) => index)).toEqual(expected);
    expect(found.map(({ record }) => record)).toEqual(expected.map((index) => records[index]));
    expect(new Set(found.map(({ request_id }) => request_id))).toEqual(new Set([body.request_id]));
  });

  it('is not kept if the whole request was refused, nor if it was only stale', async () => {
    const tag = newTag({ updated: '2026-01-02T00:00:00Z' });
    await api.upload('tags', [tag]);
    await api.upload('tags', [{ ...tag, updated: '2026-01-01T00:00:00Z' }]);
    await api.upload(
      'tags',
      many(5_001, () => badTag()),
    );
    await api.post('/v1/data/tags?dryrun=true', { records: [badTag()] });
    expect(await listed()).toEqual([]);
  });

  it('has no id if it was not a UUID', async () => {
    const id = randomUUID();
    await api.upload(
      'tags',
      [id.toUpperCase(), 'x', 7, null, `{${id}}`].map((tag_id) => ({ tag_id, name: 7 })),
    );
    expect((await listed()).map((rejection) => rejection.id)).toEqual([id, null, null, null, null]);
  });
});

describe('unusual records', () => {
  it('that are not objects are kept unchanged', async () => {
    const records = [7, null, [1, { a: null }], 'text', true, -0.5, '', []];
    const answer = await api.upload('tags', records);
    expect(answer.status).toBe(400);
    const found = await listed();
    expect(found.map(({ index, id, record }) => [index, id, record])).toEqual(
      records.map((record, index) => [index, null, record]),
    );
    for (const { errors } of found) expect(errors).toMatchObject([{ field: null, code: 'not_an_object' }]);
  });

  it.each([
    ['a NUL in a value', { name: 'a\u0000b' }],
    ['a NUL in an unknown name', { 'a\u0000b': 1, name: 7 }],
    ['a NUL in the id', { tag_id: '\u0000' }],
    ['half a pair', { name: 'x\ud800' }],
    ['the other half', { name: '\udc00x', '\ud800': '\udfff' }],
    ['control characters and separators', { name: 7, note: '\u0001\u001f\u007f\u2028\u2029\ufffe' }],
    ['quotes, braces and backslashes', { name: 7, note: `'"\\{}[],\\u0000 $1 $$` }],
    ['emoji', { name: 7, '🎓': '👩‍🎓' }],
  ])('with %s are kept as they were sent', async (_what, fields) => {
    const record = { ...newTag(), ...fields };
    expect((await api.upload('tags', [record])).status).toBe(400);
    const [rejection] = await listed();
    expect(rejection!.record).toEqual(record);
    expect(await summary()).toMatchObject([{ type: 'tags', count: 1 }]);
    const replayed = await replayRejections(api);
    expect(replayed.status).toBe(400);
    expect((await listed())[0]!.record).toEqual(record);
  });

  it('with names and numbers that JavaScript treats specially are kept', async () => {
    const text = `{"records":[{"tag_id":"${randomUUID()}","name":7,"__proto__":{"a":1},"constructor":1}]}`;
    const headers = { 'content-type': 'application/json' };
    expect((await api.send('/v1/data/tags', { method: 'POST', headers, body: text })).status).toBe(400);
    expect(JSON.stringify((await listed())[0]!.record)).toBe(JSON.stringify(JSON.parse(text).records[0]));
  });

  it.each([100, 1_000, 30_000])('nested %i levels deep fail and are listed', async (levels) => {
    const deep = `{"tag_id":"${randomUUID()}","name":7,"note":${'['.repeat(levels)}${']'.repeat(levels)}}`;
    const headers = { 'content-type': 'application/json' };
    const body = `{"records":[${deep},${JSON.stringify(badTag())}]}`;
    expect((await api.send('/v1/data/tags', { method: 'POST', headers, body })).status).toBe(400);
    const reasons = async () => (await listed()).map(({ index, errors }) => [index, errors[0]!.code]);
    const expected = [
      [0, 'nested_too_deeply'],
      [1, 'wrong_type'],
    ];
    expect(await reasons()).toEqual(expected);
    expect(await summary()).toMatchObject([{ count: 1 }, { count: 1 }]);
    expect((await replayRejections(api)).status).toBe(400);
    expect(await reasons()).toEqual(expected);
  });

  it.each([
    ['one just small enough is kept', 64 * 1024, true],
    ['one too large is not, but its rejection is', 64 * 1024 + 1, false],
    ['nor is one of a megabyte', 1_000_000, false],
  ])('that are large, %s', async (_what, bytes, kept) => {
    const empty = { ...badTag(), note: '' };
    const record = { ...empty, note: 'x'.repeat(bytes - JSON.stringify(empty).length) };
    expect((await api.upload('tags', [record, badTag()])).status).toBe(400);
    const [rejection, other] = await listed();
    const error = kept ? { field: 'name', code: 'wrong_type' } : { field: null, code: 'record_too_large' };
    expect(rejection).toMatchObject({ index: 0, id: record.tag_id, errors: [error] });
    expect(rejection!.record).toEqual(kept ? record : null);
    expect(other!.record).not.toBeNull();
  });

  it('a request full of the largest records that are kept is answered, and kept', async () => {
    const records = many(400, () => ({ ...badTag(), note: 'x'.repeat(64_000) }));
    expect((await api.upload('tags', records)).status).toBe(400);
    const found = (await allPages<Rejection>(api, '/v1/rejections', 'rejections', { limit: '50' })).flat();
    expect(found.map(({ record }) => record)).toEqual(records);
  });
});

describe('the list', () => {
  const requests: { request_id: string }[] = [];
  beforeEach(async () => {
    requests.length = 0;
    for (const [type, records] of [
      ['tags', [badTag(), badTag({ tag_id: 'x' }), newTag({ name: undefined })]],
      ['transactions', [danglingTransaction(), danglingTransaction({ region: 'GBR', amount: 0 })]],
      ['shops', [newShop({ region: 7 }), newShop({ name: 7 })]],
    ] as const) {
      requests.push((await api.upload(type, records)).body);
      await sleep(2);
    }
  });
  const hasError = (field: string | undefined, code: string | undefined) => (one: Rejection) =>
    one.errors.some(
      (error) =>
        (field === undefined || error.field === field) && (code === undefined || error.code === code),
    );

  it('returns all, oldest first', async () => {
    const found = await listed();
    expect(found.map(({ type, index }) => [type, index])).toEqual([
      ['tags', 0],
      ['tags', 1],
      ['tags', 2],
      ['transactions', 0],
      ['transactions', 1],
      ['shops', 0],
      ['shops', 1],
    ]);
  });

  it.each([
    ['type', 'tags', 3, (one: Rejection) => one.type === 'tags'],
    ['type', 'shops', 2, (one: Rejection) => one.type === 'shops'],
    ['code', 'wrong_type', 4, hasError(undefined, 'wrong_type')],
    ['code', 'required', 1, hasError(undefined, 'required')],
    ['code', 'reference_not_found', 1, hasError(undefined, 'reference_not_found')],
    ['field', 'name', 4, hasError('name', undefined)],
    ['field', 'region', 2, hasError('region', undefined)],
    ['field', 'tag_id', 1, hasError('tag_id', undefined)],
  ])('%s=%s finds its matches, and nothing else', async (name, value, count, matches) => {
    const all = await listed();
    const expected = all.filter(matches);
    expect(expected).toHaveLength(count);
    expect(await listed({ [name]: value })).toEqual(expected);
  });

  it('request_id finds the rejections of the request, and filters combine', async () => {
    const all = await listed();
    for (const { request_id } of requests)
      expect(await listed({ request_id })).toEqual(all.filter((one) => one.request_id === request_id));
    const query = { type: 'tags', field: 'name', code: 'wrong_type', request_id: requests[0]!.request_id };
    expect((await listed(query)).map(({ index }) => index)).toEqual([0, 1]);
    expect(await listed({ ...query, request_id: requests[1]!.request_id })).toEqual([]);
    expect(await listed({ type: 'courses' })).toEqual([]);
    expect(await listed({ request_id: randomUUID() })).toEqual([]);
  });

  it.each([1, 2, 6, 7, 1_000])('in pages of %i reaches the end without gaps or repeats', async (limit) => {
    const all = await listed();
    const pages = await allPages(api, '/v1/rejections', 'rejections', { limit: String(limit) });
    expect(pages.flat()).toEqual(all);
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit);
    const named = await allPages(api, '/v1/rejections', 'rejections', {
      limit: String(limit),
      field: 'name',
    });
    expect(named.flat()).toEqual(all.filter(hasError('name', undefined)));
  });

  it('has 100 by default', async () => {
    await api.upload(
      'keywords',
      many(101, () => ({})),
    );
    const { body } = await api.get('/v1/rejections?type=keywords');
    expect(body.rejections).toHaveLength(100);
    const rest = await listed({ type: 'keywords', cursor: body.next_cursor });
    expect(rest.map(({ index }) => index)).toEqual([100]);
  });

  it('of another organisation is separate', async () => {
    const other = apiOf(server.url, await server.createKey(`other-${organisation}`));
    expect(await listed({}, other)).toEqual([]);
    expect(await listed({ request_id: requests[0]!.request_id }, other)).toEqual([]);
    expect(await summary({}, other)).toEqual([]);
    expect((await discardRejections(other)).body).toEqual({ discarded: 0, has_more: false });
    const replayed = await replayRejections(other);
    expect(replayed).toMatchObject({ status: 200, body: { batches: [], remaining: 0 } });
    expect(await listed()).toHaveLength(7);
  });
});

describe('the summary', () => {
  it('counts each type, code and field, the most frequent first, with times and an example', async () => {
    const first = await api.upload(
      'tags',
      many(3, () => badTag()),
    );
    await sleep(5);
    const second = await api.upload('transactions', [
      ...many(5, () => danglingTransaction()),
      danglingTransaction({ region: 'GBR', amount: 'x' }),
    ]);
    await sleep(5);
    const third = await api.upload('tags', [badTag(), 7]);
    const all = await listed();
    const found = await summary();
    const groups = found.map(({ type, code, field, count }: Record<string, unknown>) => [
      type,
      code,
      field,
      count,
    ]);
    expect(groups.slice(0, 2)).toEqual([
      ['transactions', 'reference_not_found', 'shop_id', 5],
      ['tags', 'wrong_type', 'name', 4],
    ]);
    expect(groups.slice(2).toSorted()).toEqual(
      [
        ['tags', 'not_an_object', null, 1],
        ['transactions', 'invalid_format', 'region', 1],
        ['transactions', 'wrong_type', 'amount', 1],
      ].toSorted(),
    );
    const tags = found[1];
    const wrongType = all.filter(({ type, errors }) => type === 'tags' && errors[0]!.code === 'wrong_type');
    expect([tags.first_seen, tags.last_seen]).toEqual([wrongType[0]!.rejected, wrongType.at(-1)!.rejected]);
    expect(wrongType.at(-1)!.request_id).toBe(third.body.request_id);
    for (const { type, code, field, example } of found) {
      const rejection = all.find(({ rejection_id }) => rejection_id === example.rejection_id)!;
      const error = rejection.errors.find((one) => one.code === code && one.field === field)!;
      expect(example).toEqual({
        rejection_id: rejection.rejection_id,
        request_id: rejection.request_id,
        index: rejection.index,
        id: rejection.id,
        message: error.message,
      });
      expect(rejection.type).toBe(type);
    }
    expect((await summary({ type: 'tags' })).map(({ count }: { count: number }) => count)).toEqual([4, 1]);
    expect(await summary({ request_id: first.body.request_id })).toMatchObject([{ count: 3 }]);
    expect(await summary({ code: 'reference_not_found' })).toMatchObject([{ count: 5 }]);
    expect((await summary({ request_id: second.body.request_id }))[0]).toEqual(found[0]);
  });

  it('is empty if nothing failed', async () => {
    await api.upload('tags', [newTag()]);
    expect(await summary()).toEqual([]);
  });
});
