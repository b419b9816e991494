import { type Description, type Field, type Problem, readUuid, type Schema, text } from './fields.ts';

/**
 * How a field relates to a person. A record belongs to the people in its `identifies` fields. A field that
 * `identifies alone` counts only if all of those are empty: anybody can send an interaction with any `user_id`, so next to
 * a student it proves nothing about the user.
 */
type Personal = 'identifies' | 'identifies alone' | 'describes' | 'no';

/** Every field declares whether it is personal, because erasure depends on that. */
export interface StoredField<S extends Schema = Schema, R extends boolean = boolean> extends Field<S, R> {
  readonly personal: Personal;
}

/** A UUID is stored in lower case, so that each person has one spelling. */
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

function declaring<P extends Personal>(personal: P) {
  return <F extends Field>(field: F): F & { readonly personal: P } => ({ ...field, personal });
}

export const identifies = declaring('identifies');
export const identifiesAlone = declaring('identifies alone');
export const describes = declaring('describes');

/** These fields may stay unchanged when a person is erased. */
export function impersonal<F extends Readonly<Record<string, Field>>>(
  fields: F,
): { [K in keyof F]: F[K] & { readonly personal: 'no' } } {
  const declared = Object.entries(fields).map(([name, field]) => [name, { ...field, personal: 'no' }]);
  return Object.fromEntries(declared);
}

export interface PersonalFields {
  readonly owners: readonly string[];
  /** The record belongs to these people if all owners are empty. */
  readonly alone: readonly string[];
  readonly identifying: readonly string[];
  /** These fields are emptied when a record stays without its person. */
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

export function peopleOf(
  { owners, alone }: PersonalFields,
  textOf: (field: string) => string | null | undefined,
): string[] {
  const values = (fields: readonly string[]) => fields.flatMap((field) => textOf(field) ?? []);
  const named = values(owners);
  return named.length > 0 ? named : values(alone);
}

/**
 * An SQL condition, for PostgreSQL and DuckDB, which is true if a row belongs to one of some people. `has` returns a
 * condition, never null, which is true if a field contains one of their ids.
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

/** A condition like `belongs`, for rows of others that mention one of these people in an `alone` field. */
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
