import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { expect } from 'vitest';
import type { Answer } from './api.ts';

export const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Matches text that reveals internals: stack frames, SQL statements, file names and driver messages. */
const internals =
  /\bat .+:\d+|node_modules|\.[cm]?[jt]s\b|\/(src|dist|home|root|tmp|work)\/|\b(select|insert into|update|delete from) .+ (from|set|values|where)\b|SQLSTATE|postgres|FST_|ECONN|HPE_/i;

/** Returns the codes in a committed API description: those of whole errors, and those of fields in an error's details. */
function codesIn(file: string): { errors: string[]; details: string[] } {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  const { Error: error, ErrorDetail } = JSON.parse(text).components.schemas;
  return { errors: error.properties.code.enum, details: ErrorDetail.properties.code.enum };
}
const described = [codesIn('openapi.json'), codesIn('admin-openapi.json')];
const errorCodes = described.flatMap(({ errors }) => errors);
const detailCodes = described.flatMap(({ details }) => details);

/** Checks that a response has the single error shape that clients see. `details` lists the expected fields. */
export function expectError(answer: Answer, status: number, details?: readonly string[]): void {
  const { headers, body } = answer;
  expect({ status: answer.status, body }).toMatchObject({ status });
  expect(headers.get('content-type')).toMatch(/^application\/json(; charset=utf-8)?$/);
  expect(headers.get('x-request-id')).toMatch(uuidV7);
  expect(headers.get('cache-control')).toBe('no-store');
  const permission = body.code === 'missing_permission' ? ['permission'] : [];
  expect(Object.keys(body)).toEqual([
    'error',
    'code',
    'message',
    ...permission,
    ...(details ? ['details'] : []),
  ]);
  expect(errorCodes).toContain(body.code);
  expect(body.error).toBe(STATUS_CODES[status]);
  expect(body.message).toMatch(/^[A-Z].+\.$/);
  expect(JSON.stringify(body)).not.toMatch(internals);
  if (status >= 500) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  if (!details) return;
  expect(body.details.map(({ field }: { field: string }) => field)).toEqual(details);
  for (const detail of body.details) {
    expect(Object.keys(detail)).toEqual(['field', 'code', 'message']);
    expect(detailCodes).toContain(detail.code);
    expect(detail.message).toMatch(/\w/);
  }
}
