import type { UploadType } from '../../../../client/src/generated/resources.ts';
import { type FieldSchema, schemas } from '../../../../client/src/generated/schemas.ts';
import type { Rejection } from '../../api/types.ts';
import { isObject } from './count-missing-ids.ts';

export type FieldKind = 'text' | 'number' | 'boolean' | 'choice' | 'date';

export interface FormField {
  readonly name: string;
  readonly kind: FieldKind;
  readonly required: boolean;
  readonly choices: readonly string[];
  readonly hint: string;
}

/** Returns the form fields for a record of this type, which are derived from the type's schema. */
export function fieldsOf(type: UploadType): FormField[] {
  const { properties, required } = schemas[type];
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    kind: kindOf(schema),
    required: required.includes(name),
    choices: (schema.enum ?? []).filter((choice) => choice !== null),
    hint: [schema.description?.replaceAll('`', ''), formatHint(schema)].filter(Boolean).join('; '),
  }));
}

/** Of a record that is merged, only the fields that it has, and those that are wrong. */
export function fieldsToCorrect({
  type,
  mode,
  errors,
  record,
}: Pick<Rejection, 'type' | 'mode' | 'errors' | 'record'>): FormField[] {
  const names = [...Object.keys(isObject(record) ? record : {}), ...errors.map(({ field }) => field)];
  return fieldsOf(type).filter(({ name }) => mode === 'replace' || names.includes(name));
}

function kindOf({ type, format, enum: choices }: FieldSchema): FieldKind {
  const types = [type].flat();
  if (choices) return 'choice';
  if (types.includes('boolean')) return 'boolean';
  if (types.includes('string')) return format === 'date' ? 'date' : 'text';
  return 'number';
}

function formatHint({ format, maxLength }: FieldSchema): string {
  if (format === 'uuid') return 'a UUID';
  if (format === 'date-time') return 'such as 2026-03-14T09:26:53Z';
  return maxLength === undefined ? '' : `up to ${maxLength} characters`;
}

/** Returns the field values as text. A missing or null value becomes an empty string. */
export function valuesOf(
  fields: readonly FormField[],
  record: Readonly<Record<string, unknown>>,
): Record<string, string> {
  return Object.fromEntries(fields.map(({ name }) => [name, textOf(record[name])]));
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the fields that the record's type does not have. The service ignores them, so the form omits them. */
export function unknownFields(
  fields: readonly FormField[],
  record: Readonly<Record<string, unknown>>,
): string[] {
  const known = new Set(fields.map(({ name }) => name));
  return Object.keys(record).filter((name) => !known.has(name));
}

export interface FilledForm {
  readonly record: Readonly<Record<string, unknown>>;
  /** The problems that the form itself detects, by field. The service checks everything else. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Reads the record from the form. Empty fields are omitted, unless the record is to be merged: null clears the stored value. */
export function readForm(
  fields: readonly FormField[],
  values: Readonly<Record<string, string>>,
  mode: Rejection['mode'],
): FilledForm {
  const record: Record<string, unknown> = {};
  const problems = new Map<string, string>();
  for (const { name, kind, required } of fields) {
    const text = values[name] ?? '';
    if (text === '') {
      if (required) problems.set(name, 'is required');
      else if (mode === 'merge') record[name] = null;
      continue;
    }
    const value = parseText(kind, text);
    if (value === undefined)
      problems.set(name, kind === 'number' ? 'must be a number' : 'must be true or false');
    else record[name] = value;
  }
  return { record, problems };
}

function parseText(kind: FieldKind, text: string): unknown {
  if (kind === 'boolean') return text === 'true' || text === 'false' ? text === 'true' : undefined;
  if (kind !== 'number') return text;
  const value = Number(text.trim());
  return text.trim() === '' || !Number.isFinite(value) ? undefined : value;
}
