import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeCheck } from '../../../src/registry/fields.ts';
import { interaction, interactionExample } from '../../../src/registry/interaction.ts';
import { resources } from '../../../src/registry/resources.ts';
import { type UploadType, uploadTypes } from '../../src/generated/resources.ts';
import { checkerOf } from '../../src/parsing/values/check-record.ts';

const described = {
  ...resources,
  interactions: { fields: interaction, example: interactionExample },
};

/** Returns the service's own check, for comparison. */
function serverCheckOf(type: UploadType) {
  const fields = Object.keys(described[type].fields);
  const check = makeCheck(described[type].fields);
  return (record: Record<string, unknown>) =>
    check(
      fields.map((field) => record[field]),
      [],
    ).problems ?? [];
}

const digits = (max: number) => fc.integer({ min: 0, max }).map((number) => String(number).padStart(2, '0'));
const dateTime = fc
  .tuple(
    fc.constantFrom('2026', '2024', '1900', '0000', '0001', '9999'),
    digits(14),
    digits(32),
    fc.constantFrom('T', 't', ' ', ''),
    digits(25),
    digits(61),
    fc.constantFrom('', ':00', ':59.123456789', ':60', ':5', ':01.'),
    fc.constantFrom('', 'Z', 'z', '+01', '-0130', '+23:59', '-24:00', '+1'),
  )
  .map(([year, month, day, t, hour, minute, seconds, offset]) =>
    t === '' ? `${year}-${month}-${day}` : `${year}-${month}-${day}${t}${hour}:${minute}${seconds}${offset}`,
  );

const value = fc.oneof(
  fc.constantFrom(
    undefined,
    null,
    '',
    ' ',
    true,
    false,
    0,
    -1,
    0.5,
    90,
    90.1,
    181,
    -181,
    'SHOP',
    1_700_000_000,
    253_402_300_800_000,
    'GB',
    'gb',
    'GBR',
    '5',
    [],
    {},
  ),
  fc.constantFrom(
    '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
    '5F0C2D3E-8A41-4C5B-9D77-2B1E6F8A9C01',
    '5f0c2d3e8a414c5b9d772b1e6f8a9c01',
  ),
  fc.constantFrom(
    'a\0b',
    'x'.repeat(1_000),
    'x'.repeat(1_001),
    '😀'.repeat(1_000),
    `\0${'x'.repeat(20_001)}`,
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  dateTime,
);

describe('the check of records without the service', () => {
  it.each(uploadTypes)('of %s finds the same as the service: the same fields, the same codes', (type) => {
    const check = checkerOf(type);
    const serverCheck = serverCheckOf(type);
    const { fields, example } = described[type];
    expect(check(example as Record<string, unknown>)).toEqual([]);
    const record = fc.record(Object.fromEntries(Object.keys(fields).map((field) => [field, value])));
    const codes = (problems: readonly { field: string | null; code: string }[]) =>
      problems.slice(0, 5).map(({ field, code }) => `${field} ${code}`);
    fc.assert(
      fc.property(record, fc.subarray(Object.keys(fields)), (values, changed) => {
        const each = { ...example, ...Object.fromEntries(changed.map((field) => [field, values[field]])) };
        expect(codes(check(each))).toEqual(codes(serverCheck(each)));
      }),
      { numRuns: 500 },
    );
  });

  it('explains what to do', () => {
    const problems = checkerOf('branches')({
      branch_id: 'B1',
      name: 'x',
      region: 'England',
      latitude: 91,
      is_deleted: 'no',
      created: '',
    });
    expect(problems.map(({ field, code, message }) => `${field} ${code}: ${message}`)).toEqual([
      'branch_id invalid_format: must be a UUID, such as 5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01; if the export has none, derive them with --id-from',
      'shop_id required: is required and must not be null or empty',
      'region invalid_format: must be a country code of two letters, such as GB',
      'latitude out_of_range: must be -90 or more and 90 or less',
      'created invalid_format: is empty; send null or leave the field out',
      'is_deleted wrong_type: must be true or false, without quotes',
    ]);
  });
});
