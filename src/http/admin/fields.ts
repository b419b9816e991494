import { invalidRequest } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Operator } from '../../operator/audit-log.ts';
import { findOrganisation, type Organisation } from '../../operator/organisations.ts';
import { slugProblem, slugSchema } from '../../operator/rules.ts';
import { type Page, pageOf } from '../../postgres/keyset-page.ts';
import type { Pool } from '../../postgres/pool.ts';
import { boolean, type Field, optional, type Problem, perPage, text } from '../../registry/fields.ts';
import { type Instant, readDateTime, unixMsOf } from '../../registry/times.ts';
import { type BodyField, refuse } from '../operation/body.ts';
import type { Call } from '../operation/operation.ts';

/** The request id appears in both the audit log and the service log. */
export function operatorOf({ requestId, token }: Call): Operator {
  if (token === undefined) throw new Error('an operation without a token asked who acts');
  return { actor: `token:${token}`, requestId };
}

export function bodyText({ schema, read }: Field): BodyField<string> {
  return {
    schema,
    read: (value) =>
      value === '' ? refuse('required', 'must not be empty') : (read(value) as string | Problem),
  };
}

/** The pattern is published but not enforced, so a value that does not match it gets a 404. */
export function patternField(pattern: string, description?: string): Field {
  const schema = { type: 'string', pattern, ...(description !== undefined && { description }) };
  return { ...text(), schema };
}

export const slugField = patternField(slugSchema.pattern, 'its slug');

export async function organisationNamed(pool: Pool, slug: string): Promise<Organisation> {
  const found = slugProblem(slug) === undefined ? await findOrganisation(pool, slug) : undefined;
  if (found) return found;
  throw invalidRequest({
    field: 'organisation',
    code: 'reference_not_found',
    message: 'must be the slug of an existing organisation',
  });
}

export function wholeNumber({ minimum, maximum }: { minimum: number; maximum: number }): BodyField<number> {
  return {
    schema: { type: 'integer', minimum, maximum },
    read(value) {
      if (typeof value !== 'number')
        return refuse('wrong_type', 'must be a number, not a number in a string');
      return Number.isInteger(value) && value >= minimum && value <= maximum
        ? value
        : refuse('out_of_range', `must be a whole number from ${minimum} to ${maximum}`);
    },
  };
}

export function toggle(description: string) {
  return { ...boolean({ description }), required: false as const };
}

export function expiryField(description: string): BodyField<Date> {
  return {
    schema: { type: 'string', format: 'date-time', description },
    read(value) {
      const instant = typeof value === 'string' ? readDateTime(value) : undefined;
      if (instant === undefined) return refuse('invalid_format', 'must be an ISO 8601 date-time');
      const ms = unixMsOf(instant);
      return ms > Date.now() ? new Date(ms) : refuse('out_of_range', 'must be in the future');
    },
  };
}

export function dateOf(instant: Instant | undefined): Date | undefined {
  return instant === undefined ? undefined : new Date(unixMsOf(instant));
}

export function orNull<T>({ schema, read }: BodyField<T>): BodyField<T | null> {
  return {
    schema: { ...schema, type: [schema.type as string, 'null'] },
    read: (value) => (value === null ? null : read(value)),
  };
}

export const pageQuery = {
  limit: optional(perPage('entries', limits.listedPerPageMax, limits.listedPerPageDefault)),
  // Large enough for a slug and a key id.
  cursor: optional(text({ codePointsMax: 75, description: 'the `next_cursor` of the previous page' })),
};

export async function readPage<T>(
  query: Call['query'],
  read: (after: string | null, count: number) => Promise<T[]>,
  cursorOf: (row: T) => string,
): Promise<Page<T>> {
  const { limit = limits.listedPerPageDefault, cursor = null } = query as { limit?: number; cursor?: string };
  return pageOf(await read(cursor, limit + 1), limit, cursorOf);
}
