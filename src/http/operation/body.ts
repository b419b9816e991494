import { type Detail, invalidRequest, RequestError } from '../../errors.ts';
import { parseBody } from '../../json/parse-body.ts';
import { shownName } from '../../registry/warnings.ts';
import type { JsonSchema } from './operation.ts';

export interface BodyField<T = unknown> {
  readonly schema: JsonSchema;
  readonly required?: boolean;
  /** Calls `refuse` on an invalid value. */
  readonly read: (value: unknown) => T;
}

export function refuse(code: string, message: string): never {
  throw new FieldRefused(code, message);
}

class FieldRefused extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

type ReadFields<F extends Record<string, BodyField>> = {
  [K in keyof F]: F[K] extends { required: true }
    ? ReturnType<F[K]['read']>
    : ReturnType<F[K]['read']> | undefined;
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
    try {
      if (value === undefined) refuse('required', 'is required');
      read[field] = readField(value);
    } catch (error) {
      if (!(error instanceof FieldRefused)) throw error;
      details.push({ field, code: error.code, message: error.message });
    }
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
