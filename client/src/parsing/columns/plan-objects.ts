import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { type Convert, jsonConverterOf } from '../values/convert-cell.ts';
import { deriveId, deriveItem, referenceFieldsOf } from '../values/derived-id.ts';
import { otherProblemsOf } from '../values/other-problems.ts';
import { emptyKey, type PlanOptions, type Problem, reasonColumn } from './plan-columns.ts';

type Json = Record<string, unknown>;
export type ObjectConverter = (record: Json) => Json | readonly Problem[];

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

/**
 * Returns a function that converts a JSON file's objects to records. Objects are sent unchanged unless an option requires a
 * conversion.
 */
export function objectConverter(type: UploadType, options: PlanOptions): ObjectConverter {
  const { map = {}, idFrom } = options;
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
    typeof value === 'number' && schemas[type].properties[field]?.format === 'uuid';
  const isPlain = fields.size === 1 && converters.size === 0;
  const idField = resources[type].idField;
  const others = otherProblemsOf(type);
  const derivesItem = type === 'interactions' && idFrom !== undefined;
  const derivesId = idFrom !== undefined && Object.hasOwn(schemas[type].properties, idField);
  return (sent) => {
    if (isPlain && sent[reasonColumn] === undefined) return sent;
    const record: Json = {};
    const problems: Problem[] = [];
    for (const column of Object.keys(sent)) {
      const field = fields.get(column) ?? column;
      if (field === '') continue;
      const value = sent[column];
      const convert = typeof value === 'string' || isKey(value, field) ? converters.get(field) : undefined;
      const converted = convert === undefined || value === '' ? undefined : convert(String(value));
      if (typeof converted === 'object') problems.push({ column, field, ...converted });
      record[field] = typeof converted === 'object' ? value : (converted ?? value);
    }
    if (derivesItem) deriveItem(record);
    if (derivesId && idFrom !== undefined) {
      const key = idFrom.map((column) => String(sent[column] ?? '').trim());
      const hasKey =
        idFrom.length > 0 && (idFrom.some((column) => column in sent) || record[idField] === undefined);
      if (hasKey && key.includes(''))
        problems.push({ column: idFrom.join(','), field: idField, ...emptyKey });
      else if (hasKey) record[idField] = deriveId(type, key);
    }
    if (problems.length === 0) return record;
    const columnOf = (field: string | null) => Object.keys(map).find((name) => map[name] === field) ?? field;
    return [...problems, ...others(record, problems).map((one) => ({ ...one, column: columnOf(one.field) }))];
  };
}
