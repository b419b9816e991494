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

/** The errors of an API, ordered by status. */
function errorsOf(api: ApiName): DescribedError[] {
  return Object.entries(errorTables[api])
    .map(([code, [status, problem, remedy]]) => ({ code, status, problem, remedy }))
    .toSorted((a, b) => a.status - b.status);
}

/** The schema of every error that fails a whole request. */
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
          description: 'for programs; the list of errors says what to do about each',
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
          description: 'with `invalid_request`: each field or parameter that is wrong',
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

/** The error codes that come with a status, for the description of an answer. */
export function codesWith(api: ApiName, status: number): string {
  const codes = errorsOf(api).filter((error) => error.status === status);
  return codes.map(({ code }) => `\`${code}\``).join(', ');
}

/** The section on errors in an API's description. */
export function errorSection(api: ApiName): string {
  const rows = errorsOf(api).map(
    ({ code, status, problem, remedy }) => `| \`${code}\` ${status} | ${problem}. ${sentence(remedy)}. |`,
  );
  return [
    '## Errors',
    '',
    'If a whole request fails, the answer has `error`, the name of the status, `code` for programs and `message` for people.',
    'New codes may be added; for an unknown code go by the status.',
    '',
    '| Code and status | What is wrong, and what to do |',
    '|---|---|',
    ...rows,
    '',
    `Answers with 429, 500 and 503 have \`Retry-After\`, default ${limits.retryAfterSeconds} seconds. With 429 and 503 nothing was stored.`,
  ].join('\n');
}

/** Sets quoted text as code: the reference page would take `<API_KEY>` for an HTML tag. */
function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1).replaceAll(/"([^"]*)"/g, '`$1`');
}
