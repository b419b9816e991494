import type { Call, Connection } from './connection.ts';
import { isObject, unexpected } from './errors.ts';

interface Paged {
  readonly next_cursor?: string | null;
}

/** Asks again with each `next_cursor`, until there is none. */
export async function* readAnswers<A extends Paged>(connection: Connection, call: Call): AsyncGenerator<A> {
  let cursor: string | undefined;
  /** Brent's algorithm: a cycle of cursors, however long, comes back to one that is kept from earlier. */
  let kept: string | undefined;
  for (let answers = 1; ; answers++) {
    const query = { ...call.query, ...(cursor !== undefined && { cursor }) };
    const answer = await connection.request<A>({ ...call, query });
    yield answer;
    const next = answer.next_cursor ?? undefined;
    if (next === undefined) return;
    if (typeof next !== 'string' || next === kept) throw unexpected('The service repeats the same pages');
    if (Number.isInteger(Math.log2(answers))) kept = next;
    cursor = next;
  }
}

/** Reads a whole list, page by page. */
export async function* readPages<Item>(
  connection: Connection,
  path: string,
  member: string,
  query: object,
  signal: AbortSignal | undefined,
): AsyncGenerator<Item> {
  for await (const page of readAnswers<object & Paged>(connection, { path, query, signal })) {
    yield* listIn<Item>(page, member);
  }
}

export function listIn<Item>(answer: object, member: string): Item[] {
  const list: unknown = (answer as Record<string, unknown>)[member];
  if (Array.isArray(list) && list.every(isObject)) return list as Item[];
  throw unexpected(`The answer has no list of ${member}`);
}
