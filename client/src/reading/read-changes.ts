import type { Connection } from '../connection.ts';
import { IntakeError, unexpected } from '../errors.ts';
import type { components } from '../generated/api.ts';
import type { UploadType } from '../generated/resources.ts';
import { limits } from '../limits.ts';
import { wait } from '../wait.ts';
import { BrokenStream, parsedLine, readLines } from './read-lines.ts';

export interface ChangesOptions {
  /** The cursor of the last change that was read. Default: start with the oldest change that the service keeps. */
  readonly after?: string;
  /** The types whose changes are read. Default: all types, which requires a key with permission to read interactions. */
  readonly types?: readonly UploadType[];
  readonly signal?: AbortSignal;
}

/**
 * One of three events: a created or changed record in its current version, the expiry of all records of a type that were
 * received before a given time, or, while nothing changes, only the cursor.
 */
export type ChangeEvent =
  | (components['schemas']['Change'] & { readonly expired_before?: never })
  | (components['schemas']['Expiry'] & { readonly id?: never; readonly record?: never })
  | { readonly cursor: string; readonly type?: never };

/**
 * Follows the change feed. The service ends each stream after some minutes, and networks may end it earlier. The next stream
 * continues after the last cursor. Fails if nothing could be read for the connection's `retryForMs`.
 */
export async function* readChanges(
  connection: Connection,
  { after, types, signal }: ChangesOptions,
): AsyncGenerator<ChangeEvent> {
  let cursor = after;
  let attempt = 0;
  let readMs = Date.now();
  for (;;) {
    const silence = new AbortController();
    const stop = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
    const stream = await connection.open({
      path: '/v1/changes',
      query: { types: types?.join(','), after: cursor },
      headers: { accept: 'application/x-ndjson' },
      signal: stop,
    });
    const listen = () => setTimeout(() => silence.abort(), limits.changesSilenceMs);
    let timer = listen();
    try {
      for await (const line of readLines(stream)) {
        clearTimeout(timer);
        const event = parsedLine(line);
        if (typeof event?.cursor !== 'string') throw unexpected('The feed has a line without a cursor');
        yield event as ChangeEvent;
        cursor = event.cursor;
        attempt = 0;
        readMs = Date.now();
        // The timer starts when the caller requests the next event, because processing an event may take the caller a long
        // time.
        timer = listen();
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof BrokenStream)) throw error;
      if (Date.now() - readMs > connection.retryForMs)
        throw new IntakeError('connection_failed', `The feed broke off: ${error.message}. Continue later.`);
    } finally {
      clearTimeout(timer);
    }
    await wait(Math.random() * Math.min(limits.backoffMaxMs, limits.backoffFirstMs * 2 ** attempt++), signal);
  }
}
