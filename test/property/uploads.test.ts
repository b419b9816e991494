import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Field, modes } from '../../src/registry/fields.ts';
import { type ResourceType, referencesOf, resources, resourceTypes } from '../../src/registry/resources.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { countDeadlocks } from '../support/query-database.ts';
import { untilStored } from '../support/until-stored.ts';
import { type MergedType, Oracle, type Sent, type Values } from './oracle.ts';
import { sentRecord } from './records.ts';

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

let organisations = 0;

/** Creates an organisation with the records that the type references. */
async function organisationWithReferences(type: ResourceType) {
  const made = await test.organisation(`org-${++organisations}`);
  const referenced: Record<string, string[]> = {};
  for (const { type: target } of referencesOf(type)) {
    referenced[target] = ['5a000000-0000-4000-8000-000000000001', '5a000000-0000-4000-8000-000000000002'];
    const id = Object.keys(resources[target].fields)[0] as string;
    await send(
      made.key,
      target,
      referenced[target].map((value) => ({ ...resources[target].example, [id]: value })),
    );
  }
  return { ...made, referenced };
}

async function send(key: string, type: ResourceType, records: unknown[], mode = 'replace') {
  const answer = await test.app.inject({
    method: 'POST',
    url: `/v1/data/${type}?mode=${mode}`,
    headers: { authorization: `Bearer ${key}` },
    payload: { records },
  });
  return { status: answer.statusCode, body: answer.json() };
}

/** Returns a type's stored rows in the oracle's form. */
async function storedRows(organisationId: string, type: ResourceType): Promise<Map<string, Values>> {
  const names = Object.keys(resources[type].fields);
  const { rows } = await test.pool.query<Values>(
    `select ${names.map((name) => `"${name}"`).join(', ')} from ${type.replaceAll('-', '_')} where organisation_id = $1`,
    [organisationId],
  );
  const fields: Record<string, { column: string }> = resources[type].fields;
  for (const row of rows) {
    for (const name of names) {
      const value = row[name];
      if (typeof value !== 'string') continue;
      if (fields[name]?.column === 'numeric') row[name] = Number(value);
      if (fields[name]?.column === 'timestamptz') row[name] = isoOf(value);
    }
  }
  return new Map(rows.map((row) => [row[names[0] as string] as string, row]));
}

/** Converts `2026-03-14 12:00:07.5+00` to the oracle's form. */
function isoOf(value: string): string {
  const [, seconds = '', fraction = ''] = /^(.{19})(?:\.(\d+))?\+00$/.exec(value) ?? [];
  return `${seconds.replace(' ', 'T')}.${fraction.padEnd(6, '0')}Z`;
}

function referencesFor(type: ResourceType): Record<string, string[]> {
  const ids = ['5a000000-0000-4000-8000-000000000001', '5a000000-0000-4000-8000-000000000002'];
  return Object.fromEntries(referencesOf(type).map(({ type: target }) => [target, ids]));
}

/** If the record is merged, these fields are left out of it. */
interface Change {
  readonly sent: Sent;
  readonly leftOut: readonly string[];
}

/** Generates uploads from a handful of records, so that records are repeated within an upload and in later uploads. */
const sessions = fc.constantFrom(...resourceTypes).chain((type) => {
  const [, ...others] = Object.keys(resources[type].fields);
  return fc.array(sentRecord(type, referencesFor(type)), { minLength: 1, maxLength: 10 }).chain((pool) => {
    const change = fc.record({ sent: fc.constantFrom(...pool), leftOut: fc.subarray(others) });
    const upload = fc.record({
      mode: fc.constantFrom(...modes),
      changes: fc.array(change, { minLength: 1, maxLength: 25 }),
    });
    return fc.record({
      type: fc.constant(type),
      uploads: fc.array(upload, { minLength: 1, maxLength: 4 }),
    });
  });
});

/** Of a record that is merged, only what it has counts. A field that is left out is no fault, unless it is the id. */
function merged(type: ResourceType, { sent, leftOut }: Change): Sent {
  const [id] = Object.keys(resources[type].fields);
  const record = Object.fromEntries(
    Object.entries(sent.record as object).filter(([name]) => !leftOut.includes(name)),
  );
  const isThere = (field: string | null) => field === null || field === id || field in record;
  return {
    ...sent,
    record,
    faults: sent.faults.filter(({ field }) => isThere(field)),
    dangling: sent.dangling.filter(isThere),
    values: Object.fromEntries(Object.entries(sent.values).filter(([name]) => name in record)),
  };
}

function mergedType(type: ResourceType): MergedType {
  const fields = Object.entries<Field>(resources[type].fields);
  return {
    defaults: Object.fromEntries(fields.map(([name, { fallback }]) => [name, fallback ?? null])),
    required: fields.flatMap(([name, { required }]) => (required ? [name] : [])),
  };
}

it('stored rows, counts and indexes equal records applied one after another', async () => {
  await fc.assert(
    fc.asyncProperty(sessions, async ({ type, uploads }) => {
      const { key, organisationId } = await organisationWithReferences(type);
      const oracle = new Oracle();
      for (const { mode, changes } of uploads) {
        const isMerged = mode === 'merge';
        const records = changes.map((change) => (isMerged ? merged(type, change) : change.sent));
        const expected = oracle.upload(records, isMerged ? mergedType(type) : undefined);
        const sent = records.map(({ record }) => record);
        const rehearsed = await send(key, type, sent, `${mode}&dry_run=true`);
        const { status, body } = await send(key, type, sent, mode);
        const { data } = body.batches[0];
        const errors = data.errors.map(({ message, ...rest }: { message: string }) => rest);
        expect({ counts: data.counts, stale: data.stale, errors }).toEqual(expected);
        expect(status).toBe(statusOf(records, expected.counts.failed));
        const { counts, stale, errors: said } = rehearsed.body.batches[0].data;
        expect({ counts, stale, errors: said }).toEqual({
          counts: data.counts,
          stale: data.stale,
          errors: data.errors,
        });
      }
      expect(await storedRows(organisationId, type)).toEqual(oracle.stored);
    }),
    propertyRuns(300),
  );
});

function statusOf(records: readonly Sent[], failed: number): number {
  if (failed === 0) return 200;
  return failed === records.length ? 400 : 207;
}

it('concurrent uploads of the same records never fail because of each other, nor deadlock', async () => {
  const { key, organisationId } = await test.organisation('concurrent');
  const ids = Array.from({ length: 400 }, (_, n) => `1d000000-0000-4000-8000-${String(n).padStart(12, '0')}`);
  const record = (tag_id: string, name: string) => ({ tag_id, name });
  await send(
    key,
    'tags',
    ids.filter((_, n) => n % 4 === 0).map((id) => record(id, 'before')),
  );
  const before = await countDeadlocks(test.databaseUrl);
  const upload = (round: number) => {
    const order = round % 2 === 0 ? ids : ids.toReversed();
    const again = round % 3 === 0 ? order.slice(0, 50) : [];
    return send(
      key,
      'tags',
      [...order, ...again].map((id, at) => record(id, `${round}-${at}`)),
    );
  };
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, round) => untilStored(() => upload(round))),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const counts = answers.map(({ body }) => body.batches[0].data.counts);
  expect(counts.reduce((sum, { created }) => sum + created, 0)).toBe(300);
  for (const { received, created, updated, unchanged } of counts)
    expect(created + updated + unchanged).toBe(received);
  const rows = await storedRows(organisationId, 'tags');
  expect(rows.size).toBe(ids.length);
  for (const { name } of rows.values()) expect(name).toMatch(/^\d+-\d+$/);
  // A connection reports its counts when it ends or has been idle for a short time.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect((await countDeadlocks(test.databaseUrl)) - before).toBe(0);
});
