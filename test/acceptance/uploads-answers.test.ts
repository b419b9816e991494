import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';

/** Tests the response to an upload (rules 16 to 28 of docs/api-behaviour.md). Each test is named after its rule. */

let server: SharedServer;
let api: Api;
let otherApi: Api;
const shop = { shop_id: randomUUID(), name: 'Bakery', region: 'GB' };
const student = { customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' };
beforeAll(async () => {
  server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme'));
  otherApi = apiOf(server.url, await server.createKey('other'));
  await api.batch('shops', [shop]);
  await api.batch('customers', [student]);
});

const newTag = (fields: object = {}) => ({ tag_id: randomUUID(), name: 'vegan', ...fields });
const badTag = () => newTag({ name: 7 });
const many = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at));

interface Batch {
  readonly batch: number;
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests check the shape, which a type would only assume.
  readonly data: any;
}
const batchesOf = ({ body }: Answer): Batch[] => body.batches;

describe('types that the specification leaves open', () => {
  const favourite = (fields: object = {}) => ({
    student_favourite_id: randomUUID(),
    student_id: student.customer_id,
    shop_id: shop.shop_id,
    ...fields,
  });

  it('16: a student is a customer of the same organisation', async () => {
    expect(await api.batch('student-favourites', [favourite()])).toMatchObject({ http: 200 });
    const unknown = await api.batch('student-favourites', [favourite({ student_id: randomUUID() })]);
    expect(unknown).toMatchObject({
      http: 400,
      errors: [{ field: 'student_id', code: 'reference_not_found' }],
    });
  });

  it('17: tags have an id, a name and the fields of every record, and no region', async () => {
    const tag = newTag({
      created: '2026-01-01T00:00:00Z',
      updated: '2026-01-01T00:00:00Z',
      is_deleted: false,
    });
    const done = await api.batch('tags', [{ ...tag, region: 'GB' }]);
    expect(done).toMatchObject({ http: 200, warnings: [{ field: 'region', count: 1 }] });
    expect((await api.batch('tags', [{}])).errors).toMatchObject([{ field: 'tag_id' }, { field: 'name' }]);
  });

  it('18: student favourites link a student and a shop', async () => {
    const { errors } = await api.batch('student-favourites', [{}]);
    expect(errors.map(({ field }: { field: string }) => field)).toEqual([
      'student_favourite_id',
      'student_id',
      'shop_id',
    ]);
    const unknown = await api.batch('student-favourites', [favourite({ shop_id: randomUUID() })]);
    expect(unknown).toMatchObject({ http: 400, errors: [{ field: 'shop_id', code: 'reference_not_found' }] });
  });
});

describe('organisations', () => {
  it('19: a record of another organisation gets the same answer as a missing one', async () => {
    const branch = (shop_id: string) => ({ branch_id: randomUUID(), shop_id, name: 'Branch', region: 'GB' });
    const [foreign, absent] = [branch(shop.shop_id), branch(randomUUID())];
    const answers = await Promise.all(
      [foreign, absent].map((record) => otherApi.batch('branches', [record])),
    );
    const [ofForeign, ofAbsent] = answers.map(({ request_id, batch_id, errors, ...rest }) => ({
      ...rest,
      errors: errors.map(({ id, ...error }: { id: string }) => error),
    }));
    expect(ofForeign).toEqual(ofAbsent);
    expect(ofForeign).toMatchObject({
      http: 400,
      errors: [{ field: 'shop_id', code: 'reference_not_found' }],
    });
  });

  it('19: the same id in two organisations is two records', async () => {
    const tag = newTag();
    const renamed = { ...tag, name: 'theirs' };
    expect((await api.batch('tags', [tag])).counts.created).toBe(1);
    expect((await otherApi.batch('tags', [renamed])).counts.created).toBe(1);
    expect((await api.batch('tags', [tag])).counts.unchanged).toBe(1);
    expect((await otherApi.batch('tags', [renamed])).counts.unchanged).toBe(1);
  });
});

describe('batches', () => {
  it('20: records are stored in batches of 1,000, in the order sent', async () => {
    const answer = await api.upload(
      'tags',
      many(2_500, () => newTag()),
    );
    expect(answer.status).toBe(200);
    expect(batchesOf(answer).map(({ batch, data }) => [batch, data.counts.received])).toEqual([
      [1, 1_000],
      [2, 1_000],
      [3, 500],
    ]);
  });

  it('20: a batch that fails does not affect the others', async () => {
    const good = many(1_000, () => newTag());
    const answer = await api.upload('tags', [...many(1_000, badTag), ...good]);
    expect(batchesOf(answer).map(({ status }) => status)).toEqual([400, 200]);
    expect((await api.batch('tags', good)).counts.unchanged).toBe(1_000);
  });

  it('21: 5,000 records are 5 batches; 5,001 are refused and nothing is stored', async () => {
    const tags = many(5_001, () => newTag());
    expectError(await api.upload('tags', tags), 400, ['records']);
    const answer = await api.upload('tags', tags.slice(1));
    expect(batchesOf(answer).map(({ data }) => data.counts.created)).toEqual(Array(5).fill(1_000));
  });

  it.each([
    ['records missing', {}],
    ['records null', { records: null }],
    ['records an object', { records: { 0: newTag() } }],
    ['records a string', { records: '[]' }],
    ['records empty', { records: [] }],
    ['the array alone', [newTag()]],
    ['a string', 'records'],
    ['a number', 5_000],
    ['null', null],
  ])('21: %s is refused as a whole', async (_what, body) => {
    expectError(await api.post('/v1/data/tags', body), 400, ['records']);
  });

  it.each([
    ['all good', 200, [newTag], [newTag]],
    ['all bad', 400, [badTag], [badTag]],
    ['one of each', 207, [newTag], [badTag]],
    ['some bad within one', 207, [newTag, badTag], [newTag]],
    ['some bad within each', 207, [newTag, badTag], [badTag, newTag]],
  ])('22: batches %s answer %i, in the one shape', async (_what, status, first, next) => {
    const records = [...many(1_000, (at) => first[at % first.length]!()), ...next.map((make) => make())];
    const answer = await api.upload('tags', records);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    expect(Object.keys(answer.body)).toEqual(['request_id', 'type', 'batches']);
    expect(batchesOf(answer)).toHaveLength(2);
  });
});

describe('the answer of a batch', () => {
  it.each([
    ['no record failed', 200, 'success', [newTag, newTag]],
    ['some failed', 207, 'partial', [newTag, badTag]],
    ['all failed', 400, 'error', [badTag, badTag]],
  ])('23: %s is %i and %s', async (_what, status, word, makers) => {
    const answer = await api.upload(
      'tags',
      makers.map((make) => make()),
    );
    expect(answer.status).toBe(status);
    const [batch] = batchesOf(answer);
    expect(Object.keys(batch!)).toEqual(['batch', 'status', 'data']);
    expect(batch).toMatchObject({ batch: 1, status, data: { status: word, type: 'tags' } });
    expect(batch!.data.message).toMatch(/\w/);
    if (status === 200) expect(batch!.data.error).toBeNull();
    else expect(batch!.data.error).toMatch(/\w/);
  });

  it('23: stale and unchanged are not failures', async () => {
    const tag = newTag({ updated: '2026-01-02T00:00:00Z' });
    await api.batch('tags', [tag]);
    const done = await api.batch('tags', [tag, { ...tag, updated: '2026-01-01T00:00:00Z' }]);
    expect(done).toMatchObject({
      http: 200,
      status: 'success',
      counts: { unchanged: 1, stale: 1, failed: 0 },
    });
  });

  it('24: the error states how many failed, and for the first ones which record, field and reason', async () => {
    const { error } = await api.batch('tags', [newTag(), ...many(9, badTag)]);
    expect(error).toMatch(/^9 of 10 /);
    expect(error).toMatch(/record 1: name must be a string/i);
    expect(error.length).toBeLessThan(500);
  });

  it('25: every failed record is in the errors, by its index in the request', async () => {
    const records = many(1_500, (at) => (at % 3 === 0 ? badTag() : newTag()));
    const answer = await api.upload('tags', records);
    const errors = batchesOf(answer).flatMap(({ data }) => data.errors);
    expect(errors.map(({ index }) => index)).toEqual(many(500, (at) => at * 3));
    expect(errors.map(({ id }) => id)).toEqual(
      records.filter((_, at) => at % 3 === 0).map(({ tag_id }) => tag_id),
    );
    for (const error of errors)
      expect(Object.keys(error)).toEqual(['index', 'id', 'field', 'code', 'message']);
  });

  it('25: counts add up to the number received', async () => {
    const tag = newTag();
    const changed = newTag();
    const { counts } = await api.batch('tags', [
      tag,
      tag,
      changed,
      { ...changed, name: 'x' },
      badTag(),
      null,
    ]);
    expect(counts).toEqual({ received: 6, created: 2, updated: 1, unchanged: 1, stale: 0, failed: 2 });
  });

  it('25: a record has one entry per bad field, at most five, and counts as one failure', async () => {
    const { errors, counts } = await api.batch('transactions', [
      { transaction_id: 'x', shop_id: 1, region: 'GBR', savings: -1, amount: 0, student_id: 'x', source: 9 },
      { transaction_id: randomUUID(), shop_id: shop.shop_id, region: 'GBR', savings: -1, amount: 1 },
    ]);
    expect(errors.map(({ index, field }: { index: number; field: string }) => [index, field])).toEqual([
      [0, 'transaction_id'],
      [0, 'shop_id'],
      [0, 'region'],
      [0, 'savings'],
      [0, 'amount'],
      [1, 'region'],
      [1, 'savings'],
    ]);
    expect(counts.failed).toBe(2);
  });

  it.each([null, 'text', 7, true, [], [{}]])(
    '25: the record %j is not an object, and only it fails',
    async (record) => {
      const done = await api.batch('tags', [newTag(), record]);
      expect(done).toMatchObject({ http: 207, counts: { created: 1, failed: 1 } });
      expect(done.errors).toMatchObject([{ index: 1, id: null, field: null, code: 'not_an_object' }]);
    },
  );

  it('25: the id is only returned if it is a UUID, in lower case', async () => {
    const id = randomUUID();
    const ids = [id.toUpperCase(), 'not-a-uuid', 7, null, `{${id}}`];
    const { errors } = await api.batch(
      'tags',
      ids.map((tag_id) => ({ tag_id, name: 7 })),
    );
    const told = ids.map((_, at) => errors.find(({ index }: { index: number }) => index === at).id);
    expect(told).toEqual([id, null, null, null, null]);
  });

  it('25: nothing that was sent is returned', async () => {
    const secret = 'sent-in-confidence';
    const record = (at: number) => ({
      transaction_id: at ? randomUUID() : secret,
      shop_id: at ? randomUUID() : secret,
      region: secret,
      savings: secret,
      amount: { secret },
      source: [secret],
      unknown: secret,
    });
    const answer = await api.upload('transactions', [record(0), record(1), secret, [secret]]);
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).not.toContain(secret);
  });

  it('26: the service assigns the ids, of version 7: one per request, also in a header, and one per batch', async () => {
    const sentId = randomUUID();
    const headers = { 'x-request-id': sentId, 'request-id': sentId };
    const answer = await api.post('/v1/data/tags', { records: many(1_001, () => newTag()) }, headers);
    const { request_id, batches } = answer.body;
    expect(request_id).toMatch(uuidV7);
    expect(request_id).not.toBe(sentId);
    expect(answer.headers.get('x-request-id')).toBe(request_id);
    const ids = batches.map(({ data }: Batch) => data.batch_id);
    for (const { data } of batches) expect(data.request_id).toBe(request_id);
    for (const id of ids) expect(id).toMatch(uuidV7);
    expect(new Set([request_id, ...ids]).size).toBe(3);
    expect((await api.upload('tags', [newTag()])).body.request_id).not.toBe(request_id);
  });

  it.each(['/health/live', '/openapi.json', '/docs/', '/nowhere', '/user-interactions'])(
    '26: %s has the id of its request too',
    async (path) => {
      expect((await api.get(path)).headers.get('x-request-id')).toMatch(uuidV7);
    },
  );
});

describe('requests', () => {
  it('26a: the same upload with its Idempotency-Key is answered from its receipt', async () => {
    const [records, headers] = [[newTag(), badTag()], { 'idempotency-key': randomUUID() }];
    const first = await api.post('/v1/data/tags', { records }, headers);
    expect(batchesOf(first)[0]!.data.counts).toMatchObject({ created: 1, failed: 1 });
    expect(await api.post('/v1/data/tags', { records }, headers)).toMatchObject({
      status: 207,
      body: first.body,
    });
    expectError(await api.post('/v1/data/tags', { records: [newTag()] }, headers), 422);
  });

  it.each(['?dryrun=true', '?dry_run=1', '?records=1', '?a=1&b=2', '?__proto__=1'])(
    '27d: an upload to %s is refused and writes nothing',
    async (query) => {
      const tag = newTag();
      const names = [...new URLSearchParams(query).keys()];
      expectError(await api.post(`/v1/data/tags${query}`, { records: [tag] }), 400, names);
      expect((await api.batch('tags', [tag])).counts.created).toBe(1);
    },
  );

  it.each(['/data/tags', '/v2/data/tags', '/V1/data/tags', '/v1/user-interactions'])(
    '27c: there is nothing at %s',
    async (path) => {
      expectError(await api.post(path, { records: [newTag()] }), 404);
    },
  );

  it('28: the record limit is checked last', async () => {
    const tooMany = JSON.stringify({ records: many(5_001, () => newTag()) });
    const send = (headers: Record<string, string>, body = tooMany) =>
      api.send('/v1/data/tags', { method: 'POST', headers, body });
    expectError(await send({ 'content-type': 'text/plain' }), 415);
    expectError(await send({ 'content-type': 'application/json' }, '{"records":[}'), 400);
    expectError(await send({ 'content-type': 'application/json' }), 400, ['records']);
  });
});
