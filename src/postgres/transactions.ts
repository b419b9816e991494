import type { QueryConfig, QueryResultRow } from 'pg';
import { limits } from '../limits.ts';
import {
  type Client,
  isConflict,
  isLockNotAcquired,
  isUnavailable,
  leavesOutcomeOpen,
  noteRolledBack,
  type Pool,
} from './pool.ts';

/** The data may or may not be stored, and only a retry can show which is the case. */
export class CommitUnconfirmed extends Error {
  constructor(cause: unknown) {
    super('the answer to COMMIT was lost', { cause });
  }
}

/**
 * `pg` writes each statement separately and has no API for this, so its stream is corked while the statements are sent.
 * Four small statements take 100 microseconds this way, compared with 120 to 175 otherwise.
 */
export function inOneWrite<T>({ connection: { stream } }: Client, send: () => T): T {
  stream.cork();
  try {
    return send();
  } finally {
    stream.uncork();
  }
}

/** Queues a statement whose result nothing depends on. All of them are sent in one write and one round trip. */
type SendLast = (statement: (client: Client) => Promise<unknown>) => void;

/** A connection that fails to roll back is closed and not returned to the pool. */
export async function inTransaction<T>(
  pool: { connect(): Promise<Client> },
  work: (client: Client, sendLast: SendLast) => Promise<T>,
  begin:
    | 'begin'
    | 'begin read only'
    | 'begin isolation level repeatable read'
    | 'begin isolation level repeatable read read only' = 'begin',
): Promise<T> {
  const client = await pool.connect();
  const last: ((client: Client) => Promise<unknown>)[] = [];
  let result: T;
  try {
    const { lockWaitMs } = client;
    // This is sent together with the first statement in `work`, and its result is checked before the commit. The timeout
    // is not a session setting, because a pooler would not keep it.
    const begun = client.query(
      lockWaitMs === undefined ? begin : `${begin}; set local lock_timeout = ${lockWaitMs}`,
    );
    begun.catch(() => {});
    result = await work(client, (statement) => last.push(statement));
    await begun;
    // COMMIT is not sent with these statements, because only their responses show whether they wrote the expected rows.
    if (last.length > 0) await allOf(inOneWrite(client, () => last.map((run) => run(client))));
  } catch (error) {
    await rollBack(client, error);
    throw error;
  }
  await commit(client);
  return result;
}

/** The statements must be independent. They take one write, one round trip and one commit. */
export async function inOneTransaction<T>(
  client: Client,
  statements: readonly ((client: Client) => Promise<T>)[],
): Promise<T[]> {
  client.query('begin').catch(() => {});
  const { sent, ended } = inOneWrite(client, () => ({
    sent: allOf(statements.map((run) => run(client))),
    ended: client.query('commit'),
  }));
  sent.catch(() => {});
  const { command } = await ended;
  const results = await sent.catch((error: unknown) => {
    if (command === 'ROLLBACK') noteRolledBack(error);
    throw error;
  });
  refuseRollback(command);
  return results;
}

/** Waits for all statements, and then throws the first error, because the other errors are its consequences. */
export async function allOf<T>(sent: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(sent);
  const failure = settled.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
  return settled.map((result) => (result as PromiseFulfilledResult<T>).value);
}

/** On a connection that has stopped responding, ROLLBACK would wait for a timeout. Closing it also rolls back. */
async function rollBack(client: Client, because: unknown): Promise<void> {
  if (isUnavailable(because) && !isLockNotAcquired(because)) client.release(true);
  else {
    await client.query('rollback').then(
      () => client.release(),
      () => client.release(true),
    );
  }
}

async function commit(client: Client): Promise<void> {
  let command: string;
  try {
    ({ command } = await client.query('commit'));
  } catch (error) {
    client.release(true);
    throw leavesOutcomeOpen(error) ? new CommitUnconfirmed(error) : error;
  }
  client.release();
  refuseRollback(command);
}

/** PostgreSQL answers COMMIT in a failed transaction with ROLLBACK and no error. */
function refuseRollback(command: string): void {
  if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`);
}

class BeginAgain extends Error {}

/** Restarts the transaction, because data has changed in the meantime or rows were lost. */
export function beginAgainUnless(holds: unknown, otherwise: string): asserts holds {
  if (!holds) throw new BeginAgain(otherwise);
}

/** In a cluster, a statement that waits while data is moved may return no rows and no error. */
export async function queryRows<R extends QueryResultRow>(
  client: Pick<Pool, 'query'>,
  statement: QueryConfig,
  expected: number,
): Promise<R[]> {
  const { rowCount, rows } = await client.query<R>(statement);
  if (rowCount === expected) return rows;
  const what = statement.name ?? statement.text.trim().split('\n')[0];
  throw new BeginAgain(`${what}: ${rowCount} rows instead of ${expected}`);
}

export async function queryRow<R extends QueryResultRow>(
  client: Pick<Pool, 'query'>,
  statement: QueryConfig,
): Promise<R> {
  const [row] = await queryRows<R>(client, statement, 1);
  return row as R;
}

/** In a transaction, the time at which it began. The process's own clock is not used, because two processes' clocks may differ. */
export function databaseTime(client: Pick<Pool, 'query'>): Promise<Date> {
  return readTime(client, 'time', 'now()');
}

/** In a transaction, a time after the end of all earlier statements. */
export function currentDatabaseTime(client: Pick<Pool, 'query'>): Promise<Date> {
  return readTime(client, 'current time', 'clock_timestamp()');
}

async function readTime(client: Pick<Pool, 'query'>, name: string, time: string): Promise<Date> {
  const text = `select extract(epoch from ${time})::float8 * 1000 as ms`;
  const { ms } = await queryRow<{ ms: string }>(client, { name, text });
  return new Date(Number(ms));
}

/** Rows must never be acknowledged if it is uncertain whether they are stored. */
export async function retryConflicts<T>(run: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run(attempt);
    } catch (error) {
      const again = error instanceof BeginAgain || isConflict(error);
      if (!again || attempt === limits.batchAttemptsMax) throw error;
    }
  }
}
