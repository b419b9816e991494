import type { Answer, Call } from './call.ts';
import { errorOf, IntakeError, isAccepted, isObject, NoConnectionError, unexpected } from './errors.ts';
import { limits } from './limits.ts';
import {
  batchesOf,
  Deadline,
  final,
  isForeign,
  isOfErasures,
  mayBeStored,
  mayRetry,
  retryAfterOf,
  takesBack,
} from './retrying.ts';
import { wait } from './wait.ts';

export interface IntakeOptions {
  /** The service's address, for example `https://intake.example.com`. */
  readonly url: string;
  /** An API key. */
  readonly key: string;
  /** Whether to compress uploads with gzip. Default: true, unless the service is on this machine. */
  readonly compress?: boolean;
  /**
   * How long to retry a request after a temporary error. Default: 5 minutes. An erasure that has to wait for earlier ones is
   * retried 12 times as long.
   */
  readonly retryForMs?: number;
  /** Called before each wait for a retry. Default: report the first wait for a rate limit with `console.warn`. */
  readonly onRetry?: (error: IntakeError, waitMs: number) => void;
}

export interface Signal {
  readonly signal?: AbortSignal;
}

/** A response whose body is read as it arrives. */
export interface Streamed extends Answer {
  readonly body: ReadableStream<Uint8Array>;
}

/** Sends requests to one service with one key, and retries them if that is safe. */
export class Connection {
  readonly compress: boolean;
  readonly origin: string;
  /** The key's public part. */
  readonly keyId: string;
  readonly retryForMs: number;
  readonly #key: string;
  readonly #onRetry: NonNullable<IntakeOptions['onRetry']>;
  /** The end of the current pause on the monotonic clock. A 429 or 503 pauses all requests on this connection. */
  #pausedUntilMs = 0;
  #hurry = new AbortController();
  /** The service's time in the last response that had one, and when it arrived on the monotonic clock. */
  #dated: { readonly serviceMs: number; readonly atMs: number } | undefined;

  constructor({ url, key, compress, retryForMs, onRetry }: IntakeOptions) {
    if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
      throw new TypeError('url must begin with http:// or https://, such as https://intake.example.com');
    const { hostname } = new URL(url);
    if (!/^[!-~]+$/.test(key))
      throw new TypeError('key must be an API key: letters, digits and signs, no spaces');
    this.origin = url.replace(/\/+$/, '');
    this.keyId = key.split('_')[1] ?? '';
    this.#key = key;
    this.compress = compress ?? !/^(localhost|127\..*|\[::1\])$/.test(hostname);
    this.retryForMs = retryForMs ?? limits.retryForMs;
    this.#onRetry = onRetry ?? onFirstLimit((notice) => console.warn(notice));
  }

  /** Returns the response body. Throws an IntakeError, or the signal's reason. */
  async request<T>(call: Call): Promise<T> {
    return (await this.exchange(call)).body as T;
  }

  /** Returns the response's lines as a byte stream. */
  async open(call: Call): Promise<ReadableStream<Uint8Array>> {
    return (await this.stream('application/x-ndjson', call)).body;
  }

  /** Returns a response that has this media type as a byte stream. */
  async stream(mediaType: string, call: Call): Promise<Streamed> {
    const { status, headers, body } = await this.exchange({ ...call, stream: mediaType });
    if (body instanceof ReadableStream) return { status, headers, body };
    throw unexpected(`The answer is not a stream of ${mediaType}`);
  }

  /** Returns the service's time (ms since 1970), or undefined if no response has shown it. */
  serviceMs(): number | undefined {
    return this.#dated && Math.round(this.#dated.serviceMs + performance.now() - this.#dated.atMs);
  }

  /** Returns the service's time, and asks for it if necessary. It is undefined if the responses have no date. */
  async askServiceMs(call: Omit<Call, 'path'> = {}): Promise<number | undefined> {
    if (this.#dated === undefined)
      await this.exchange({ ...call, path: '/health/live' }).catch((error) => {
        // Errors have a date too.
        if (this.#dated === undefined) throw error;
      });
    return this.serviceMs();
  }

  /** Ends all waits between attempts. */
  hurry(): void {
    const waits = this.#hurry;
    this.#hurry = new AbortController();
    this.#pausedUntilMs = 0;
    waits.abort();
  }

  /** Returns the response. Throws an IntakeError, or the signal's reason. */
  async exchange(call: Call): Promise<Answer> {
    const body = call.body !== undefined && call.compress ? await gzip(call.body) : call.body;
    const deadline = new Deadline(this.retryForMs, call);
    const isStoring = call.isStoring ?? (call.method ?? 'GET') !== 'GET';
    let isUnknown = call.isSentBefore ?? false;
    /** The batches that an answer has reported as processed, whatever the later answers are. */
    const processed = new Set<number>();
    const isPartlyStored = () => isStoring && processed.size > 0;
    let isOpen = false;
    let isHurried = call.urgent ?? false;
    let foreignAnswers = 0;
    let last: Answer | IntakeError | undefined = isUnknown ? tooLate : undefined;
    let lastError = tooLate;
    const giveUp = (): Answer => {
      // Return the response instead of throwing, because the caller reports the outcome of each record in these batches.
      if (last && batchesOf(last) && lastError.code !== 'unexpected_answer')
        return { ...(last as Answer), isUnknown };
      throw final(withoutPath(this.origin, lastError), call, (isStoring && isUnknown) || isPartlyStored());
    };
    for (let attempt = 0; ; attempt++) {
      if (!isHurried) await this.#pause(call.signal);
      // The computer may have slept during a wait.
      if (last && deadline.isOver()) return giveUp();
      // Other scripts on the page may have used up the browser's keepalive quota, so only every other attempt uses
      // keepalive.
      const keepalive = call.keepalive === true && (isHurried || attempt % 2 === 0);
      call.signal?.throwIfAborted();
      if (!isOpen) call.onOpen?.(1);
      isOpen = true;
      const outcome = await this.#attempt({ ...call, keepalive }, body);
      const error = outcome instanceof IntakeError ? outcome : errorIn(outcome, call);
      if (error === undefined) return outcome as Answer;
      [last, lastError] = [outcome, error];
      const isTakenBack = takesBack(processed, outcome);
      isUnknown ||= isStoring && (isTakenBack || mayBeStored(outcome, error));
      isOpen = isUnknown || isPartlyStored();
      if (!isOpen) call.onOpen?.(-1);
      const isOther = isStoring && isForeign(outcome, error);
      if (isOther) foreignAnswers++;
      const retryAfterMs = outcome instanceof IntakeError ? 0 : retryAfterOf(outcome);
      const backoffMs = Math.min(limits.backoffMaxMs, limits.backoffFirstMs * 2 ** attempt);
      const waitMs = retryAfterMs + Math.random() * backoffMs;
      const mayWait = deadline.allows(waitMs, error) && foreignAnswers < limits.foreignAnswersMax;
      const repeatable = call.repeatable ?? true;
      const isPassing = (isOther && repeatable) || mayRetry(error, repeatable);
      if (!mayWait || call.retry === false || !isPassing) return giveUp();
      if (error.status === 429 || error.status === 503)
        this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + retryAfterMs);
      this.#onRetry(error, waitMs);
      const { signal: early } = this.#hurry;
      await wait(waitMs, call.signal, early);
      isHurried ||= early.aborted;
    }
  }

  async #pause(signal?: AbortSignal): Promise<void> {
    const leftMs = () => this.#pausedUntilMs - performance.now();
    for (let ms = leftMs(); ms > 0; ms = leftMs()) await wait(ms, signal, this.#hurry.signal);
  }

  /** Makes one attempt. Returns an error if there was no response, and throws if the caller aborted the request. */
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
      const serviceMs = Date.parse(headers.get('date') ?? '');
      if (!Number.isNaN(serviceMs)) this.#dated = { serviceMs, atMs: performance.now() };
      const isAsked = call.stream && headers.get('content-type')?.startsWith(call.stream);
      if (response.ok && isAsked) return { status, headers, body: response.body };
      const isJson = headers.get('content-type')?.startsWith('application/json');
      const text = await readText(response);
      if (text === undefined) {
        const message = `The answer of ${this.origin} is longer than ${limits.answerBytesMax} bytes. Check the address.`;
        return new IntakeError('unexpected_answer', message, status);
      }
      return { status, headers, body: isJson ? JSON.parse(text) : text };
    } catch (error) {
      call.signal?.throwIfAborted();
      return noAnswer(this.origin, error);
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Returns a callback that reports the first wait for a limit. Nothing fails, but the user should know why it takes so long.
 */
export function onFirstLimit(report: (message: string) => void): NonNullable<IntakeOptions['onRetry']> {
  const reported = new Set<string>();
  return (error) => {
    const notice = isOfErasures(error) ? erasuresNotice : error.status === 429 ? limitNotice : undefined;
    if (notice === undefined || reported.has(notice)) return;
    reported.add(notice);
    report(notice);
  };
}

/** These messages contain no text from the response, because a terminal might interpret such text as commands. */
const limitNotice =
  'The service limits how much may be sent in a short time (429), so requests wait and are sent again. Nothing is lost. If this is too slow, ask the operator to raise the limits of your organisation.';
const erasuresNotice =
  'The service is still carrying out earlier erasures, so the next one waits and is sent again. To see their state: intake erasures.';

const tooLate = new IntakeError('outcome_unknown', 'The request was sent too long ago to be sent again.');

/**
 * Returns an error if the response is not final: either it is an error response, or some of the upload's batches were not
 * stored.
 */
function errorIn(answer: Answer, { headers, isAnswer }: Call): IntakeError | undefined {
  const requestId = answer.headers.get('x-request-id');
  // The service repeats the key of the request. Older versions do not.
  const answered = answer.headers.get('idempotency-key');
  if (answered !== null && answered !== headers?.['idempotency-key']?.trim())
    return unexpected(`The answer with status ${answer.status} is to another request`, answer.status);
  const batches = batchesOf(answer);
  // If every interaction is invalid, a browser key gets this response, which lists a reason for each interaction.
  const isInvalid = answer.status === 400 && isAccepted(answer.body);
  const isSuccess = answer.status >= 200 && answer.status < 300;
  if (isAnswer && (batches || isInvalid || isSuccess) && !isAnswer(answer.body))
    return unexpected(`The answer with status ${answer.status} does not match the request`, answer.status);
  if (batches) {
    const unstored = batches.find(({ status }) => status === 500);
    return unstored && new IntakeError('internal', unstored.data.error, 500, requestId);
  }
  // A proxy may answer 200 with its own HTML page.
  const isGood = isInvalid || (isSuccess && isObject(answer.body));
  return isGood ? undefined : errorOf(answer.status, requestId, answer.body);
}

function queryOf(query: object = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

/** Reads the whole body, or returns undefined if it is too long. */
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

/**
 * Creates the error for an attempt without a response. `fetch` reports only that it failed, and the system's reason is in the
 * error's `cause`. If the host name has several addresses, there is a reason for each.
 */
function noAnswer(origin: string, error: unknown): IntakeError {
  const { cause, message } = error as Error;
  const reason = cause instanceof Error && cause.message ? cause.message : message;
  if (/wrong version number|packet length too long/i.test(reason))
    return new NoConnectionError(
      `${origin} answers, but not with HTTPS. Check the port, or try ${origin.replace(/^https/i, 'http')} if the service has no certificate.`,
    );
  const said = `No answer from ${origin}: ${reason}. Check the address and the network.`;
  const causes: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return causes.every(isOfConnecting)
    ? new NoConnectionError(said)
    : new IntakeError('connection_failed', said);
}

function isOfConnecting(cause: unknown): boolean {
  return isObject(cause) && (cause.syscall === 'connect' || cause.syscall === 'getaddrinfo');
}

/** Adds advice if the service does not know the path, and the address that the user has set contains a path. */
function withoutPath(address: string, error: IntakeError): IntakeError {
  const { origin, pathname } = new URL(address);
  if (error.code !== 'not_found' || pathname === '/') return error;
  const message = `There is nothing at ${address}. If the service is not below ${pathname}, use ${origin}.`;
  return new IntakeError(error.code, message, error.status, error.requestId);
}

async function gzip(body: string | Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([body]).stream().pipeThrough(new CompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
