import { type Description, type Field, type Problem, readUuid, type Schema, text } from './fields.ts';

/**
 * How a field relates to a person. A record belongs to the people in its `identifies` fields. A field that
 * `identifies alone` counts only if all of those are empty: anybody can send an interaction with any `user_id`, so next to
 * a student it proves nothing about the user.
 */
export type Personal = 'identifies' | 'identifies alone' | 'describes' | 'no';

/** A stored field. Every field declares whether it is personal, because erasure depends on that. */
export interface StoredField<S extends Schema = Schema, R extends boolean = boolean> extends Field<S, R> {
  readonly personal: Personal;
}

/** A field for a person's id in any form. A UUID is stored in lower case, so that each person has one spelling. */
export function personId(options: Description & { codePointsMax: number }) {
  const field = text(options);
  return {
    ...field,
    plain: { ...field.plain, kind: 'personId' },
    read(value) {
      const read = field.read(value);
      return typeof read === 'string' ? (readUuid(read) ?? read) : read;
    },
  } satisfies Field;
}

/** Declares that the field contains a person's id. */
export function identifies<F extends Field>(field: F): F & { readonly personal: 'identifies' } {
  return { ...field, personal: 'identifies' };
}

/** Declares that the field contains the id of the record's person unless an `identifies` field names somebody. */
export function identifiesAlone<F extends Field>(field: F): F & { readonly personal: 'identifies alone' } {
  return { ...field, personal: 'identifies alone' };
}

/** Declares that the field describes a person, as a birthdate does. */
export function describes<F extends Field>(field: F): F & { readonly personal: 'describes' } {
  return { ...field, personal: 'describes' };
}

/** Declares that these fields may stay unchanged when a person is erased. */
export function impersonal<F extends Readonly<Record<string, Field>>>(
  fields: F,
): { [K in keyof F]: F[K] & { readonly personal: 'no' } } {
  const declared = Object.entries(fields).map(([name, field]) => [name, { ...field, personal: 'no' }]);
  return Object.fromEntries(declared);
}

/** The personal fields of a record type. */
export interface PersonalFields {
  /** The record belongs to the people in these fields. */
  readonly owners: readonly string[];
  /** The record belongs to the people in these fields if all owners are empty. */
  readonly alone: readonly string[];
  /** Both of the above. */
  readonly identifying: readonly string[];
  /** All fields that are emptied when a record stays without its person. */
  readonly all: readonly string[];
}

export function personalFieldsOf(fields: Readonly<Record<string, StoredField>>): PersonalFields {
  const of = (...kinds: readonly Personal[]) =>
    Object.entries(fields).flatMap(([name, { personal }]) => (kinds.includes(personal) ? name : []));
  return {
    owners: of('identifies'),
    alone: of('identifies alone'),
    identifying: of('identifies', 'identifies alone'),
    all: of('identifies', 'identifies alone', 'describes'),
  };
}

/** Returns the ids of the people that a record belongs to, according to the rule above. */
export function peopleOf(
  { owners, alone }: PersonalFields,
  textOf: (field: string) => string | null | undefined,
): string[] {
  const values = (fields: readonly string[]) => fields.flatMap((field) => textOf(field) ?? []);
  const named = values(owners);
  return named.length > 0 ? named : values(alone);
}

/**
 * Returns an SQL condition, for PostgreSQL and DuckDB, which is true if a row belongs to one of some people. `has` returns
 * a condition, never null, which is true if a field contains one of their ids. `column` returns the name of a field's
 * column.
 */
export function belongs(
  { owners, alone }: PersonalFields,
  has: (field: string) => string,
  column: (field: string) => string,
): string {
  const ofNobody = owners.map((field) => `${column(field)} is null`).join(' and ') || 'true';
  const conditions = [...owners.map(has), ...alone.map((field) => `(${ofNobody} and ${has(field)})`)];
  return conditions.length === 0 ? 'false' : `(${conditions.join(' or ')})`;
}

/** Returns a condition like `belongs` for rows of others that mention one of these people in an `alone` field. */
export function mentions(
  fields: PersonalFields,
  has: (field: string) => string,
  column: (field: string) => string,
): string {
  if (fields.alone.length === 0) return 'false';
  return `(not ${belongs(fields, has, column)} and (${fields.alone.map(has).join(' or ')}))`;
}

export const erasedPerson: Problem = {
  code: 'erased',
  message: 'belongs to a person who was erased; leave the record out, or have the suppression lifted',
};
