import { isObject } from '../../../client/src/errors.ts';
import type { ErrorBody, ErrorDetail } from './types.ts';

/** The path on the port that served the page. The session cookie authenticates the requests. */
const consoleApi = '/console/api';

/** Signing in and out are the only requests that concern the browser's session and not the page's. */
export const sessionPath = '/session';

let signedInAs: string | undefined;

/** Sets the key or token that this page is signed in with. */
export function sendAs(name: string | undefined): void {
  signedInAs = name;
}

/**
 * Returns the path of the API. It names the key or token that the page is signed in with, so that the service refuses the
 * requests of this page after another tab has signed in with another one.
 */
export function apiBase(): string {
  return signedInAs === undefined ? consoleApi : `${consoleApi}/as/${signedInAs}`;
}

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
  /** Returns whether a body is an answer to this request. Any other body comes from something in between. */
  readonly isAnswer?: (answer: Readonly<Record<string, unknown>>) => boolean;
}

/** Returns the query string of a URL, without parameters that have no value. */
export function queryText(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}

export async function call<T>(
  path: string,
  { method = 'GET', query = {}, body, signal, isAnswer = () => true }: Call = {},
): Promise<T> {
  const base = path === sessionPath ? consoleApi : apiBase();
  const response = await send(`${base}${path}${queryText(query)}`, {
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
  if (!response.ok && !(isObject(answer) && 'batches' in answer)) throw errorOf(response, answer);
  // A proxy may answer 200 with its own page.
  if (!isObject(answer) || !isAnswer(answer)) throw foreign(response.status, method);
  return answer as T;
}

function foreign(status: number, method: string): ApiError {
  const advice =
    method === 'GET' ? '' : ' The outcome is unknown: check what is stored before you try again.';
  return new ApiError(
    status,
    'unexpected_answer',
    `Something between this page and the service answered with status ${status}.${advice}`,
  );
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
