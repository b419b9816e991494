import { expect } from 'vitest';
import type { Api } from './api.ts';

/** Follows a list's cursors to the end. Returns the entries of each page, which are in the body's `member` field. */
export async function allPages<Entry>(
  api: Api,
  path: string,
  member: string,
  query: Record<string, string> = {},
): Promise<Entry[][]> {
  const pages: Entry[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { status, body } = await api.get(
      `${path}?${new URLSearchParams({ ...query, ...(cursor && { cursor }) })}`,
    );
    expect({ status, body }).toMatchObject({ status: 200 });
    expect(Object.keys(body).toSorted()).toEqual([member, 'next_cursor'].toSorted());
    pages.push(body[member]);
    expect(pages.length, 'a cursor that leads nowhere').toBeLessThan(1_000);
    cursor = body.next_cursor;
  }
  return pages;
}
