import pg from 'pg';
import type { Client } from './pool.ts';

/**
 * Runs a query for a UUID and a text, passes on each row as it arrives and keeps none. `pg` collects the rows of a
 * query with a timeout, and its cursors do not work with pipelining; the type parsers are the only place that sees
 * values one by one. Collected rows outlive the young generation: see docs/performance.md.
 */
export async function takeRows(
  client: Client,
  query: { readonly text: string; readonly values: unknown[] },
  take: (id: string, text: string) => void,
): Promise<number> {
  let last = '';
  const takeId = (id: string) => {
    last = id;
  };
  const takeText = (text: string) => take(last, text);
  const types = { getTypeParser: (oid: number) => (oid === pg.types.builtins.UUID ? takeId : takeText) };
  const { rowCount } = await client.query({ ...query, types, rowMode: 'array' });
  return rowCount ?? 0;
}
