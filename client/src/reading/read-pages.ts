import type { Call } from '../call.ts';
import type { Connection } from '../connection.ts';
import { IntakeError, isObject, unexpected } from '../errors.ts';
import { limits } from '../limits.ts';
import { wait } from '../wait.ts';

interface Paged {
  readonly next_cursor?: string | null;
}

/**
 * Yields the response for each page and follows `next_cursor` to the last page. If `isBusy` is true for a response that repeats
 * the cursor, the request is sent again, up to a few times.
 */
export async function* readAnswers<A extends Paged>(
  connection: Connection,
  call: Call,
  isBusy: (answer: A) => boolean = () => false,
): AsyncGenerator<A> {
  let cursor: string | undefined;
  /**
   * Detects cycles with Brent's algorithm: any cycle of cursors eventually returns to a cursor that was remembered earlier.
   */
  let kept: string | undefined;
  for (let answers = 1, waits = 0; ; ) {
    const query = { ...call.query, ...(cursor !== undefined && { cursor }) };
    const answer = await connection.request<A>({ ...call, query });
    yield answer;
    const next = answer.next_cursor ?? undefined;
    if (next === undefined) return;
    if (next === cursor && isBusy(answer)) {
      if (++waits > limits.replayTurnsMax) throw replayRunning();
      await wait(limits.backoffFirstMs * 2 ** waits, call.signal);
      continue;
    }
    waits = 0;
    if (typeof next !== 'string' || next === kept) throw unexpected('The service repeats the same pages');
    if (Number.isInteger(Math.log2(answers++))) kept = next;
    cursor = next;
  }
}

function replayRunning(): IntakeError {
  const message =
    'Another replay of this type is still running. Start this one again when the other has ended.';
  return new IntakeError('replay_running', message);
}

/** Reads a whole list, page by page. */
export async function* readPages<Item>(
  connection: Connection,
  path: string,
  member: string,
  query: object,
  signal: AbortSignal | undefined,
  isItem?: (item: Record<string, unknown>) => boolean,
): AsyncGenerator<Item> {
  for await (const page of readAnswers<object & Paged>(connection, { path, query, signal })) {
    yield* listIn<Item>(page, member, isItem);
  }
}

/**
 * Returns the list in a response. `isItem` checks the properties that this library uses. All other properties are only
 * displayed or passed to the caller.
 */
export function listIn<Item>(
  answer: object,
  member: string,
  isItem: (item: Record<string, unknown>) => boolean = () => true,
): Item[] {
  const list: unknown = (answer as Record<string, unknown>)[member];
  if (Array.isArray(list) && list.every((item) => isObject(item) && isItem(item))) return list as Item[];
  throw unexpected(`The answer has no list of ${member}`);
}
