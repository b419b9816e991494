import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import {
  type BuiltServer,
  type SharedServer,
  sharedServer,
  startBuiltServer,
} from '../support/built-server.ts';
import { idFieldOf, makeRecord, requiredOnly, type TestRecord } from './record-types.ts';

let server: SharedServer;
let api: Api;
beforeAll(async () => {
  server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme'));
});

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const kinds = ['created', 'updated', 'unchanged', 'stale', 'failed'] as const;

const earlier = '2024-01-01T00:00:00Z';
const later = '2024-02-01T00:00:00Z';
const good = (type = 'shops'): TestRecord => requiredOnly(type, makeRecord(type));
const bad = (): TestRecord => ({ ...good(), name: 7 });
const repeat = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

describe.each([
  ['shops', 1, [1]],
  ['shops', 1_000, [1_000]],
  ['shops', 1_001, [1_000, 1]],
  ['shops', 5_000, [1_000, 1_000, 1_000, 1_000, 1_000]],
  ['customers', 5_000, [1_000, 1_000, 1_000, 1_000, 1_000]],
  ['courses', 1, [1]],
  ['courses', 1_000, [1_000]],
])('%s: %i records', (type, count, sizes) => {
  let answer: Answer;
  const records = repeat(count, () => good(type));
  beforeAll(async () => {
    answer = await api.upload(type, records);
  });

  it(`${type}: ${count} records are stored in batches of ${sizes.join(', ')}, numbered from 1`, () => {
    expect(answer.status).toBe(200);
    expect(answer.body.type).toBe(type);
    const batches = answer.body.batches.map(({ batch, status, data }: Batch) => [batch, status, data.counts]);
    expect(batches).toEqual(sizes.map((size, at) => [at + 1, 200, countsOf({ created: size })]));
    for (const { data } of answer.body.batches as Batch[]) {
      expect(data).toMatchObject({ status: 'success', type, error: null, errors: [] });
    }
  });

  it(`${type}: ${count} records are answered under one request id, with a batch id for each batch`, () => {
    expectIds(answer);
  });

  it(`${type}: the first and the last of ${count} records are stored`, async () => {
    const ends = count === 1 ? records : [records[0], records.at(-1)];
    expect((await api.batch(type, ends)).counts).toEqual(countsOf({ unchanged: ends.length }));
  });
});

describe.each([
  ['shops', 5_001],
  ['customers', 5_001],
  ['courses', 1_001],
  ['courses', 5_000],
])('%s: %i records', (type, count) => {
  it(`${type}: ${count} records are refused as a whole, and none of them is stored`, async () => {
    const records = repeat(count, () => good(type));
    expectRefused(await api.upload(type, records), 'records');
    const some = [records[0], records[999], records.at(-1)];
    expect((await api.batch(type, some)).counts).toEqual(countsOf({ created: 3 }));
  });

  it(`${type}: ${count} records are refused even if each of them is bad`, async () => {
    expectRefused(await api.upload(type, Array(count).fill({})), 'records');
  });
});

describe('the envelope', () => {
  const shop = good();
  const send = (body: string | Uint8Array<ArrayBuffer>) =>
    api.send('/v1/data/shops', { method: 'POST', headers: { 'content-type': 'application/json' }, body });

  it.each([
    ['records missing', {}],
    ['records under another name', { record: [shop] }],
    ['records null', { records: null }],
    ['records empty', { records: [] }],
    ['records an object', { records: { 0: shop, length: 1 } }],
    ['records a string', { records: 'shops' }],
    ['records a number', { records: 1 }],
    ['records a boolean', { records: true }],
    ['a record without records around it', shop],
  ])('%s: the whole request is 400 and names records', async (_, body) => {
    expectRefused(await api.post('/v1/data/shops', body), 'records');
  });

  it.each([
    ['an array', [shop]],
    ['an array of envelopes', [{ records: [shop] }]],
    ['a string', 'records'],
    ['null', null],
    ['a number', 1],
    ['a boolean', true],
  ])('a body that is %s is 400', async (_, body) => {
    expectRefused(await api.post('/v1/data/shops', body));
  });

  it.each([
    ['empty', ''],
    ['cut short', '{"records":[{"shop_id":'],
    ['not JSON', 'records=1'],
    ['two values', '{"records":[]}{"records":[]}'],
    ['not UTF-8', Uint8Array.from(Buffer.from('{"records":[{"name":"\xff"}]}', 'latin1'))],
  ])('a body that is %s is 400', async (_, body) => {
    expectRefused(await send(body));
  });

  it.each(['customers', 'courses', 'student-favourites', 'tags'])('%s: no records is 400', async (type) => {
    expectRefused(await api.upload(type, []), 'records');
  });

  it('nothing is stored of a request that was refused for its envelope', async () => {
    expect((await api.batch('shops', [shop])).counts).toEqual(countsOf({ created: 1 }));
  });
});

describe('indices', () => {
  it.each([
    [0, 1_001],
    [999, 1_000],
    [999, 1_001],
    [1_000, 1_001],
    [1_999, 2_000],
    [4_999, 5_000],
  ])('a bad record at %i of %i is reported by that index, and only it fails', async (index, count) => {
    const records = repeat(count, () => good());
    records[index] = bad();
    const answer = await api.upload('shops', records);
    const batchOfIt = Math.floor(index / 1_000);
    for (const [at, { status, data }] of (answer.body.batches as Batch[]).entries()) {
      const received = Math.min(1_000, count - at * 1_000);
      if (at !== batchOfIt) expect([status, data.counts]).toEqual([200, countsOf({ created: received })]);
      else {
        expect(data.counts).toEqual(countsOf({ created: received - 1, failed: 1 }));
        expect(data.errors).toEqual([entryOf(index, records[index]!)]);
        expect(data.error).toMatch(new RegExp(`\\b${index}\\b.*name`));
      }
    }
    expect(answer.status).toBe(207);
    const after = await api.batch('shops', [{ ...records[index], name: 'Repaired' }, records[index ? 0 : 1]]);
    expect(after.counts).toEqual(countsOf({ created: 1, unchanged: 1 }));
  });

  it('every bad record of a large request is in the errors of its own batch', async () => {
    const records = repeat(3_000, () => good()).map((record, at) =>
      at % 7 === 0 ? { ...record, name: 7 } : record,
    );
    const { body } = await api.upload('shops', records);
    for (const [at, { data }] of (body.batches as Batch[]).entries()) {
      const ofBatch = [...records.keys()].slice(at * 1_000, (at + 1) * 1_000);
      const expected = ofBatch.filter((index) => index % 7 === 0);
      expect(data.errors).toEqual(expected.map((index) => entryOf(index, records[index]!)));
      expect(data.counts).toEqual(countsOf({ created: 1_000 - expected.length, failed: expected.length }));
    }
  });

  it('stale records of a later batch are reported by the index in the request', async () => {
    const newer = { ...good(), updated: later };
    await api.upload('shops', [newer]);
    const records = [...repeat(1_500, () => good()), { ...newer, updated: earlier }];
    const { status, body } = await api.upload('shops', records);
    expect([status, body.batches[0].data.stale, body.batches[1].data.stale]).toEqual([200, [], [1_500]]);
    expect(body.batches[1].data.counts).toEqual(countsOf({ created: 500, stale: 1 }));
  });

  it('an id in two batches is applied in the order sent', async () => {
    const shop = good();
    const records = [
      shop,
      ...repeat(999, () => good()),
      { ...shop, name: 'Renamed' },
      { ...shop, name: 'Renamed' },
    ];
    const { body } = await api.upload('shops', records);
    expect(body.batches[0].data.counts).toEqual(countsOf({ created: 1_000 }));
    expect(body.batches[1].data.counts).toEqual(countsOf({ updated: 1, unchanged: 1 }));
  });
});

/**
 * Each letter stands for a batch: g is all good, b is all bad, m is mixed. The last batch of a request has ten records,
 * and the others have 1,000.
 */
describe('statuses', () => {
  const statusOf = { g: 200, b: 400, m: 207 } as const;
  const wordOf = { g: 'success', b: 'error', m: 'partial' } as const;
  const make = { g: () => good(), b: bad, m: (at: number) => (at % 2 === 0 ? good() : bad()) } as const;

  it.each([
    ['g', 200],
    ['b', 400],
    ['m', 207],
    ['gg', 200],
    ['bb', 400],
    ['mm', 207],
    ['gb', 207],
    ['bg', 207],
    ['gm', 207],
    ['mg', 207],
    ['bm', 207],
    ['mb', 207],
    ['bbb', 400],
    ['bbg', 207],
    ['gbg', 207],
    ['gbmgb', 207],
  ])('batches %s are %i as a whole, each with its own status', async (pattern, status) => {
    const letters = [...pattern] as (keyof typeof statusOf)[];
    const sizes = letters.map((_, at) => (at === letters.length - 1 ? 10 : 1_000));
    const records = letters.flatMap((letter, at) => repeat(sizes[at]!, make[letter]));
    const answer = await api.upload('shops', records);
    const batches = answer.body.batches as Batch[];
    expect(answer.status).toBe(status);
    expect(batches.map((batch) => batch.status)).toEqual(letters.map((letter) => statusOf[letter]));
    expect(batches.map(({ data }) => data.status)).toEqual(letters.map((letter) => wordOf[letter]));
    expect(batches.map(({ data }) => data.counts.received)).toEqual(sizes);
    for (const { status: own, data } of batches) {
      if (own === 200) expect(data.error).toBeNull();
      else expect(data.error).toMatch(new RegExp(`\\b${data.counts.failed}\\b`));
      expect(data.message).toMatch(/\S/);
    }
    expectIds(answer);
  });

  it('unchanged and stale records are not failures: the batch is 200', async () => {
    const records = repeat(3, () => ({ ...good(), updated: later }));
    await api.upload('shops', records);
    const older = records.map((record) => ({ ...record, updated: earlier }));
    const unchanged = await api.batch('shops', records);
    expect([unchanged.http, unchanged.counts]).toEqual([200, countsOf({ unchanged: 3 })]);
    const stale = await api.batch('shops', older);
    expect([stale.http, stale.status, stale.error, stale.counts]).toEqual([
      200,
      'success',
      null,
      countsOf({ stale: 3 }),
    ]);
    expect(stale.stale).toEqual([0, 1, 2]);
  });

  it('stale and bad together are 207, because the stale one did not fail', async () => {
    const shop = { ...good(), updated: later };
    await api.upload('shops', [shop]);
    const data = await api.batch('shops', [{ ...shop, updated: earlier }, bad()]);
    expect([data.http, data.status, data.counts]).toEqual([
      207,
      'partial',
      countsOf({ stale: 1, failed: 1 }),
    ]);
  });

  it('each outcome is counted separately, in one batch', async () => {
    const [changed, same, late] = repeat(3, () => ({ ...good(), updated: later }));
    await api.upload('shops', [changed, same, late]);
    const records = [good(), { ...changed, name: 'Renamed' }, same, { ...late, updated: earlier }, bad()];
    const data = await api.batch('shops', records);
    expect(data.counts).toEqual(countsOf({ created: 1, updated: 1, unchanged: 1, stale: 1, failed: 1 }));
    expect([data.stale, data.errors]).toEqual([[3], [entryOf(4, records[4] as TestRecord)]]);
  });
});

describe.each([
  ['lowered', { shops: 3, customers: 3, courses: 3 }, { RECORDS_PER_REQUEST_MAX: '3' }],
  [
    'raised, which leaves the limit of courses',
    { shops: 5_002, courses: 1_000 },
    { RECORDS_PER_REQUEST_MAX: '5002' },
  ],
])('the limits, %s', (name, limits, settings) => {
  let moved: BuiltServer;
  let movedApi: Api;
  beforeAll(async () => {
    moved = await startBuiltServer(settings);
    movedApi = apiOf(moved.url, await moved.createKey('acme'));
  });
  afterAll(() => moved.stop());

  it.each(Object.entries(limits))(`${name}: %s accept %i records in one request`, async (type, max) => {
    const { status, body } = await movedApi.upload(
      type,
      repeat(max, () => good(type)),
    );
    expect([status, body.batches.length]).toEqual([200, Math.ceil(max / 1_000)]);
  });

  it.each(Object.entries(limits))(`${name}: %s accept no more than %i`, async (type, max) => {
    const records = repeat(max + 1, () => good(type));
    expectRefused(await movedApi.upload(type, records), 'records');
    expect((await movedApi.batch(type, [records[0]])).counts).toEqual(countsOf({ created: 1 }));
  });
});

interface Batch {
  readonly batch: number;
  readonly status: number;
  readonly data: Awaited<ReturnType<Api['batch']>>;
}

function countsOf(given: Record<string, number>): Record<string, number> {
  const received = Object.values(given).reduce((sum, count) => sum + count, 0);
  return { received, ...Object.fromEntries(kinds.map((kind) => [kind, 0])), ...given };
}

function entryOf(index: number, record: TestRecord): TestRecord {
  const message = expect.stringMatching(/\S/);
  return { index, id: record[idFieldOf('shops')], field: 'name', code: 'wrong_type', message };
}

/** Checks that the request was refused before any record was read, so that the response contains no batches. */
function expectRefused({ status, headers, body }: Answer, field?: string): void {
  expect([status, body.error]).toEqual([400, 'Bad Request']);
  expect(body.message).toMatch(/\S/);
  expect(body).not.toHaveProperty('batches');
  expect(headers.get('x-request-id')).toMatch(uuidV7);
  if (field === undefined) return;
  const text = expect.stringMatching(/\S/);
  expect(body.details).toEqual([{ field, code: text, message: text }]);
}

function expectIds({ headers, body }: Answer): void {
  const batches = body.batches as Batch[];
  expect(body.request_id).toMatch(uuidV7);
  expect(headers.get('x-request-id')).toBe(body.request_id);
  expect(new Set(batches.map(({ data }) => data.request_id))).toEqual(new Set([body.request_id]));
  for (const { data } of batches) expect(data.batch_id).toMatch(uuidV7);
  expect(new Set([body.request_id, ...batches.map(({ data }) => data.batch_id)]).size).toBe(
    batches.length + 1,
  );
  for (const { data } of batches) {
    expect(kinds.reduce((sum, kind) => sum + data.counts[kind], 0)).toBe(data.counts.received);
  }
}
