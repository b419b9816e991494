import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import { isProblem, makeCheck } from './fields.ts';
import { interaction, interactionExample } from './interaction.ts';
import { idFieldOf, type Resource, referencesOf, resources, resourceTypes } from './resources.ts';
import { sentFields, uploadTypes } from './upload-types.ts';

function problemsOf(fields: Resource['fields'], record: object) {
  const sent: Readonly<Record<string, unknown>> = { ...record };
  expect(Object.keys(sent).filter((name) => !(name in fields))).toEqual([]);
  return makeCheck(fields)(
    Object.keys(fields).map((name) => sent[name]),
    [],
  ).problems;
}

it('has the fourteen types', () => {
  expect(resourceTypes.toSorted()).toEqual([
    'branches',
    'categories',
    'courses',
    'customers',
    'institutes',
    'keywords',
    'offers',
    'shop-categories',
    'shop-keywords',
    'shop-tags',
    'shops',
    'student-favourites',
    'tags',
    'transactions',
  ]);
});

it('reports the same problem with the same object each time, so that failures can be grouped without copies', () => {
  const values = () => [
    true,
    false,
    {},
    [],
    0,
    -1,
    1.5,
    Number.POSITIVE_INFINITY,
    'x',
    '\0',
    '2026-02-30',
    'x'.repeat(100_000),
  ];
  for (const type of uploadTypes)
    for (const [name, { read }] of Object.entries(sentFields(type))) {
      const [first, second] = [values().map(read), values().map(read)];
      for (const [at, read] of first.entries())
        if (isProblem(read)) expect(second[at], `${type}.${name} of value ${at}`).toBe(read);
    }
});

it('refers to the types in the dependency table, and to nothing else', () => {
  const table = resourceTypes.flatMap((type) =>
    referencesOf(type).map((reference) => `${type}.${reference.field} -> ${reference.type}`),
  );
  expect(table.toSorted()).toEqual([
    'branches.shop_id -> shops',
    'offers.shop_id -> shops',
    'shop-categories.category_id -> categories',
    'shop-categories.shop_id -> shops',
    'shop-keywords.keyword_id -> keywords',
    'shop-keywords.shop_id -> shops',
    'shop-tags.shop_id -> shops',
    'shop-tags.tag_id -> tags',
    'student-favourites.shop_id -> shops',
    'student-favourites.student_id -> customers',
    'transactions.shop_id -> shops',
  ]);
});

describe.each(resourceTypes)('%s', (type) => {
  const { fields, example }: Resource = resources[type];
  const names = Object.keys(fields);

  it('begins with a required UUID and ends with created, updated and is_deleted', () => {
    expect(fields[idFieldOf(type)]).toMatchObject({ column: 'uuid', required: true });
    expect(names.slice(-3)).toEqual(['created', 'updated', 'is_deleted']);
  });

  it('has an example that passes its check and refers to other examples', () => {
    expect(problemsOf(fields, example)).toBeUndefined();
    for (const { field, type: target } of referencesOf(type)) {
      const other: Record<string, unknown> = resources[target].example;
      expect((example as Record<string, unknown>)[field]).toBe(other[idFieldOf(target)]);
    }
  });
});

it('the example of an interaction passes its check', () => {
  expect(problemsOf(interaction, interactionExample)).toBeUndefined();
});

/** Generates any JSON value, with a bias towards values that are almost valid. */
const anyJson = fc.oneof(
  fc.jsonValue(),
  fc.uuid(),
  fc.uuid().map((id) => id.toUpperCase()),
  fc
    .date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-12-31') })
    .map((date) => date.toISOString()),
  fc
    .date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-12-31') })
    .map((date) => date.toISOString().slice(0, 10)),
  fc.constantFrom(
    '2026-02-30T00:00:00Z',
    '2026-02-30',
    'GB',
    'gb',
    'GBR',
    'SERVICE',
    'WEB',
    'TAG',
    'SHARE',
    '',
    0,
    -0,
    1,
    -1,
    90,
    90.5,
    1e308,
  ),
  fc.integer({ min: -10, max: 3e14 }),
  fc.string({ minLength: 990, maxLength: 1_010, unit: 'grapheme' }),
);

const published = [...Object.values<Resource>(resources).map(({ fields }) => fields), interaction].flatMap(
  (fields) => Object.entries(fields),
);

it.each(published)('the published schema of %s and the check that runs accept the same', (_name, field) => {
  const schema = Compile(field.schema);
  fc.assert(
    fc.property(anyJson, (value) => {
      // Null, empty and missing values are handled by the record, not by the field. A schema cannot exclude NUL from
      // strings.
      fc.pre(value !== null && value !== '' && !(typeof value === 'string' && value.includes('\0')));
      const accepted = !isProblem(field.read(value));
      const published = schema.Check(value);
      // A date-time may omit its offset or its seconds, which the standard format does not allow.
      const wider = field.column === 'timestamptz' || field.column === 'jsonb';
      expect(accepted).toBe(wider && accepted ? true : published);
    }),
    { numRuns: 300 },
  );
});
