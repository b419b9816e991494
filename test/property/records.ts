import fc from 'fast-check';
import { type Field, isProblem } from '../../src/registry/fields.ts';
import { sentFields, type UploadType } from '../../src/registry/upload-types.ts';
import type { Sent, Values } from './oracle.ts';

/** A value as sent, and as stored. */
interface Pair {
  readonly sent: unknown;
  readonly stored: unknown;
}

const plain = (sent: unknown): Pair => ({ sent, stored: sent });
const pad = (value: number, length: number) => String(value).padStart(length, '0');

const instant = fc
  .record({
    day: fc.integer({ min: 1, max: 28 }),
    minute: fc.integer({ min: 0, max: 59 }),
    micro: fc.integer({ min: 0, max: 999_999 }),
  })
  .chain(({ day, minute, micro }) => {
    const stored = `2026-03-${pad(day, 2)}T12:${pad(minute, 2)}:07.${pad(micro, 6)}Z`;
    const bare = stored.slice(0, -1);
    return fc
      .constantFrom(
        stored,
        bare,
        `${bare}+00:00`,
        `${bare.replace('T12', 'T14')}+02:00`,
        `${bare.replace('T12', 't11')}-0100`,
      )
      .map((sent): Pair => ({ sent, stored }));
  });

const uuid = (id: fc.Arbitrary<string>) =>
  fc
    .tuple(id, fc.boolean())
    .map(([stored, upper]): Pair => ({ sent: upper ? stored.toUpperCase() : stored, stored }));

/** A UUID in lower, upper or mixed case, and values that differ from a UUID in one character. */
const anyCase = fc
  .constantFrom(
    ...['0e00abcd-0000-4000-8000-00000000000a', '0E00ABCD-0000-4000-8000-00000000000A'],
    ...['0E00abCD-0000-4000-8000-00000000000a', '0E00ABCG-0000-4000-8000-00000000000A'],
    ...['0E00ABCD-0000-4000-8000_00000000000A', '0E00ABCD-0000-4000-8000-0000000000[A'],
  )
  .map((sent): Pair => ({ sent, stored: uuidForm.test(sent) ? sent.toLowerCase() : sent }));
const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Valid values for each kind of column. There are so few that they repeat. */
const sound: Record<Field['column'], (field: Field) => fc.Arbitrary<Pair>> = {
  uuid: () =>
    uuid(fc.constantFrom('0e000000-0000-4000-8000-00000000000a', '0e000000-0000-4000-8000-00000000000b')),
  text: (field) =>
    'enum' in field.schema
      ? fc.constantFrom(...(field.schema.enum as string[]).filter((value) => value !== null)).map(plain)
      : field.plain?.kind === 'country'
        ? fc.constantFrom('gb', 'DE', 'uK').map((sent): Pair => ({ sent, stored: sent.toUpperCase() }))
        : field.plain?.kind === 'personId'
          ? fc.oneof(fc.constantFrom('Ab', "not-a-UUID-of-36-characters-o'brien-X").map(plain), anyCase)
          : fc
              .oneof(
                fc.constantFrom('a', 'b', 'o\'brien "x" \\ {},NULL'),
                fc
                  .string({ minLength: 1, maxLength: 20, unit: 'binary' })
                  .filter((s) => !s.includes('\0') && s.isWellFormed()),
              )
              .map(plain),
  date: () => fc.constantFrom('2004-02-29', '1999-12-31').map(plain),
  timestamptz: () => instant,
  numeric: () =>
    fc
      .oneof(fc.constantFrom(1, 0.1, 1e21, 12.345678901234), fc.double({ min: 0.01, max: 1e9, noNaN: true }))
      .map(plain),
  float8: () => fc.constantFrom(0, -12.5, 51.50722).map(plain),
  bool: () => fc.boolean().map(plain),
  jsonb: () =>
    fc.oneof(
      instant.map(({ sent }) => plain(sent)),
      fc.integer({ min: 1, max: 253_402_300_799_999 }).map(plain),
      fc.constantFrom(1_700_000_000, 99_999_999_999, 100_000_000_000, '2026-03-14T09:26Z').map(plain),
    ),
};

/** Returns whether the field's own reader, which knows the limits, accepts the value. */
const accepted = (field: Field) => (pair: Pair) => !isProblem(field.read(pair.sent));

const wrongType: Pair['sent'] = { not: 'a scalar' };

/** Generates a record with one of a few ids, sometimes with a fault, a missing reference or an unknown field. */
export function sentRecord(type: UploadType, referenced: Record<string, string[]>): fc.Arbitrary<Sent> {
  const fields = sentFields(type);
  const names = Object.keys(fields);
  const idField = type === 'interactions' ? undefined : (names[0] as string);
  const id = uuid(fc.integer({ min: 1, max: 6 }).map((n) => `1d000000-0000-4000-8000-00000000000${n}`));
  const values = fc.record(
    Object.fromEntries(
      names.map((name) => [name, name === idField ? id : pairOf(fields[name] as Field, referenced)]),
    ),
  );
  const fault = fc.option(fc.record({ field: fc.constantFrom(...names), missing: fc.boolean() }), {
    freq: 6,
  });
  const dangling = fc.option(fc.constant('0bad0000-0000-4000-8000-000000000000'), { freq: 8 });
  return fc.tuple(values, fault, dangling, fc.boolean()).map(([pairs, broken, nowhere, unknown]) => {
    const record: Record<string, unknown> = {};
    const stored: Values = {};
    const danglingFields: string[] = [];
    for (const name of names) {
      const field = fields[name] as Field;
      const pair = pairs[name] as Pair;
      const lost = nowhere !== null && field.references !== undefined;
      if (lost) danglingFields.push(name);
      record[name] = lost ? nowhere : pair.sent;
      stored[name] = pair.stored;
    }
    const faults = broken ? spoil(record, broken, fields[broken.field] as Field, stored) : [];
    if (unknown) record.colour = 'green';
    const hasId = idField !== undefined && !faults.some(({ field }) => field === idField);
    const idSent = hasId ? (stored[idField] as string) : null;
    return { record, id: idSent, faults, dangling: danglingFields, values: stored };
  });
}

/** Omits a field or gives it an invalid value. Omitting an optional field is not a fault. */
function spoil(
  record: Record<string, unknown>,
  broken: { field: string; missing: boolean },
  field: Field,
  stored: Values,
) {
  if (!broken.missing) {
    record[broken.field] = wrongType;
    return [{ field: broken.field, code: 'wrong_type' }];
  }
  delete record[broken.field];
  if (field.required) return [{ field: broken.field, code: 'required' }];
  stored[broken.field] = field.fallback ?? null;
  return [];
}

function pairOf(field: Field, referenced: Record<string, string[]>): fc.Arbitrary<Pair> {
  const value =
    field.references === undefined
      ? sound[field.column](field).filter(accepted(field))
      : uuid(fc.constantFrom(...(referenced[field.references] as string[])));
  if (field.required) return value;
  return fc.option(value, { nil: { sent: null, stored: field.fallback ?? null } });
}
