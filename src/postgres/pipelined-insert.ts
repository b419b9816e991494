import pg from 'pg';
import { limits } from '../limits.ts';
import { type Client, UnnamedClient } from './pool.ts';

export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

export interface Write {
  readonly statement: Statement;
  readonly rows: number;
}

/** All statements for a table must have the same `end`, because their texts are cached by table and row count. */
function insertStatement(
  table: string,
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
  end = '',
): Statement {
  const name = `insert ${rows.length} ${table}`;
  let text = insertTexts.get(name);
  if (text === undefined) {
    let parameter = 1;
    const written = rows.map((row) => `(${row.map(() => `$${parameter++}`).join(', ')})`);
    text = `insert into ${table} (${columns.join(', ')}) values ${written.join(', ')} ${end}`;
    insertTexts.set(name, text);
  }
  return { name, text, values: rows.flat() };
}

/** A cluster cannot plan a statement with too many rows efficiently. */
export function insertsInParts(
  table: string,
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
  end?: string,
): Write[] {
  const writes: Write[] = [];
  for (let start = 0; start < rows.length; start += limits.rowsWrittenOutMax) {
    const part = rows.slice(start, start + limits.rowsWrittenOutMax);
    writes.push({ statement: insertStatement(table, columns, part, end), rows: part.length });
  }
  return writes;
}

/** Cached because every flush to a cluster node sends the same few texts, each with hundreds of parameters. */
const insertTexts = new Map<string, string>();

/** Internals of `pg`. A query writes its protocol messages to this connection, ending with a Sync. */
interface Preparable {
  prepare(connection: { sync(): void }): void;
}

/**
 * PostgreSQL treats everything before a Sync as one transaction, so BEGIN and COMMIT are not needed, and `pg` sees a
 * single query. This way, an insert and its count cost half as much as two queries in a transaction. If this fails, the
 * connection must be closed, because `pg` does not know which names are prepared.
 */
export function inOneExchange(client: Client, statements: readonly Statement[]): Promise<pg.QueryResult[]> {
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
      else resolve([results].flat());
    };
    // The type definitions have no overload for a query object with a callback.
    (client as unknown as { query(query: pg.Query, callback: typeof end): void }).query(last, end);
  });
}
