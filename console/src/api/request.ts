import type { ErrorBody, ErrorDetail } from './types.ts';

/** The path of the API on the port that served the page. The session cookie authenticates the requests. */
export const apiBase = '/console/api';

/** An error response. If there was no response at all, the status is 0. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly details: readonly ErrorDetail[];
  readonly retryAfterS: number | null;

  constructor(status: number, code: string, message: string, rest: Partial<ApiError> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = rest.requestId ?? null;
    this.details = rest.details ?? [];
    this.retryAfterS = rest.retryAfterS ?? null;
  }
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Call {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** Returns the query string of a URL, without parameters that have no value. */
export function queryText(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}

export async function call<T>(
  path: string,
  { method = 'GET', query = {}, body, signal }: Call = {},
): Promise<T> {
  const response = await send(`${apiBase}${path}${queryText(query)}`, {
    method,
    credentials: 'same-origin',
    headers: {
      Accept: 'application/json',
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  if (response.status === 204) return undefined as T;
  const answer: unknown = await response.json().catch(() => undefined);
  // If every record in an upload failed, the service answers with 400 and a list of batches. Such a response is not an
  // error.
  if (response.ok || isUploadAnswer(answer)) return answer as T;
  throw errorOf(response, answer);
}

async function send(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(
      0,
      'unreachable',
      'The service could not be reached. Check the connection, then try again.',
    );
  }
}

function isUploadAnswer(answer: unknown): boolean {
  return typeof answer === 'object' && answer !== null && 'batches' in answer;
}

function errorOf(response: Response, answer: unknown): ApiError {
  const { code, message, details = [] } = (answer ?? {}) as Partial<ErrorBody>;
  const retryAfterS = Number(response.headers.get('Retry-After') ?? Number.NaN);
  return new ApiError(
    response.status,
    code ?? `http_${response.status}`,
    message ?? `The service answered with status ${response.status} and no explanation.`,
    {
      requestId: response.headers.get('X-Request-Id'),
      details,
      retryAfterS: Number.isFinite(retryAfterS) ? retryAfterS : null,
    },
  );
}
