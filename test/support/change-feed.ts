import type { Api } from './api.ts';

/** The change feed as a client reads it. */

export interface Change {
  readonly cursor: string;
  readonly type: string;
  readonly id: string;
  readonly deleted: boolean;
  readonly erased?: boolean;
  readonly record: Record<string, unknown> | null;
  /** All records of the type that were received before this time have expired. Such a change has no id and no record. */
  readonly expired_before?: string;
}

/** Reads pages from a cursor until there are no more changes. Returns the changes with the last cursor. */
export async function readFeed(
  api: Api,
  { after, query = '' }: { readonly after?: string | undefined; readonly query?: string } = {},
): Promise<{ readonly changes: Change[]; readonly cursor: string; readonly pages: number }> {
  const changes: Change[] = [];
  let cursor = after;
  for (let pages = 1; ; pages++) {
    const { status, body } = await api.get(`/v1/changes?${query}${cursor ? `&after=${cursor}` : ''}`);
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
    changes.push(...body.changes);
    cursor = body.next_cursor as string;
    if (!body.has_more) return { changes, cursor, pages };
  }
}

/** A client's copy of the data. It applies the changes, and keeps the current version of each record, by type and id. */
export class FeedCopy {
  readonly records = new Map<string, string>();

  apply({
    type,
    id,
    record,
    expired_before,
  }: Pick<Change, 'type' | 'id' | 'record' | 'expired_before'>): void {
    if (expired_before === undefined) this.records.set(`${type} ${id}`, JSON.stringify(record));
    else this.#removeOlder(type, Date.parse(expired_before));
  }

  /** Removes records that were received before `ms`. Their ids contain the time of receipt. */
  #removeOlder(type: string, ms: number): void {
    for (const [key] of this.records) {
      const [of, id = ''] = key.split(' ');
      if (of === type && Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) < ms) this.records.delete(key);
    }
  }
}

/** Yields the lines of a stream as they arrive, until the signal aborts it or the connection ends. */
export async function* followFeed(
  url: string,
  key: string,
  { after, query = '', signal }: { after?: string; query?: string; signal?: AbortSignal } = {},
): AsyncGenerator<Partial<Change> & { cursor: string }> {
  const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' };
  const response = await fetch(`${url}/v1/changes?${query}${after ? `&after=${after}` : ''}`, {
    headers,
    signal: signal ?? null,
  });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  let rest = '';
  const decoder = new TextDecoder();
  for await (const piece of response.body!) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) yield JSON.parse(line);
  }
}
