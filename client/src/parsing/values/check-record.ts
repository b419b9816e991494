import { resources, type UploadType } from '../../generated/resources.ts';
import { type FieldSchema, schemas } from '../../generated/schemas.ts';
import { type Rule, ruleFinder } from './broken-rule.ts';
import { itemField, namedBy } from './derived-id.ts';
import { formats } from './formats.ts';

/** One invalid field in a record, with the code that the service would return. */
export interface FieldProblem {
  readonly field: string | null;
  readonly code: string;
  readonly message: string;
}

const noProblems: readonly FieldProblem[] = [];

/**
 * Returns a function that checks a record on its own against the schema in the service's API description. A merged record may
 * leave out all fields except its id.
 */
export function checkerOf(
  type: UploadType,
  isMerged = false,
): (record: Record<string, unknown>) => readonly FieldProblem[] {
  const { properties, required } = schemas[type];
  const fields = Object.entries(properties).map(([field, schema]) => {
    const isRequired = required.includes(field);
    const mayBeAbsent = !isRequired || (isMerged && field !== resources[type].idField);
    return { field, schema, isRequired, mayBeAbsent, brokenRule: ruleFinder(schema) };
  });
  return (record) => {
    let problems: FieldProblem[] | undefined;
    for (const { field, schema, isRequired, mayBeAbsent, brokenRule } of fields) {
      const value = record[field];
      const rule = value === undefined ? (mayBeAbsent ? undefined : 'required') : brokenRule(value);
      if (rule === undefined) continue;
      problems ??= [];
      problems.push({ field, ...explain(field, rule, value, schema, isRequired) });
    }
    return problems ?? noProblems;
  };
}

/** Describes a broken rule. Like the service, the checker reports only the first problem with each field. */
function explain(field: string, rule: Rule, value: unknown, schema: FieldSchema, isRequired: boolean) {
  if (isRequired && (value === undefined || value === null || value === ''))
    return { code: 'required', message: 'is required and must not be null or empty' };
  const { code, message } = reasonOf(rule, schema, value);
  if (value === '') return { code, message: 'is empty; send null or leave the field out' };
  const canDerive =
    rule === 'format' && schema.format === 'uuid' && (field === itemField || namedBy(field) !== undefined);
  return {
    code,
    message: canDerive ? `${message}; if the export has none, derive them with --id-from` : message,
  };
}

function reasonOf(rule: Rule, schema: FieldSchema, value: unknown): { code: string; message: string } {
  if (schema.type.includes('integer') && !namesNoDay(value)) return badEventTime(value);
  switch (rule) {
    case 'type':
      return {
        code: 'wrong_type',
        message: typeMessages.find(([type]) => schema.type.includes(type))?.[1] ?? 'has the wrong type',
      };
    case 'format':
      return {
        code: 'invalid_format',
        message: namesNoDay(value)
          ? 'is not a day in the calendar; check its year, month and day'
          : (formatMessages[schema.format ?? ''] ?? `must be a ${schema.format}`),
      };
    case 'maxLength':
      return { code: 'too_long', message: `must be at most ${schema.maxLength} characters long` };
    case 'pattern':
      return schema.pattern?.includes('\\u0000')
        ? { code: 'invalid_characters', message: 'must not contain a NUL character' }
        : {
            code: 'invalid_format',
            message:
              patternMessages[schema.pattern ?? ''] ??
              `must be a ${schema.description ?? `text like ${schema.pattern}`}`,
          };
    case 'enum':
      return {
        code: 'invalid_value',
        message: `must be one of ${schema.enum?.filter((value) => value !== null).join(', ')}`,
      };
    default:
      return { code: 'out_of_range', message: `must be ${rangeOf(schema)}` };
  }
}

/** Describes an invalid event time, the only field that accepts either an integer or a string. */
function badEventTime(value: unknown): { code: string; message: string } {
  const isOfType = typeof value === 'number' || typeof value === 'string';
  return {
    code: isOfType ? 'invalid_format' : 'wrong_type',
    message:
      'must be a positive integer (epoch seconds, or milliseconds from 100000000000 on) or an ISO 8601 date-time, up to the year 9999',
  };
}

/** Returns whether the value is well-formed but the day does not exist, such as 30 February. */
function namesNoDay(value: unknown): boolean {
  return (
    typeof value === 'string' && /^\d{4}-\d\d-\d\d($|T)/i.test(value) && !formats.date(value.slice(0, 10))
  );
}

const typeMessages = [
  ['number', 'must be a number, not a number in a string'],
  ['boolean', 'must be true or false, without quotes'],
  ['string', 'must be a string'],
] as const;

const formatMessages: Readonly<Record<string, string>> = {
  uuid: 'must be a UUID, such as 5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
  date: 'must be a valid date in the form YYYY-MM-DD, such as 2004-02-29',
  'date-time': 'must be an ISO 8601 date-time with a T before the time, such as 2026-03-14T09:26:53Z',
};

/** These are the service's messages, so that `check` and `upload` report an invalid value in the same words. */
const patternMessages: Readonly<Record<string, string>> = {
  '^[A-Za-z]{2}$': 'must be a country code of two letters, such as GB',
};

export function rangeOf({ minimum, exclusiveMinimum, maximum }: FieldSchema): string {
  const bounds = [
    exclusiveMinimum === undefined ? [] : `greater than ${exclusiveMinimum}`,
    minimum === undefined ? [] : `${minimum} or more`,
    maximum === undefined ? [] : `${maximum} or less`,
  ];
  return bounds.flat().join(' and ');
}
