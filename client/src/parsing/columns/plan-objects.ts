import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { type CellProblem, type Convert, jsonConverterOf } from '../values/convert-cell.ts';
import { deriveId, deriveItem, referenceFieldsOf, userField } from '../values/derived-id.ts';
import { otherProblemsOf } from '../values/other-problems.ts';
import { fixedValuesOf } from './fixed-values.ts';
import { emptyKey, type PlanOptions, type Problem, reasonColumn, withUnclear } from './plan-columns.ts';

type Json = Record<string, unknown>;

/** A converted object, or its problems and the fields that could be converted. */
type ConvertedObject =
  | { readonly record: Json; readonly problems?: undefined }
  | {
      readonly record?: undefined;
      readonly problems: readonly Problem[];
      readonly sendable: Json | undefined;
      readonly converted: Json;
    };

export type ObjectConverter = (record: Json) => ConvertedObject;

/**
 * Returns the options for records in a file of failed records, which have the service's fields and formats already. Converting
 * them again could swap a day and a month, or drop a field whose name is also a column. Only keys that replace wrong references
 * are converted: ids stay as they are.
 */
export function failedOptions({ idFrom, keepsUserIds, isMerged }: PlanOptions): PlanOptions {
  return { idFrom: idFrom && [], keepsUserIds, isMerged };
}

/**
 * Returns a function that finds the keys from which an object's references are derived. Returns undefined if references are
 * not derived.
 */
export function objectKeysOf(type: UploadType, { map = {}, idFrom }: PlanOptions) {
  const columnOf = (field: string) => Object.keys(map).find((column) => map[column] === field) ?? field;
  const columns = referenceFieldsOf(type).map((field) => [field, columnOf(field)] as const);
  if (idFrom === undefined || columns.length === 0) return () => undefined;
  return (sent: Json) =>
    Object.fromEntries(columns.map(([field, column]) => [field, String(sent[column] ?? '').trim()]));
}

const hasConstant: CellProblem = {
  code: 'invalid_value',
  message: 'has another value than "constant" in the mapping file; remove one of them',
};

const isRepeated: CellProblem = {
  code: 'invalid_value',
  message: 'is read from another member too; map one of them to ""',
};

const notKey: CellProblem = {
  code: 'wrong_type',
  message: 'is not a text or a number, but the id is derived from it (--id-from)',
};

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/**
 * Returns a function that converts a JSON file's objects to records. Objects are sent unchanged unless an option requires a
 * conversion.
 */
export function objectConverter(type: UploadType, options: PlanOptions): ObjectConverter {
  const { map = {}, idFrom, isMerged } = options;
  const fields = new Map(Object.entries(map));
  fields.set(reasonColumn, '');
  const converters = new Map<string, Convert>();
  for (const [field, schema] of Object.entries(schemas[type].properties)) {
    const convert = jsonConverterOf(field, schema, options);
    if (convert !== undefined) converters.set(field, convert);
  }
  // Returns whether the value is a numeric key, which is common in JSON. All other values that an option converts are
  // strings.
  const isKey = (value: unknown, field: string) =>
    typeof value === 'number' && (field === userField || schemas[type].properties[field]?.format === 'uuid');
  const { constants, defaults, values } = fixedValuesOf(type, options);
  const isPlain =
    fields.size === 1 && converters.size === 0 && constants.size + defaults.size + values.size === 0;
  const idField = resources[type].idField;
  const others = otherProblemsOf(type, isMerged);
  const derivesItem = type === 'interactions' && idFrom !== undefined;
  const derivesId = idFrom !== undefined && Object.hasOwn(schemas[type].properties, idField);
  const columnOf = (field: string | null) => Object.keys(map).find((name) => map[name] === field) ?? field;
  return (sent) => {
    if (isPlain && sent[reasonColumn] === undefined) return { record: sent };
    const record: Json = {};
    const problems: Problem[] = [];
    let hasId = true;
    for (const column of Object.keys(sent)) {
      const field = fields.get(column) ?? column;
      if (field === '') continue;
      const value = sent[column];
      const other = Object.hasOwn(record, field) ? record[field] : undefined;
      if (other !== undefined && value !== undefined) problems.push({ column, field, ...isRepeated });
      const own = values.get(column);
      if (isScalar(value) && own?.has(String(value).trim())) {
        record[field] = own.get(String(value).trim()) ?? null;
        continue;
      }
      const convert = typeof value === 'string' || isKey(value, field) ? converters.get(field) : undefined;
      const converted = convert === undefined || value === '' ? undefined : convert(String(value));
      if (typeof converted === 'object') problems.push({ column, field, ...converted });
      record[field] = typeof converted === 'object' ? value : (converted ?? value);
    }
    for (const [field, value] of defaults)
      if (isEmpty(record[field]) && (!isMerged || Object.hasOwn(record, field))) record[field] = value;
    for (const [field, value] of constants) {
      const given = record[field];
      if (isEmpty(given)) record[field] = value;
      else if (given !== value) problems.push({ column: columnOf(field), field, ...hasConstant });
    }
    if (derivesItem) deriveItem(record);
    if (derivesId && idFrom !== undefined) {
      const key = idFrom.map((column) => String(sent[column] ?? '').trim());
      const hasKey =
        idFrom.length > 0 && (idFrom.some((column) => column in sent) || record[idField] === undefined);
      const isGood = idFrom.every((column) => isEmpty(sent[column]) || isScalar(sent[column]));
      hasId = !hasKey || (isGood && !key.includes(''));
      if (!hasId) {
        problems.push({ column: idFrom.join(','), field: idField, ...(isGood ? emptyKey : notKey) });
        for (const [at, column] of idFrom.entries()) record[column] ??= key[at];
      } else if (hasKey) record[idField] = deriveId(type, key);
    }
    if (problems.length === 0) return { record };
    const found = others(record, problems);
    const named = found.others.map((one) => ({ ...one, column: columnOf(one.field) }));
    const sendable = hasId && found.isEachRejected ? record : undefined;
    const converted = found.isEachRejected ? record : withUnclear(record, problems);
    return { problems: [...problems, ...named], sendable, converted };
  };
}
