import type { Call, Connection } from '../connection.ts';
import { IntakeError, isObject, unexpected } from '../errors.ts';
import { limits } from '../limits.ts';
import { wait } from '../wait.ts';

interface Paged {
  readonly next_cursor?: string | null;
}

/** Asks again with each `next_cursor`, until there is none. An answer that `isBusy` may repeat the cursor a few times. */
export async function* readAnswers<A extends Paged>(
  connection: Connection,
  call: Call,
  isBusy: (answer: A) => boolean = () => false,
): AsyncGenerator<A> {
  let cursor: string | undefined;
  /** Brent's algorithm: a cycle of cursors, however long, comes back to one that is kept from earlier. */
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
    'Another replay of this type is running, and this one does not get its turn. Start it again when the other has ended.';
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

/** `isItem` checks what an item has inside; its other members are only shown or passed on. */
export function listIn<Item>(
  answer: object,
  member: string,
  isItem: (item: Record<string, unknown>) => boolean = () => true,
): Item[] {
  const list: unknown = (answer as Record<string, unknown>)[member];
  if (Array.isArray(list) && list.every((item) => isObject(item) && isItem(item))) return list as Item[];
  throw unexpected(`The answer has no list of ${member}`);
}
