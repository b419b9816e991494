// @module-tag postgres-15

import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { binaryArray } from '../../src/postgres/binary/array-writer.ts';
import type { ColumnType, Scalar } from '../../src/registry/fields.ts';
import { readDateTime } from '../../src/registry/times.ts';
import { createTestDatabase } from '../support/database.ts';
import { isoOf } from '../support/iso-of.ts';

let client: pg.Client;
beforeAll(async () => {
  client = new pg.Client({ connectionString: await createTestDatabase() });
  await client.connect();
  await client.query("set timezone = 'UTC'");
});
afterAll(() => client.end());

/** Returns the values that PostgreSQL reads from our binary array, and the same values when they are sent as text. */
async function read(type: ColumnType, values: readonly (Scalar | null)[], texts: readonly (string | null)[]) {
  const ours = binaryArray(type, values);
  const { rows } = await client.query<{ ours: (string | null)[]; theirs: (string | null)[] }>(
    `select array(select v::text from unnest($1::${type}[]) with ordinality as u(v, n) order by n) as ours,
            array(select v::${type}::text from unnest($2::text[]) with ordinality as u(v, n) order by n) as theirs`,
    [ours, texts],
  );
  return rows[0] as { ours: (string | null)[]; theirs: (string | null)[] };
}

it.each<[ColumnType, fc.Arbitrary<Scalar>]>([
  [
    'numeric',
    fc.oneof(
      fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => (value === 0 ? 0 : value)),
      fc.integer(),
      fc.integer({ min: -1e9, max: 1e9 }).map((cents) => cents / 100),
      fc.constantFrom(
        1e-7,
        5e-324,
        1.7976931348623157e308,
        123456789012345.67,
        0.1 + 0.2,
        1e15,
        1e21,
        99999999999.9999,
      ),
      fc.constantFrom(
        1 / 30_000,
        0.000033333333333333335,
        0.0001,
        0.00001,
        9999,
        10000,
        10000.0001,
        99999999,
        100000000,
        999999999999.9999,
      ),
    ),
  ],
  ['float8', fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => (value === 0 ? 0 : value))],
  ['uuid', fc.uuid()],
  ['bool', fc.boolean()],
  [
    'text',
    fc
      .oneof(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: 'grapheme', minLength: 60, maxLength: 70 }),
        fc.constantFrom('', 'NULL', '{}', 'x'.repeat(64), 'x'.repeat(65), 'é'.repeat(64)),
      )
      .filter((text) => !text.includes('\0') && text.isWellFormed()),
  ],
])('an array of %s reaches PostgreSQL unchanged, including nulls', async (type, value) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(value), { minLength: 1, maxLength: 50 }), async (values) => {
      const texts = values.map((item) => (item === null ? null : String(item)));
      const { ours, theirs } = await read(type, values, texts);
      expect(ours).toEqual(theirs);
    }),
    { numRuns: 100 },
  );
});

it('instants and days reach PostgreSQL unchanged, from the year 1 to 9999', async () => {
  const texts = [
    '0001-01-01T00:00:00Z',
    '1714-09-05T23:59:59.999999Z',
    '1999-12-31T23:59:59.999999Z',
    '2000-01-01T00:00:00Z',
    '2026-03-14T09:26:53.589793Z',
    '2285-04-12T00:00:00.000001Z',
    '9999-12-31T23:59:59.999999Z',
  ];
  const instants = texts.map((text) => readDateTime(text) as number | bigint);
  expect(instants.map((instant) => typeof instant)).toContain('bigint');
  expect(instants.map(isoOf).map((iso) => Date.parse(iso))).toEqual(texts.map((text) => Date.parse(text)));
  const { ours, theirs } = await read('timestamptz', instants, texts);
  expect(ours).toEqual(theirs);
  const days = await read(
    'date',
    [-730_119, -1, 0, 1_520, 2_921_939],
    ['0001-01-01', '1999-12-31', '2000-01-01', '2004-02-29', '9999-12-31'],
  );
  expect(days.ours).toEqual(days.theirs);
});
