import { type ApiName, errorTables, requestProblemCodes } from '../../src/errors.ts';
import type { JsonSchema } from '../../src/http/operation/operation.ts';
import { limits } from '../../src/limits.ts';
import { problemCodes } from '../../src/registry/fields.ts';

interface DescribedError {
  readonly code: string;
  readonly status: number;
  readonly problem: string;
  readonly remedy: string;
}

/** Returns an API's errors, ordered by status. */
function errorsOf(api: ApiName): DescribedError[] {
  return Object.entries(errorTables[api])
    .map(([code, [status, problem, remedy]]) => ({ code, status, problem, remedy }))
    .toSorted((a, b) => a.status - b.status);
}

/** Returns the schemas of the errors that fail a whole request. */
export function errorSchemas(api: ApiName): Record<string, JsonSchema> {
  const text = { type: 'string' };
  return {
    Error: {
      type: 'object',
      required: ['error', 'code', 'message'],
      properties: {
        error: { ...text, description: 'the name of the status' },
        code: {
          ...text,
          enum: errorsOf(api).map(({ code }) => code),
          description: 'for programs; the list of errors explains what to do about each',
        },
        message: { ...text, description: 'for people: what is wrong, then what to do' },
        ...(api === 'public' && {
          permission: {
            ...text,
            description: 'with `missing_permission`: the permission that the key lacks',
          },
        }),
        details: {
          type: 'array',
          description: 'with `invalid_request`: each invalid field or parameter',
          items: { $ref: '#/components/schemas/ErrorDetail' },
        },
      },
    },
    ErrorDetail: {
      type: 'object',
      required: ['field', 'code', 'message'],
      properties: {
        field: { ...text, description: 'name of the field, parameter or header' },
        code: { ...text, enum: [...problemCodes, ...requestProblemCodes] },
        message: text,
      },
    },
  };
}

/** Returns the error codes with this status, for a response's description. */
export function codesWith(api: ApiName, status: number): string {
  const codes = errorsOf(api).filter((error) => error.status === status);
  return codes.map(({ code }) => `\`${code}\``).join(', ');
}

/** Returns the section on errors in an API's description. */
export function errorSection(api: ApiName): string {
  const rows = errorsOf(api).map(
    ({ code, status, problem, remedy }) => `| \`${code}\` ${status} | ${problem}. ${sentence(remedy)}. |`,
  );
  return [
    '## Errors',
    '',
    'If a whole request fails, the answer has `error`, the name of the status, `code` for programs and `message` for people.',
    'New codes may be added; handle unknown codes by their status.',
    '',
    '| Code and status | What is wrong, and what to do |',
    '|---|---|',
    ...rows,
    '',
    `Answers with 429, 500 and 503 have \`Retry-After\`, default ${limits.retryAfterSeconds} seconds. With 429 and 503 nothing was stored.`,
  ].join('\n');
}

/** Formats quoted text as code, because the reference page would treat `<API_KEY>` as an HTML tag. */
function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1).replaceAll(/"([^"]*)"/g, '`$1`');
}
