import { STATUS_CODES } from 'node:http';
import { expect } from 'vitest';
import type { Answer } from './api.ts';

export const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** What would tell a stranger how the service is made: frames of a stack, statements, files, the driver's words. */
const internals =
  /\bat .+:\d+|node_modules|\.[cm]?[jt]s\b|\/(src|dist|home|root|tmp|work)\/|\b(select|insert into|update|delete from) .+ (from|set|values|where)\b|SQLSTATE|postgres|FST_|ECONN|HPE_/i;

/** Holds an answer against the one shape of error that clients see. `details` lists the fields to be named. */
export function expectError(answer: Answer, status: number, details?: readonly string[]): void {
  const { headers, body } = answer;
  expect({ status: answer.status, body }).toMatchObject({ status });
  expect(headers.get('content-type')).toMatch(/^application\/json(; charset=utf-8)?$/);
  expect(headers.get('x-request-id')).toMatch(uuidV7);
  expect(Object.keys(body)).toEqual(['error', 'message', ...(details ? ['details'] : [])]);
  expect(body.error).toBe(STATUS_CODES[status]);
  expect(body.message).toMatch(/^[A-Z].+\.$/);
  expect(JSON.stringify(body)).not.toMatch(internals);
  if (status >= 500) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  if (!details) return;
  expect(body.details.map(({ field }: { field: string }) => field)).toEqual(details);
  for (const detail of body.details) {
    expect(Object.keys(detail)).toEqual(['field', 'code', 'message']);
    expect(detail.code).toMatch(/^[a-z_]+$/);
    expect(detail.message).toMatch(/\w/);
  }
}
