// registry/: pure code that defines field kinds, record types and their validation.

import { limits } from '../limits.ts';
import { readDate, readDateTime } from './times.ts';

/**
 * A field's value in the form that the field's column stores. Days are numbers. Instants are numbers, or bigints if a number
 * would not be exact (see times.ts).
 */
export type Scalar = string | number | bigint | boolean;

/** There is one object per reason and field kind, so a failure allocates nothing. */
export interface Problem {
  readonly code: ProblemCode;
  readonly message: string;
}

export const problemCodes = [
  'required',
  'wrong_type',
  'invalid_format',
  'invalid_value',
  'invalid_characters',
  'too_long',
  'out_of_range',
  'reference_not_found',
  'not_an_object',
  'nested_too_deeply',
  'record_too_large',
  'repeated_field',
  'erased',
] as const;
type ProblemCode = (typeof problemCodes)[number];

/**
 * `T` is the TypeScript type of the values. `describes` passes it to the compiler and is never set. A schema library
 * would do the same, but loading one added 0.2 s to every command.
 */
export interface Schema<T = unknown> {
  readonly type: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly [keyword: string]: unknown;
  readonly describes?: T;
}

type Described<S extends Schema> = S extends Schema<infer T> ? T : never;

export type ColumnType = 'uuid' | 'text' | 'date' | 'timestamptz' | 'numeric' | 'float8' | 'bool' | 'jsonb';

/**
 * `schema` is published in openapi.json. `read` checks a value that is present and returns it in its stored form. The
 * two are defined together so that they agree, and a property test compares them.
 */
export interface Field<S extends Schema = Schema, R extends boolean = boolean> {
  readonly schema: S;
  readonly column: ColumnType;
  readonly read: (value: unknown) => Scalar | Problem;
  readonly required: R;
  /** A record of this type must already exist with this id, according to the specification's dependency table. */
  readonly references?: string;
  /** Stored if the field is omitted. The default is null. */
  readonly fallback?: Scalar;
  /** How the fast path reads the value from a body's bytes (see plain-reader.ts). */
  readonly plain?: Plain;
}

export type Plain =
  | { readonly kind: 'uuid' | 'country' | 'date' | 'dateTime' | 'number' | 'boolean' | 'eventTimestamp' }
  | { readonly kind: 'text' | 'personId'; readonly bytesMax: number }
  | { readonly kind: 'choice'; readonly values: readonly Uint8Array[] };

/** Optional fields may be absent or null. */
export type RecordOf<F extends Record<string, Field>> = {
  [K in keyof F as F[K] extends Field<Schema, true> ? K : never]: Described<F[K]['schema']>;
} & {
  [K in keyof F as F[K] extends Field<Schema, true> ? never : K]?: Described<F[K]['schema']> | null;
};

export function isProblem(value: Scalar | Problem): value is Problem {
  return typeof value === 'object';
}

export const required: Problem = { code: 'required', message: 'is required and must not be null or empty' };

const wantsString: Problem = { code: 'wrong_type', message: 'must be a string' };
const notUuid: Problem = {
  code: 'invalid_format',
  message: 'must be a UUID of hyphenated hexadecimal digits, such as 5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
};

/** Indexed by character: a digit or lower-case letter is `lower`, an upper-case letter is `upper`, and others are 0. */
const lower = 1;
const upper = 2;
const hexKind = new Uint8Array(128);
for (const character of '0123456789abcdef') hexKind[character.charCodeAt(0)] = lower;
for (const character of 'ABCDEF') hexKind[character.charCodeAt(0)] = upper;

/** In lower case. A regular expression would take 2.7 times as long, and a record has up to five UUIDs. */
export function readUuid(value: string): string | undefined {
  if (value.length !== 36 || !isHyphenated(value)) return undefined;
  let seen = 0;
  for (let at = 0; at < 36; at++) {
    if (at === 8 || at === 13 || at === 18 || at === 23) at++;
    const kind = hexKind[value.charCodeAt(at)];
    if (!kind) return undefined;
    seen |= kind;
  }
  return seen & upper ? value.toLowerCase() : value;
}

function isHyphenated(value: string): boolean {
  const hyphen = 0x2d;
  return (
    value.charCodeAt(8) === hyphen &&
    value.charCodeAt(13) === hyphen &&
    value.charCodeAt(18) === hyphen &&
    value.charCodeAt(23) === hyphen
  );
}

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && readUuid(value) !== undefined;
}

export interface Description {
  readonly description?: string;
}

export function uuid(options: Description = {}) {
  return {
    schema: { type: 'string', format: 'uuid', ...options } as Schema<string>,
    column: 'uuid',
    plain: { kind: 'uuid' },
    required: true,
    read(value) {
      if (typeof value !== 'string') return wantsString;
      return readUuid(value) ?? notUuid;
    },
  } satisfies Field;
}

/** A record of this type must already be stored. */
export function reference<T extends string>(references: T, options: Description = {}) {
  const description = options.description ?? `must reference an existing record of \`${references}\``;
  const field = uuid({ description });
  // Upload tools use this to find out which types must be uploaded first.
  return { ...field, schema: { ...field.schema, 'x-references': references }, references } satisfies Field;
}

const badCharacters: Problem = {
  code: 'invalid_characters',
  message: 'must not contain a NUL character or half of a surrogate pair',
};
/** UTF-8 cannot encode half of a surrogate pair, so the pattern does not have to exclude it. */
const withoutNul = '^[^\\u0000]*$';

export function text(options: Description & { codePointsMax?: number } = {}) {
  const { codePointsMax = limits.textCodePointsMax, ...rest } = options;
  const tooLong: Problem = { code: 'too_long', message: `must be at most ${codePointsMax} characters long` };
  return {
    schema: {
      type: 'string',
      minLength: 1,
      maxLength: codePointsMax,
      pattern: withoutNul,
      ...rest,
    } as Schema<string>,
    column: 'text',
    // A string never has more characters than bytes.
    plain: { kind: 'text', bytesMax: codePointsMax },
    required: true,
    read(value) {
      if (typeof value !== 'string') return wantsString;
      if (value.length > codePointsMax && countCodePoints(value) > codePointsMax) return tooLong;
      return value.includes('\0') || !value.isWellFormed() ? badCharacters : value;
    },
  } satisfies Field;
}

function countCodePoints(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

const countryPattern = /^[A-Za-z]{2}$/;
const notCountry: Problem = {
  code: 'invalid_format',
  message: 'must be a country code of two letters, such as GB',
};

export function country(options: Description = {}) {
  return {
    schema: {
      type: 'string',
      pattern: countryPattern.source,
      description: '2-letter country code',
      ...options,
    } as Schema<string>,
    column: 'text',
    plain: { kind: 'country' },
    required: true,
    read(value) {
      if (typeof value !== 'string') return wantsString;
      return countryPattern.test(value) ? value.toUpperCase() : notCountry;
    },
  } satisfies Field;
}

const noSuchDay: Problem = {
  code: 'invalid_format',
  message: 'is not a day in the calendar; check its year, month and day',
};

/** Whether only the day is invalid, as in 30 February. */
function namesNoDay(value: string): boolean {
  return /^\d{4}-\d\d-\d\d($|T)/i.test(value) && readDate(value.slice(0, 10)) === undefined;
}

const notDate: Problem = {
  code: 'invalid_format',
  message: 'must be a valid date in the form YYYY-MM-DD, such as 2004-02-29',
};

export function date(options: Description = {}) {
  return {
    schema: { type: 'string', format: 'date', ...options } as Schema<string>,
    column: 'date',
    plain: { kind: 'date' },
    required: true,
    read(value) {
      if (typeof value !== 'string') return wantsString;
      return readDate(value) ?? (namesNoDay(value) ? noSuchDay : notDate);
    },
  } satisfies Field;
}

const notDateTime: Problem = {
  code: 'invalid_format',
  message:
    'must be an ISO 8601 date-time with a T before the time, such as 2026-03-14T09:26:53Z; without an offset, it is read as UTC',
};

export function dateTime(options: Description = {}) {
  return {
    schema: { type: 'string', format: 'date-time', ...options } as Schema<string>,
    column: 'timestamptz',
    plain: { kind: 'dateTime' },
    required: true,
    read(value) {
      if (typeof value !== 'string') return wantsString;
      return readDateTime(value) ?? (namesNoDay(value) ? noSuchDay : notDateTime);
    },
  } satisfies Field;
}

const wantsNumber: Problem = { code: 'wrong_type', message: 'must be a number, not a number in a string' };
const notFinite: Problem = { code: 'out_of_range', message: 'must be a finite number' };

interface Range {
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

/** Money and rates are stored as decimals so that sums are exact. */
export function amount(options: Range & Description = {}) {
  return { ...number(options), column: 'numeric' } satisfies Field;
}

/** Measurements are stored as doubles, like JSON numbers. */
export function number(options: Range & Description = {}) {
  const { minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Infinity } = options;
  const outOfRange: Problem = { code: 'out_of_range', message: `must be ${describeRange(options)}` };
  return {
    schema: { type: 'number', ...options } as Schema<number>,
    column: 'float8',
    plain: { kind: 'number' },
    required: true,
    read(value) {
      if (typeof value !== 'number') return wantsNumber;
      if (!Number.isFinite(value)) return notFinite;
      if (value < minimum || value > maximum || value <= exclusiveMinimum) return outOfRange;
      return value === 0 ? 0 : value; // JSON has a negative zero, but a stored amount does not.
    },
  } satisfies Field;
}

function describeRange({ minimum, exclusiveMinimum, maximum }: Range): string {
  if (minimum !== undefined && maximum !== undefined) return `from ${minimum} to ${maximum}`;
  const bounds = [
    exclusiveMinimum === undefined ? [] : `greater than ${exclusiveMinimum}`,
    minimum === undefined ? [] : `${minimum} or more`,
    maximum === undefined ? [] : `${maximum} or less`,
  ];
  return bounds.flat().join(' and ') || 'a number';
}

export function perPage(what: string, maximum: number, fallback: number) {
  return countUpTo(maximum, fallback, `${what} per page`);
}

export function countUpTo(maximum: number, fallback: number, what = 'how many') {
  return wholeNumber({ minimum: 1, maximum, description: `${what}, default ${fallback}` });
}

/** Written in digits, as in a query parameter. */
export function wholeNumber(options: Required<Pick<Range, 'minimum' | 'maximum'>> & Description) {
  const { minimum, maximum } = options;
  const outOfRange: Problem = {
    code: 'out_of_range',
    message: `must be a whole number from ${minimum} to ${maximum}`,
  };
  return {
    schema: { type: 'integer', ...options } as Schema<number>,
    column: 'numeric',
    required: true,
    read(value) {
      const read = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
      return read >= minimum && read <= maximum ? read : outOfRange;
    },
  } satisfies Field;
}

const notFlag: Problem = { code: 'invalid_value', message: 'must be true or false' };

/** Written as text, as in a query parameter. */
export function flag(options: Description & { readonly examples?: readonly boolean[] } = {}) {
  return {
    schema: { type: 'boolean', ...options } as Schema<boolean>,
    column: 'bool',
    required: true,
    read: (value) => (value === 'true' ? true : value === 'false' ? false : notFlag),
  } satisfies Field;
}

const wantsBoolean: Problem = { code: 'wrong_type', message: 'must be true or false, without quotes' };

export function boolean(options: Description = {}) {
  return {
    schema: { type: 'boolean', ...options } as Schema<boolean>,
    column: 'bool',
    plain: { kind: 'boolean' },
    required: true,
    read: (value) => (typeof value === 'boolean' ? value : wantsBoolean),
  } satisfies Field;
}

export function oneOf<const V extends string>(values: readonly V[], options: Description = {}) {
  const notOneOf: Problem = {
    code: 'invalid_value',
    message: values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(', ')}`,
  };
  const known: ReadonlySet<unknown> = new Set(values);
  return {
    schema: { type: 'string', enum: values, ...options } as Schema<V>,
    column: 'text',
    plain: { kind: 'choice', values: values.map((value) => new TextEncoder().encode(value)) },
    required: true,
    read(value) {
      if (typeof value !== 'string') return wantsString;
      return known.has(value) ? (value as V) : notOneOf;
    },
  } satisfies Field;
}

/** The field may be omitted or null. Free text may also be an empty string, which is a value and differs from null. */
export function optional<F extends Field>(field: F): Omit<F, 'required'> & { required: false } {
  const { minLength: _, ...schema } = field.schema;
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  const nullable = {
    ...schema,
    type: [...types, 'null'],
    ...(schema.enum && { enum: [...schema.enum, null] }),
  };
  return { ...field, schema: nullable, required: false, read: readOptional(field) };
}

/** Exports write empty cells as empty strings. If the field allows none, the message explains what to do. */
function readOptional({ read }: Field): Field['read'] {
  const ofEmpty = read('');
  if (!isProblem(ofEmpty)) return read;
  const empty: Problem = { code: ofEmpty.code, message: 'is empty; send null or leave the field out' };
  return (value) => (value === '' ? empty : read(value));
}

/** Text in a published format. Every other value, including the empty string, fails with `problem`. */
export function optionalForm(form: RegExp, problem: Problem, schema: Description & Partial<Schema<string>>) {
  return {
    ...optional({ ...text(), schema: { type: 'string', pattern: form.source, ...schema } as Schema<string> }),
    read: (value) => (typeof value === 'string' && form.test(value) ? value : problem),
  } satisfies Field;
}

/** One value per field in the registry's order, in stored form. */
export type Row = (Scalar | null)[];

/** `field` is null if the problem is with the record as a whole. */
export interface FieldProblem extends Problem {
  readonly field: string | null;
}

type Checked =
  | { readonly row: Row; readonly problems?: undefined }
  | { readonly row?: undefined; readonly problems: readonly FieldProblem[] };

const repeatedField: Problem = {
  code: 'repeated_field',
  message: 'is given more than once in this record; send it once',
};

/**
 * How records are stored over those with the same ids: as a whole, or field by field. When merging, a field that is left
 * out keeps its stored value.
 */
export const modes = ['replace', 'merge'] as const;
export type Mode = (typeof modes)[number];

/**
 * The check takes one value per field in the registry's order, or undefined if a field is absent. When merging, only the
 * first field has to be there.
 */
export function makeCheck(fields: Readonly<Record<string, Field>>, mode: Mode = 'replace') {
  const inOrder = Object.values(fields);
  const mayBeAbsent = (at: number) => mode === 'merge' && at > 0;
  const nameProblem = Object.keys(fields).map(problemNamer);
  return function check(values: readonly unknown[], repeated: readonly number[]): Checked {
    const row: (Scalar | Problem | null)[] = new Array(inOrder.length);
    let isBad = repeated.length > 0;
    for (let at = 0; at < inOrder.length; at++) {
      const field = inOrder[at] as Field;
      const isLeftOut = values[at] === undefined && mayBeAbsent(at);
      const value = isLeftOut ? (field.fallback ?? null) : readField(field, values[at]);
      row[at] = value;
      if (value !== null && isProblem(value)) isBad = true;
    }
    if (!isBad) return { row: row as Row };
    for (const position of repeated) row[position] = repeatedField;
    const problems = row.flatMap((value, at) =>
      value !== null && isProblem(value) ? (nameProblem[at]?.(value) ?? []) : [],
    );
    return { problems: problems.slice(0, limits.errorsPerRecordMax) };
  };
}

/** Each field and problem has one object, which is copied between threads only once, however many records fail. */
function problemNamer(field: string): (problem: Problem) => FieldProblem {
  const named = new WeakMap<Problem, FieldProblem>();
  return (problem) => {
    const known = named.get(problem) ?? { field, ...problem };
    named.set(problem, known);
    return known;
  };
}

function readField({ required: isRequired, fallback, read }: Field, value: unknown): Scalar | Problem | null {
  const isMissing = value === undefined || value === null || (isRequired && value === '');
  if (isMissing) return isRequired ? required : (fallback ?? null);
  return read(value);
}

/** Always a UUID, so that no other input is echoed. */
export function sentId(value: unknown): string | null {
  return isUuid(value) ? value.toLowerCase() : null;
}

export const unreadableRecord = {
  not_an_object: {
    field: null,
    code: 'not_an_object',
    message: 'each record must be a JSON object with the fields of its type',
  },
  nested_too_deeply: {
    field: null,
    code: 'nested_too_deeply',
    message: 'a record is nested too deeply; send a flat object with the fields of its type',
  },
  too_many_fields: {
    field: null,
    code: 'record_too_large',
    message: `a record may have at most ${limits.fieldsPerRecordMax} fields; leave out fields that its type does not have`,
  },
  too_large: {
    field: null,
    code: 'record_too_large',
    message: `a record may take at most ${limits.recordBytesMax} bytes of JSON; shorten it, or leave out fields that its type does not have`,
  },
} as const satisfies Record<string, FieldProblem>;
