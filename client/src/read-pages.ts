import type { Connection } from './connection.ts';

/** Reads a whole list, page by page. */
export async function* readPages<Item>(
  connection: Connection,
  path: string,
  member: string,
  query: object,
  signal: AbortSignal | undefined,
): AsyncGenerator<Item> {
  let cursor: string | undefined;
  do {
    const page: Record<string, unknown> = await connection.request({
      path,
      query: { ...query, ...(cursor !== undefined && { cursor }) },
      signal,
    });
    yield* page[member] as Item[];
    cursor = (page.next_cursor as string | null) ?? undefined;
  } while (cursor !== undefined);
}
