import pg from 'pg';
import { limits } from '../limits.ts';
import { type Client, UnnamedClient } from './pool.ts';

/** A statement with its values, to be prepared under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** A statement and how many rows it writes. */
export interface Write {
  readonly statement: Statement;
  readonly rows: number;
}

/** A statement that inserts rows with each value as a parameter. What a table's statements end with is always the same. */
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

/** Statements for any number of rows, each with a number that a cluster plans well. */
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

/** By name. Every flush to a node of a cluster sends the same few texts, each with hundreds of parameters. */
const insertTexts = new Map<string, string>();

/** An internal of `pg`: a query writes its messages here, the last of which is a Sync. */
interface Preparable {
  prepare(connection: { sync(): void }): void;
}

/**
 * Runs statements in one round trip and returns the result of each. PostgreSQL treats everything before a Sync as
 * one transaction, so no BEGIN and COMMIT are needed, and `pg` sees a single query: for an insert and its count this
 * costs half of two queries in a transaction. If it fails, the connection must be closed, because `pg` does not know
 * which names are prepared.
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
    // The types have no overload for a query object with a callback.
    (client as unknown as { query(query: pg.Query, callback: typeof end): void }).query(last, end);
  });
}
