import { type Detail, invalidRequest, RequestError } from '../../errors.ts';
import { parseBody } from '../../json/object-reader.ts';
import { shownName } from '../../registry/warnings.ts';
import type { JsonSchema } from './operation.ts';

type Refusal = Omit<Detail, 'field'>;

/** The fields of records are such fields. Others may have any type and code. */
export interface BodyField<T = unknown> {
  readonly schema: JsonSchema;
  readonly required?: boolean;
  readonly read: (value: unknown) => T | Refusal;
}

export function refuse(code: string, message: string): Refusal {
  return { code, message };
}

type ReadFields<F extends Record<string, BodyField>> = {
  [K in keyof F]:
    | Exclude<ReturnType<F[K]['read']>, Refusal>
    | (F[K] extends { required: true } ? never : undefined);
};

/**
 * Reports every missing, malformed or unknown field. The names of unknown fields are included only if `namesUnknown` is
 * set, because a client may send personal data where a field name belongs.
 */
export function readFields<F extends Record<string, BodyField>>(
  fields: F,
  bytes: Buffer | undefined,
  namesUnknown = true,
): ReadFields<F> {
  const body = bytes === undefined || bytes.length === 0 ? {} : parseBody(bytes);
  if (!isRecord(body)) throw new RequestError('malformed_json');
  const details: Detail[] = Object.keys(body)
    .filter((name) => !Object.hasOwn(fields, name))
    .map((name) => unknownField(namesUnknown ? shownName(name) : 'body', fields));
  const read: Record<string, unknown> = {};
  for (const [field, { required, read: readField }] of Object.entries(fields)) {
    const value = Object.hasOwn(body, field) ? body[field] : undefined;
    if (value === undefined && !required) continue;
    const result = value === undefined ? refuse('required', 'is required') : readField(value);
    if (isRecord(result) && 'code' in result) details.push({ field, ...(result as Refusal) });
    else read[field] = result;
  }
  if (details.length > 0) throw invalidRequest(...details);
  return read as ReadFields<F>;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unknownField(field: string, fields: object): Detail {
  const known = Object.keys(fields).join(', ');
  const takes = known === '' ? 'this request accepts no fields' : `this request accepts ${known}`;
  const message = `${field === 'body' ? 'has an unknown field' : 'is not a known field'}; ${takes}`;
  return { field, code: 'unknown_field', message };
}

export function bodySchema(fields: Record<string, BodyField>): JsonSchema {
  const entries = Object.entries(fields);
  return {
    type: 'object',
    required: entries.filter(([, { required }]) => required).map(([name]) => name),
    properties: Object.fromEntries(entries.map(([name, { schema }]) => [name, schema])),
    additionalProperties: false,
  };
}
