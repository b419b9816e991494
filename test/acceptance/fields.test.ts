import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import {
  type BadValue,
  badValues,
  edgeValues,
  type FieldRule,
  type Form,
  fieldsOf,
  formsOf,
  idFieldOf,
  makeRecord,
  recordTypes,
  requiredOnly,
  type StoredIds,
  storeReferenced,
  type TestRecord,
} from './record-types.ts';

let server: SharedServer;
beforeAll(async () => {
  server = await sharedServer();
});

/** Each type has its own organisation, so that the test cases' fixed ids do not collide. */
let api: Api;
let stored: StoredIds = {};
let otherStored: StoredIds = {};

describe.each(Object.keys(recordTypes))('%s', (type) => {
  beforeAll(async () => {
    api = apiOf(server.url, await server.createKey(`fields-of-${type}`));
    stored = await storeReferenced(api);
    otherStored = await storeReferenced(api);
  });

  for (const [field, rule] of fieldsOf(type)) {
    const title = (guarantee: string) => `${type}.${field}: ${guarantee}`;

    const edges = edgesOf(rule);
    it(title(`takes ${all(Object.keys(edges()))}`), async () => {
      const records = Object.values(edges()).map((value) => makeRecord(type, stored, { [field]: value }));
      expectStored(await api.upload(type, records), { created: records.length });
      expectStored(await api.upload(type, records), { unchanged: records.length });
    });

    const forms = keptFormsOf(rule);
    it(title(`keeps ${all(forms().map(({ name }) => name))} as the same value and no other`), async () => {
      const cases = forms().map((form) => ({ form, record: makeRecord(type, stored) }));
      const send = (which: 'sent' | 'kept' | 'other') =>
        api.upload(
          type,
          cases.map(({ form, record }) => ({ ...record, [field]: form[which] })),
        );
      expectStored(await send('sent'), { created: cases.length });
      expectStored(await send('kept'), { unchanged: cases.length });
      const change = field === idFieldOf(type) ? 'created' : 'updated';
      expectStored(await send('other'), { [change]: cases.length });
      expectStored(await send('other'), { unchanged: cases.length });
    });

    for (const [code, cases] of Map.groupBy(badValues(rule), (bad) => bad.code)) {
      it(title(`${either(cases.map(({ name }) => name))} is ${code}`), () =>
        expectRefused(type, field, cases),
      );
    }

    if (!rule.required) {
      it(title('missing and null are stored in the same way'), () => expectNullable(type, field, rule));
    }

    if (rule.kind === 'boolean') {
      const omitted = field === 'is_deleted' ? 'false' : 'unknown, which is not false';
      it(title(`missing is ${omitted}`), async () => {
        const record = makeRecord(type, stored, { [field]: false });
        expectStored(await api.upload(type, [record]), { created: 1 });
        const change = field === 'is_deleted' ? 'unchanged' : 'updated';
        expectStored(await api.upload(type, [{ ...record, [field]: undefined }]), { [change]: 1 });
      });
    }

    if (rule.kind.endsWith('text') && !rule.required) {
      it(title('an empty string is a value and differs from none'), async () => {
        const record = makeRecord(type, stored, { [field]: '' });
        expectStored(await api.upload(type, [record]), { created: 1 });
        expectStored(await api.upload(type, [record]), { unchanged: 1 });
        expectStored(await api.upload(type, [{ ...record, [field]: null }]), { updated: 1 });
      });
    }
  }

  it(`${type}: a field that an upload leaves out becomes null, and sending null is the same`, async () => {
    const record = makeRecord(type, stored);
    const bare = requiredOnly(type, record);
    const nulls = Object.fromEntries(Object.keys(record).map((field) => [field, bare[field] ?? null]));
    expectStored(await api.upload(type, [record]), { created: 1 });
    expectStored(await api.upload(type, [bare]), { updated: 1 });
    expectStored(await api.upload(type, [nulls]), { unchanged: 1 });
    expectStored(await api.upload(type, [record]), { updated: 1 });
  });

  it(`${type}: a record with only its required fields is stored`, async () => {
    const bare = requiredOnly(type, makeRecord(type, stored));
    expectStored(await api.upload(type, [bare, requiredOnly(type, makeRecord(type, stored))]), {
      created: 2,
    });
    expectStored(await api.upload(type, [bare]), { unchanged: 1 });
  });

  it(`${type}: bad records without a good one are 400`, async () => {
    const idField = idFieldOf(type);
    const { status, body } = await api.upload(type, [makeRecord(type, stored, { [idField]: null }), {}]);
    const [batch] = body.batches;
    expect([status, batch.status, batch.data.status]).toEqual([400, 400, 'error']);
    expect(batch.data.counts).toEqual(countsOf({ failed: 2 }));
    const required = fieldsOf(type).flatMap(([field, rule]) => (rule.required ? [field] : []));
    const named = (index: number) =>
      batch.data.errors
        .filter((entry: TestRecord) => entry.index === index)
        .map(({ field }: TestRecord) => field);
    expect(named(0)).toEqual([idField]);
    expect(named(1).toSorted()).toEqual(required.slice(0, 5).toSorted());
  });

  it(`${type}: all bad fields of a record are listed, up to five`, async () => {
    const fields = fieldsOf(type).map(([field]) => field);
    const record = Object.fromEntries(fields.map((field) => [field, ['marker']]));
    const data = await api.batch(type, [makeRecord(type, stored), record]);
    expect(data.counts).toEqual(countsOf({ created: 1, failed: 1 }));
    expect(data.errors).toHaveLength(Math.min(5, fields.length));
    expect(new Set(data.errors.map(({ field }: TestRecord) => field)).size).toBe(data.errors.length);
    for (const entry of data.errors) {
      expect(entry).toEqual(entryOf(1, null, expect.toBeOneOf(fields), 'wrong_type'));
    }
  });

  it(`${type}: a record that is not an object fails on its own`, async () => {
    const values = [null, 73051942, 'marker', true, ['marker'], []];
    const { status, body } = await api.upload(type, [...values, makeRecord(type, stored)]);
    const { data } = body.batches[0];
    expect(status).toBe(207);
    expect(data.counts).toEqual(countsOf({ created: 1, failed: values.length }));
    expect(data.errors).toEqual(values.map((_, index) => entryOf(index, null, null, 'not_an_object')));
    for (const value of values) expectNoTrace(body, value);
  });

  if (!('region' in recordTypes[type]!)) {
    it(`${type}: has no region; one that is sent is ignored with a warning`, async () => {
      const record = makeRecord(type, stored);
      const data = await api.batch(type, [{ ...record, region: 'a place with no code' }]);
      expect(data.counts).toEqual(countsOf({ created: 1 }));
      expect(JSON.stringify(data.warnings)).toContain('region');
      expectStored(await api.upload(type, [record]), { unchanged: 1 });
    });
  }
});

/**
 * Uploads a record for each bad value, with a good record before and after them. Checks that each bad record is reported
 * and that the good records are stored.
 */
async function expectRefused(type: string, field: string, cases: readonly BadValue[]): Promise<void> {
  const idField = idFieldOf(type);
  const good = [makeRecord(type, stored), makeRecord(type, stored)] as const;
  const repaired = cases.map(() => makeRecord(type, stored));
  const bad = cases.map(({ sent }, at) => {
    const id = String(repaired[at]![idField]).toUpperCase();
    return { ...repaired[at], [idField]: id, [field]: sent };
  });
  const { status, body } = await api.upload(type, [good[0], ...bad, good[1]]);
  const [{ status: batchStatus, data }] = body.batches;
  const entries = cases.map(({ name }, at) => {
    const found = data.errors.filter((entry: TestRecord) => entry.index === at + 1);
    return [name, found] as const;
  });
  const expected = cases.map(({ name, code }, at) => {
    const id = field === idField ? null : repaired[at]![idField];
    return [name, [entryOf(at + 1, id, field, code)]] as const;
  });
  expect(Object.fromEntries(entries)).toEqual(Object.fromEntries(expected));
  expect(data.counts).toEqual(countsOf({ created: 2, failed: cases.length }));
  expect([status, batchStatus, data.status]).toEqual([207, 207, 'partial']);
  expect(data.error).toContain(field);
  for (const { sent } of cases) expectNoTrace(body, sent);
  expectStored(await api.upload(type, [...good, ...repaired]), { unchanged: 2, created: cases.length });
}

async function expectNullable(type: string, field: string, rule: FieldRule): Promise<void> {
  const records = [makeRecord(type, stored), makeRecord(type, stored)] as const;
  const missing = records.map((record) => ({ ...record, [field]: undefined }));
  const nulls = records.map((record) => ({ ...record, [field]: null }));
  const values = records.map((record) => ({ ...record, [field]: formsOf(rule.kind)[0]!.kept }));
  expectStored(await api.upload(type, [missing[0], nulls[1]]), { created: 2 });
  expectStored(await api.upload(type, [nulls[0], missing[1]]), { unchanged: 2 });
  expectStored(await api.upload(type, values), { updated: 2 });
  expectStored(await api.upload(type, [missing[0], nulls[1]]), { updated: 2 });
}

/** Returns a field's valid edge cases. A field that refers to another record accepts only stored ids. */
function edgesOf(rule: FieldRule): () => Record<string, unknown> {
  const { references } = rule;
  if (references === undefined) return () => edgeValues(rule);
  return () => ({ 'a stored id': stored[references], 'another stored id': otherStored[references] });
}

function keptFormsOf({ kind, references }: FieldRule): () => Form[] {
  if (references === undefined) return () => formsOf(kind);
  return () => {
    const id = stored[references];
    return [{ name: 'upper case', sent: id?.toUpperCase(), kept: id, other: otherStored[references] }];
  };
}

function expectStored({ status, body }: Answer, counts: Record<string, number>): void {
  const [batch] = body.batches;
  expect(batch.data.errors).toEqual([]);
  expect(batch.data.counts).toEqual(countsOf(counts));
  expect([status, batch.status, batch.data.status, batch.data.error]).toEqual([200, 200, 'success', null]);
}

function countsOf(given: Record<string, number>): Record<string, number> {
  const received = Object.values(given).reduce((sum, count) => sum + count, 0);
  return { received, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0, ...given };
}

function entryOf(index: number, id: unknown, field: unknown, code: string): TestRecord {
  return { index, id, field, code, message: expect.stringMatching(/\S/) };
}

/** Checks that the response does not quote the value's longest word. Shorter words could occur in it by chance. */
function expectNoTrace(body: unknown, sent: unknown): void {
  const stretches = JSON.stringify(sent)?.match(/[^\s"\\{}[\],]{3,}/gu) ?? [];
  const trace = stretches.toSorted((a, b) => b.length - a.length)[0]?.slice(0, 20);
  if (trace && !/^(null|true|false)$/.test(trace)) expect(JSON.stringify(body)).not.toContain(trace);
}

function all(names: readonly string[]): string {
  return new Intl.ListFormat('en', { type: 'conjunction' }).format(names);
}

function either(names: readonly string[]): string {
  return new Intl.ListFormat('en', { type: 'disjunction' }).format(names);
}
