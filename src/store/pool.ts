import pg from 'pg';
import type { DatabaseConfig } from '../config.ts';
import { limits } from '../limits.ts';

export type Client = pg.PoolClient;
export type Pool = pg.Pool;

/** Values that JavaScript would bend (instants, days, decimals) stay the text that PostgreSQL writes. */
const keptAsText = new Set<number>([
  pg.types.builtins.TIMESTAMPTZ,
  pg.types.builtins.DATE,
  pg.types.builtins.NUMERIC,
  pg.types.builtins.INT8,
]);

export function createPool(config: DatabaseConfig, onIdleError: (error: Error) => void): Pool {
  const pool = new pg.Pool({
    connectionString: config.databaseUrl,
    max: config.databaseConnectionsMax,
    // A new connection has to log in and prepare its statements; what comes in a burst should not wait for that.
    idleTimeoutMillis: limits.databaseIdleMs,
    connectionTimeoutMillis: Math.min(limits.databaseConnectTimeoutMs, config.databaseTimeoutMs),
    statement_timeout: config.databaseTimeoutMs,
    // The server ends a slow statement itself; this one is for a server that has stopped answering altogether.
    query_timeout: config.databaseTimeoutMs + limits.databaseGraceMs,
    idle_in_transaction_session_timeout: config.databaseTimeoutMs,
    application_name: 'intake-server',
    // How PostgreSQL writes instants, days and doubles must not depend on what a database or a role is set to.
    options: '-c timezone=UTC -c datestyle=ISO -c extra_float_digits=1',
    // A statement may be sent before the last one is answered; see `inOneTransaction`.
    pipeline: true,
    onConnect: async (client: pg.ClientBase) => void (await client.query(planOnce)),
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        keptAsText.has(oid) ? (value: string) => value : pg.types.getTypeParser(oid, format as 'text'),
    } as pg.CustomTypesConfig,
  });
  // A connection that breaks is replaced by the pool; without a listener it would end the process. One that breaks while
  // it is in use fails the statement that uses it, which says so itself.
  pool.on('error', onIdleError);
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/**
 * Left to itself, PostgreSQL plans small statements anew each time, for it takes the arrays of a prepared one to be
 * longer than they are: 400 microseconds for an interaction by itself, against 150 with one plan for all. Citus needs to
 * see the organisation to find its node, and refuses such a plan.
 */
const planOnce = `
  select set_config('plan_cache_mode', 'force_generic_plan', false)
  where not exists (select from pg_extension where extname = 'citus')`;

/** COMMIT was sent and its answer never came: the work is stored or it is not, and only sending it again settles it. */
export class CommitUnconfirmed extends Error {
  constructor(cause: unknown) {
    super('the answer to COMMIT was lost', { cause });
  }
}

/** Asks for a statement that nothing depends on to be sent together with COMMIT: one write, and one wait for all. */
export type SendLast = (statement: (client: Client) => Promise<unknown>) => void;

/** Runs `work` in one transaction. A connection that fails to roll back is thrown away, so that no slot is poisoned. */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: Client, sendLast: SendLast) => Promise<T>,
  begin: 'begin' | 'begin read only' = 'begin',
): Promise<T> {
  const client = await pool.connect();
  const last: ((client: Client) => Promise<unknown>)[] = [];
  let result: T;
  try {
    // Sent with the first statement of the work; whether it succeeded is asked before anything is committed.
    const begun = client.query(begin);
    begun.catch(() => {});
    result = await work(client, (statement) => last.push(statement));
    await begun;
  } catch (error) {
    await rollBack(client, error);
    throw error;
  }
  await commit(client, last);
  return result;
}

/**
 * Runs statements that do not need each other's results in one transaction, all sent at once: a single write, a single
 * wait, a single commit. Either every one of them is committed or, whatever failed, none.
 */
export async function inOneTransaction<T>(
  client: Client,
  statements: readonly ((client: Client) => Promise<T>)[],
): Promise<T[]> {
  client.query('begin').catch(() => {});
  const { settled, ended } = sendWithCommit(client, statements);
  const { command } = await ended;
  return refuseRollback(settled, command);
}

/** On a connection that has stopped answering, ROLLBACK would wait out a timeout of its own; closing it rolls back too. */
async function rollBack(client: Client, because: unknown): Promise<void> {
  if (isUnavailable(because)) client.release(true);
  else {
    await client.query('rollback').then(
      () => client.release(),
      () => client.release(true),
    );
  }
}

async function commit(
  client: Client,
  last: readonly ((client: Client) => Promise<unknown>)[],
): Promise<void> {
  const { settled, ended } = sendWithCommit(client, last);
  let command: string;
  try {
    ({ command } = await ended);
  } catch (error) {
    client.release(true);
    throw leavesOutcomeOpen(error) ? new CommitUnconfirmed(error) : error;
  }
  client.release();
  await refuseRollback(settled, command);
}

function sendWithCommit<T>(client: Client, last: readonly ((client: Client) => Promise<T>)[]) {
  const { stream } = client.connection;
  stream.cork();
  const settled = Promise.allSettled(last.map((run) => run(client)));
  const ended = client.query('commit');
  stream.uncork();
  return { settled, ended };
}

/** PostgreSQL answers COMMIT of a failed transaction with the word ROLLBACK and no error; the statement knows why. */
async function refuseRollback<T>(settled: Promise<PromiseSettledResult<T>[]>, command: string): Promise<T[]> {
  const results = await settled;
  const failure = results.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
  if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`);
  return results.map((result) => (result as PromiseFulfilledResult<T>).value);
}

const unreachableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
]);

const unavailableStates = new Set([
  '25P03', // a transaction was idle for too long
  '25P04', // a transaction took too long
  '25006', // read-only: a standby, or a primary that was demoted
  '57014', // statement timeout
  '57P01', // shut down by the administrator
  '57P02', // crashed
  '57P03', // still starting
  '3D000', // the database does not exist (yet)
]);

/** SQLSTATE classes: connection, authorisation, insufficient resources (disk full among them), system error. */
const unavailableClasses = new Set(['08', '28', '53', '58']);

/** True where it is the database that is at fault and not the statement: the same request may succeed later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // A host with several addresses, each of which was tried.
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  const { code, syscall } = error as { code?: unknown; syscall?: string };
  if (error instanceof pg.DatabaseError) {
    return unavailableStates.has(error.code ?? '') || unavailableClasses.has(error.code?.slice(0, 2) ?? '');
  }
  // A client that hangs up in the middle of its body and a file that is not there have such codes too, but not from
  // these calls.
  if (typeof code === 'string')
    return unreachableCodes.has(code) && /^(connect|read|write|getaddrinfo)/.test(syscall ?? '');
  // The driver's own errors about a connection have no code.
  return /^(Connection terminated|Query read timeout|timeout exceeded|Client has encountered a connection)/.test(
    error.message,
  );
}

/** True where PostgreSQL answered, and does not know the user, the password or the database. */
export function isRefusedLogin(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(28|3D000)/.test(error.code ?? '');
}

/**
 * True where a statement that commits failed without PostgreSQL's word on it. An error that PostgreSQL reports means it
 * did not happen, unless it came with the end of the connection.
 */
export function leavesOutcomeOpen(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || /^(57P|08)/.test(error.code ?? '');
}

/** True where PostgreSQL chose this transaction to give way to another: doing it again is all that is needed. */
export function isConflict(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '40P01' || code === '40001';
}
