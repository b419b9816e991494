import pg from 'pg';
import type { Client } from './pool.ts';
import { UnnamedClient } from './unnamed-client.ts';

/** A statement with its values, to be prepared under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** What `pg` does not tell of its queries: they write their messages here, the last of which is a Sync. */
interface Preparable {
  prepare(connection: { sync(): void }): void;
}

/**
 * Runs statements in one exchange, and returns how many rows each has written. PostgreSQL takes what comes before a Sync
 * for one transaction, so they need no BEGIN and no COMMIT, and here one query stands for all of them: for an insert and
 * its count that is half of what two queries in a transaction cost. Where it fails the connection is to be closed: `pg`
 * does not know then which of the names are prepared.
 */
export function inOneExchange(client: Client, statements: readonly Statement[]): Promise<number[]> {
  const isUnnamed = client instanceof UnnamedClient;
  const queries = statements.map(
    ({ name, text, values }) => new pg.Query(isUnnamed ? { text, values } : { name, text, values }),
  ) as unknown as (pg.Query & Preparable)[];
  const last = queries.pop();
  if (!last) return Promise.resolve([]);
  const prepareLast = last.prepare.bind(last);
  last.prepare = (connection) => {
    const withoutSync = Object.create(connection, { sync: { value() {} } });
    for (const query of queries) query.prepare(withoutSync);
    prepareLast(connection);
  };
  return new Promise((resolve, reject) => {
    const end = (error: Error | null, results: pg.QueryResult | pg.QueryResult[]) => {
      if (error) reject(error);
      else resolve([results].flat().map(({ rowCount }) => rowCount ?? 0));
    };
    // Its types know no callback beside a query that is made already.
    (client as unknown as { query(query: pg.Query, callback: typeof end): void }).query(last, end);
  });
}
