import { errorOf, IntakeError, isAccepted, isObject, unexpected } from './errors.ts';
import { limits } from './limits.ts';
import { wait } from './wait.ts';

export interface IntakeOptions {
  /** Where the service is, for example `https://intake.example.com`. */
  readonly url: string;
  /** An API key. */
  readonly key: string;
  /** Compress uploads with gzip. Default: unless the service is on this machine. */
  readonly compress?: boolean;
  /** How long to go on with a request that fails for a reason that may pass. Default: 5 minutes. */
  readonly retryForMs?: number;
  /** Called before each wait. Without it, the first wait for a rate limit is reported with `console.warn`. */
  readonly onRetry?: (error: IntakeError, waitMs: number) => void;
}

export interface Call {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: object | undefined;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly compress?: boolean;
  readonly headers?: Record<string, string>;
  /** Lets the request outlive the page, if the browser has room for its body. */
  readonly keepalive?: boolean;
  /** Sent even while the connection is paused. */
  readonly urgent?: boolean;
  /** Returns the body of the answer as a stream. */
  readonly stream?: boolean;
  /** False if sending twice is not the same as once: retried only if the first attempt certainly did nothing. */
  readonly repeatable?: boolean;
  /** False if the first answer is the answer, whatever it is. */
  readonly retry?: boolean;
  /** The time in ms since 1970 after which it is not sent again. */
  readonly resendUntilMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** One service and one key: sends requests, and retries where that is safe. */
export class Connection {
  readonly compress: boolean;
  readonly origin: string;
  /** The part of the key that is not secret. */
  readonly keyId: string;
  readonly retryForMs: number;
  readonly #key: string;
  readonly #onRetry: NonNullable<IntakeOptions['onRetry']>;
  /** A 429 or 503 pauses every request of this connection. */
  #pausedUntilMs = 0;
  #hurry = new AbortController();

  constructor({ url, key, compress, retryForMs, onRetry }: IntakeOptions) {
    const { protocol, hostname } = new URL(url);
    if (!/^https?:$/.test(protocol))
      throw new TypeError(`url must begin with https:// or http://, not ${protocol}`);
    if (!/^[!-~]+$/.test(key))
      throw new TypeError('key must be an API key: letters, digits and signs, no spaces');
    this.origin = url.replace(/\/+$/, '');
    this.keyId = key.split('_')[1] ?? '';
    this.#key = key;
    this.compress = compress ?? !/^(localhost|127\..*|\[::1\])$/.test(hostname);
    this.retryForMs = retryForMs ?? limits.retryForMs;
    this.#onRetry = onRetry ?? onFirstLimit((notice) => console.warn(notice));
  }

  /** The body of the answer. Throws an IntakeError, or the signal's reason. */
  async request<T>(call: Call): Promise<T> {
    return (await this.#exchange(call)).body as T;
  }

  /** The answer as a stream of bytes. */
  async open(call: Call): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#exchange({ ...call, stream: true });
    if (body instanceof ReadableStream) return body;
    throw unexpected('The answer is not a stream of records');
  }

  /** Ends every wait before another attempt. */
  hurry(): void {
    const waits = this.#hurry;
    this.#hurry = new AbortController();
    this.#pausedUntilMs = 0;
    waits.abort();
  }

  async #exchange(call: Call): Promise<Answer> {
    const body = call.body !== undefined && call.compress ? await gzip(call.body) : call.body;
    let failingSinceMs: number | undefined;
    let isHurried = call.urgent ?? false;
    for (let attempt = 0; ; attempt++) {
      if (!isHurried) await this.#pause(call.signal);
      // Other scripts of the page may have used up what browsers allow for keepalive: every other retry does without it.
      const keepalive = call.keepalive === true && (isHurried || attempt % 2 === 0);
      const outcome = await this.#attempt({ ...call, keepalive }, body);
      const error = outcome instanceof IntakeError ? outcome : errorIn(outcome);
      if (error === undefined) return outcome as Answer;
      failingSinceMs ??= Date.now();
      const retryAfterMs = outcome instanceof IntakeError ? 0 : retryAfterOf(outcome);
      const backoffMs = Math.min(limits.backoffMaxMs, limits.backoffFirstMs * 2 ** attempt);
      const waitMs = retryAfterMs + Math.random() * backoffMs;
      const nextMs = Date.now() + waitMs;
      const outOfTime =
        nextMs - failingSinceMs > this.retryForMs || nextMs > (call.resendUntilMs ?? Infinity);
      if (outOfTime || call.retry === false || !mayRetry(error, call.repeatable ?? true)) {
        // The caller reports its records as failed, each with its reason.
        if (batchesOf(outcome)) return outcome as Answer;
        throw error;
      }
      if (error.status === 429 || error.status === 503) {
        this.#pausedUntilMs = Math.max(this.#pausedUntilMs, Date.now() + retryAfterMs);
      }
      this.#onRetry(error, waitMs);
      const { signal: early } = this.#hurry;
      await wait(waitMs, call.signal, early);
      isHurried ||= early.aborted;
    }
  }

  async #pause(signal?: AbortSignal): Promise<void> {
    for (let ms = this.#pausedUntilMs - Date.now(); ms > 0; ms = this.#pausedUntilMs - Date.now()) {
      await wait(ms, signal, this.#hurry.signal);
    }
  }

  /** One attempt. Returns an error if there was no answer; throws if the caller aborted. */
  async #attempt(
    call: Call,
    body: string | Uint8Array<ArrayBuffer> | undefined,
  ): Promise<Answer | IntakeError> {
    call.signal?.throwIfAborted();
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(new Error('no answer in time')), limits.attemptTimeoutMs);
    try {
      const response = await fetch(this.origin + call.path + queryOf(call.query), {
        method: call.method ?? 'GET',
        headers: {
          authorization: `Bearer ${this.#key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(call.compress && { 'content-encoding': 'gzip' }),
          ...call.headers,
        },
        redirect: 'manual',
        signal: call.signal ? AbortSignal.any([call.signal, timeout.signal]) : timeout.signal,
        ...(body !== undefined && { body }),
        ...(call.keepalive && { keepalive: true }),
      });
      const { status, headers } = response;
      const isLines = headers.get('content-type')?.startsWith('application/x-ndjson');
      if (call.stream && response.ok && isLines) return { status, headers, body: response.body };
      const isJson = headers.get('content-type')?.startsWith('application/json');
      const text = await readText(response);
      if (text === undefined) {
        const message = `The answer of ${this.origin} is longer than ${limits.answerBytesMax} bytes. Check the address.`;
        return new IntakeError('unexpected_answer', message, status);
      }
      return { status, headers, body: isJson ? JSON.parse(text) : text };
    } catch (error) {
      call.signal?.throwIfAborted();
      const message = `No answer from ${this.origin}: ${reasonOf(error)}. Check the address and the network.`;
      return new IntakeError('connection_failed', message);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Reports the first wait for a rate limit: it slows the caller down, and nothing fails. */
export function onFirstLimit(report: (message: string) => void): NonNullable<IntakeOptions['onRetry']> {
  let isReported = false;
  return ({ status }) => {
    if (status !== 429 || isReported) return;
    isReported = true;
    report(limitNotice);
  };
}

/** Has no text of the answer, which a terminal might take for commands. */
const limitNotice =
  'The service limits how much may be sent in a short time (429), so requests wait and are sent again. Nothing is lost. If this is too slow, ask the operator to raise the limits of your organisation.';

interface Batch {
  readonly status: number;
  readonly data: { readonly error: string };
}

/** The batches of an upload's or a replay's answer, whatever its status. */
function batchesOf(answer: Answer | IntakeError): readonly Batch[] | undefined {
  if (answer instanceof IntakeError || !isObject(answer.body)) return undefined;
  const { batches } = answer.body;
  return Array.isArray(batches) && batches.every(isBatch) ? batches : undefined;
}

function isBatch(value: unknown): value is Batch {
  return isObject(value) && isObject(value.data);
}

/** Why an answer is not final: an error, or an upload with batches that are not stored. */
function errorIn(answer: Answer): IntakeError | undefined {
  const requestId = answer.headers.get('x-request-id');
  const batches = batchesOf(answer);
  if (batches) {
    const unstored = batches.find(({ status }) => status === 500);
    return unstored && new IntakeError('internal', unstored.data.error, 500, requestId);
  }
  // A browser key: every interaction is invalid, each for its own reasons.
  const isInvalid = answer.status === 400 && isAccepted(answer.body);
  // A proxy may answer 200 with a page of its own.
  const isGood = isInvalid || (answer.status >= 200 && answer.status < 300 && isObject(answer.body));
  return isGood ? undefined : errorOf(answer.status, requestId, answer.body);
}

const passing = new Set([408, 429, 500, 502, 503, 504]);

function mayRetry({ code, status, details }: IntakeError, repeatable: boolean): boolean {
  // A wrong key stays wrong, and each attempt prolongs the wait.
  if (code === 'too_many_failed_keys') return false;
  // More at once than the limit ever lets through.
  if (details.some((detail) => detail.code === 'too_many_records')) return false;
  if (status === 429 || (status === 503 && code !== 'unexpected_answer')) return true;
  return repeatable && (status === null || passing.has(status));
}

function retryAfterOf({ headers }: Answer): number {
  const seconds = Number(headers.get('retry-after'));
  return seconds > 0 ? seconds * 1000 : 0;
}

function queryOf(query: object = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

/** Undefined if the answer is too long. */
async function readText({ body }: Response): Promise<string | undefined> {
  if (!body) return '';
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > limits.answerBytesMax) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** fetch only says that it failed; the cause has the system's reason. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error && cause.message ? cause.message : message;
}

async function gzip(body: string | Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([body]).stream().pipeThrough(new CompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
