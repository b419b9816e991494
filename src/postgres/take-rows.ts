import pg from 'pg';
import type { Client } from './pool.ts';

/**
 * Passes the UUID and the text of each row to the caller as it arrives. Collected rows would live long enough to be
 * moved to the old generation, whose garbage collections are expensive. `pg` collects all rows of a query that has a
 * timeout, and its cursors do not work with pipelining. Only the type parsers see values one by one.
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
