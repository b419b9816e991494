// @module-tag postgres-15

import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  idFieldOf,
  type ResourceType,
  referencesOf,
  resources,
  resourceTypes,
} from '../../src/registry/resources.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { propertyRuns } from '../support/property-runs.ts';
import type { Sent, Values } from './oracle.ts';
import { sentRecord } from './records.ts';

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const referencedIds = ['5a000000-0000-4000-8000-000000000001', '5a000000-0000-4000-8000-000000000002'];
let organisations = 0;

/** Creates an organisation with the records that the type references, and returns its key. */
async function organisationWithReferences(type: ResourceType): Promise<string> {
  const { key } = await test.organisation(`org-${++organisations}`);
  for (const { type: target } of referencesOf(type)) {
    const records = referencedIds.map((id) => ({ ...resources[target].example, [idFieldOf(target)]: id }));
    await upload(key, target, records);
  }
  return key;
}

async function upload(key: string, type: ResourceType, records: unknown[]): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await test.app.inject({
    method: 'POST',
    url: `/v1/data/${type}`,
    headers,
    payload: { records },
  });
  expect({ status: answer.statusCode, body: answer.json() }).toMatchObject({ status: 200 });
}

async function get(key: string, path: string, accept = 'application/json') {
  const headers = { authorization: `Bearer ${key}`, accept };
  const answer = await test.app.inject({ method: 'GET', url: path, headers });
  expect(answer.statusCode).toBe(200);
  return answer;
}

async function byId(key: string, type: ResourceType, ids: readonly string[]): Promise<Values[]> {
  return Promise.all(ids.map(async (id) => (await get(key, `/v1/data/${type}/${id}`)).json()));
}

async function byPages(key: string, type: ResourceType, limit: number): Promise<Values[]> {
  const records: Values[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const from: string = cursor && `&cursor=${cursor}`;
    const page: { records: Values[]; next_cursor: string | null } = (
      await get(key, `/v1/data/${type}?include_deleted=true&limit=${limit}${from}`)
    ).json();
    expect(page.records.length).toBeLessThanOrEqual(limit);
    records.push(...page.records);
    cursor = page.next_cursor;
  }
  return records;
}

async function linesOf(key: string, type: ResourceType): Promise<string[]> {
  const { body } = await get(key, `/v1/data/${type}?include_deleted=true`, 'application/x-ndjson');
  return body.split('\n').slice(0, -1);
}

async function byLines(key: string, type: ResourceType): Promise<Values[]> {
  return (await linesOf(key, type)).map((line) => JSON.parse(line));
}

/** Uploads the records exactly as they were read, and returns how many of them changed. */
async function sendBack(key: string, type: ResourceType): Promise<number> {
  const lines = await linesOf(key, type);
  const answer = await test.app.inject({
    method: 'POST',
    url: `/v1/data/${type}`,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    payload: `{"records":[${lines.join(',')}]}`,
  });
  expect(answer.statusCode).toBe(200);
  return lines.length - answer.json().batches[0].data.counts.unchanged;
}

/** Matches the oracle's times, which have six fractional digits. The API omits trailing zeros. */
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const asRead = (values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'string' && instant.test(value) ? value.replace(/\.?0*Z$/, 'Z') : value,
    ]),
  );

/** Generates valid records with distinct ids. */
function soundRecords(type: ResourceType): fc.Arbitrary<Sent[]> {
  const referenced = Object.fromEntries(
    referencesOf(type).map((reference) => [reference.type, referencedIds]),
  );
  const record = sentRecord(type, referenced).filter(
    ({ faults, dangling }) => faults.length + dangling.length === 0,
  );
  const withId = fc.tuple(record, fc.uuid(), fc.boolean()).map(([sent, id, upper]): Sent => {
    const idField = idFieldOf(type);
    return {
      ...sent,
      id,
      record: { ...(sent.record as object), [idField]: upper ? id.toUpperCase() : id },
      values: { ...sent.values, [idField]: id },
    };
  });
  return fc.uniqueArray(withId, { selector: ({ id }) => id, minLength: 1, maxLength: 40 });
}

it.each(resourceTypes)(
  '4a: whatever is stored as %s is read back, by id, in pages and in lines, and can be sent again',
  async (type) => {
    await fc.assert(
      fc.asyncProperty(soundRecords(type), fc.integer({ min: 1, max: 50 }), async (sent, limit) => {
        const key = await organisationWithReferences(type);
        await upload(
          key,
          type,
          sent.map(({ record }) => record),
        );
        const sorted = sent.toSorted((one, other) => (String(one.id) < String(other.id) ? -1 : 1));
        const expected = sorted.map(({ values }) => asRead(values));
        const ids = sorted.map(({ id }) => String(id));
        expect(await byId(key, type, ids)).toEqual(expected);
        for (const read of [await byPages(key, type, limit), await byLines(key, type)]) {
          expect(read).toEqual(expected);
          for (const record of read) expect(Object.keys(record)).toEqual(Object.keys(resources[type].fields));
        }
        expect(await sendBack(key, type)).toBe(0);
      }),
      propertyRuns(25),
    );
  },
);

/** Uploads many records with these values in one field, and returns the values that are read back. */
async function readBack(type: ResourceType, field: string, values: readonly unknown[]): Promise<unknown[]> {
  const key = await organisationWithReferences(type);
  const ids = values.map((_, at) => `1d000000-0000-4000-8000-${String(at).padStart(12, '0')}`);
  const records = ids.map((id, at) => ({
    ...resources[type].example,
    ...(referencesOf(type).length > 0 && { shop_id: referencedIds[0] }),
    [idFieldOf(type)]: id,
    [field]: values[at],
  }));
  await upload(key, type, records);
  expect(await sendBack(key, type)).toBe(0);
  return (await byLines(key, type)).map((record) => record[field]);
}

const pad = (value: number, length: number) => String(value).padStart(length, '0');
const days = fc
  .record({
    year: fc.integer({ min: 1, max: 9_999 }),
    month: fc.integer({ min: 1, max: 12 }),
    day: fc.integer({ min: 1, max: 28 }),
  })
  .map(({ year, month, day }) => `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`);
const many = { minLength: 1, maxLength: 200 };

it('4a: every day of the calendar is read as it was sent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(days, many), async (values) => {
      expect(await readBack('customers', 'birthdate', values)).toEqual(values);
    }),
    propertyRuns(20),
  );
});

it('4a: every instant is read to the microsecond', async () => {
  const instants = fc
    .tuple(days, fc.integer({ min: 0, max: 86_399 }), fc.integer({ min: 0, max: 999_999 }))
    .map(([day, second, micro]) => {
      const clock = [Math.floor(second / 3_600), Math.floor(second / 60) % 60, second % 60].map((part) =>
        pad(part, 2),
      );
      return `${day}T${clock.join(':')}.${pad(micro, 6)}Z`;
    });
  await fc.assert(
    fc.asyncProperty(fc.array(instants, many), async (values) => {
      const expected = values.map((value) => value.replace(/\.?0*Z$/, 'Z'));
      expect(await readBack('tags', 'created', values)).toEqual(expected);
    }),
    propertyRuns(20),
  );
});

const numbers = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value));
it.each([
  ['transactions', 'discount_value', numbers],
  [
    'branches',
    'latitude',
    fc.double({ min: -90, max: 90, noNaN: true }).map((value) => (value === 0 ? 0 : value)),
  ],
] as const)('4a: every number is read from %s.%s as it was sent', async (type, field, arbitrary) => {
  await fc.assert(
    fc.asyncProperty(fc.array(arbitrary, many), async (values) => {
      expect(await readBack(type, field, values)).toEqual(values);
    }),
    propertyRuns(20),
  );
});

it('4a: every text is read as it was sent', async () => {
  const texts = fc
    .string({ minLength: 1, maxLength: 100, unit: 'binary' })
    .filter((text) => !text.includes('\0') && text.isWellFormed());
  await fc.assert(
    fc.asyncProperty(fc.array(texts, many), async (values) => {
      expect(await readBack('tags', 'name', values)).toEqual(values);
    }),
    propertyRuns(20),
  );
});
