import pg from 'pg';
import type { DatabaseConfig } from '../config.ts';
import { limits } from '../limits.ts';
import { clusterOptions, selectCluster } from './cluster/extension.ts';
import {
  isLossOfWorker,
  isMoved,
  isWorkerLost,
  isWorkerLostInCommit,
  isWorkerNotConnected,
} from './cluster/worker-errors.ts';
import { type StatementEvents, timeStatements } from './timed-statements.ts';

export type Client = pg.PoolClient & {
  /** How long a transaction may wait for a lock; undefined if only the statement timeout bounds it. */
  lockWaitMs?: number;
};
/** Anything that can run statements. */
export type Pool = Pick<pg.Pool, 'connect' | 'query'>;
/** A pool that its creator closes. */
export type OwnPool = pg.Pool;

/** Types that JavaScript would distort (instants, days, decimals) stay text. */
const keptAsText = new Set<number>([
  pg.types.builtins.TIMESTAMPTZ,
  pg.types.builtins.DATE,
  pg.types.builtins.NUMERIC,
  pg.types.builtins.INT8,
]);

export function createPool(
  config: DatabaseConfig,
  onIdleError: (error: Error) => void,
  { plansOnce = false, statements }: { plansOnce?: boolean; statements?: StatementEvents | undefined } = {},
): OwnPool {
  const pool = new pg.Pool({
    connectionString: config.databaseUrl,
    max: config.databaseConnectionsMax,
    // A new connection has to log in and prepare its statements; a burst should not wait for that.
    idleTimeoutMillis: limits.databaseIdleMs,
    connectionTimeoutMillis: Math.min(limits.databaseConnectTimeoutMs, config.databaseTimeoutMs),
    // The server ends a slow statement itself; this is for a server that has stopped answering.
    query_timeout: config.databaseTimeoutMs + limits.databaseGraceMs,
    application_name: 'intake-server',
    ...(config.databasePooler ? pooled : ownSessions(config.databaseTimeoutMs, plansOnce)),
    // A statement may be sent before the last one is answered; see `inOneTransaction` in transactions.ts.
    pipeline: true,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        keptAsText.has(oid) ? (value: string) => value : pg.types.getTypeParser(oid, format as 'text'),
    } as pg.CustomTypesConfig,
  });
  // The pool replaces a broken connection; without a listener the error would end the process. If the connection is in
  // use, its statement fails and reports the error.
  pool.on('error', onIdleError);
  pool.on('connect', (client) => {
    client.on('error', () => {});
    if (statements) timeStatements(client, statements);
  });
  return pool;
}

/** Runs `work` on one connection, which is closed instead of returned to the pool if the database went away. */
export async function withClient<T>(
  pool: { connect(): Promise<Client> },
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    const result = await work(client);
    client.release();
    return result;
  } catch (error) {
    client.release(isUnavailable(error));
    throw error;
  }
}

/** The text form of instants, days and doubles must not depend on the settings of the database or the role. */
function ownSessions(timeoutMs: number, plansOnce: boolean | undefined): pg.PoolConfig {
  return {
    statement_timeout: timeoutMs,
    idle_in_transaction_session_timeout: timeoutMs,
    // Our statements run for less time than PostgreSQL takes to compile them.
    options: [
      '-c timezone=UTC -c datestyle=ISO -c extra_float_digits=1 -c jit=off',
      clusterOptions,
      ...(plansOnce ? [noWholeTables] : []),
    ].join(' '),
    ...(plansOnce && { onConnect: async (client: pg.ClientBase) => void (await client.query(planOnce)) }),
  };
}

/**
 * A request reads a few rows of one organisation, by an index. PostgreSQL would rather read a small table as a whole, and the
 * connection keeps that plan when the table has grown.
 */
const noWholeTables = '-c enable_seqscan=off';

/**
 * A connection without named prepared statements. Behind a pooler in transaction mode the next transaction may run in
 * another session, which does not know the name, or knows it for a statement of another process.
 */
export class UnnamedClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: `query` has nine overloads, and all of them pass through here.
  override query(statement: any, ...rest: any[]): any {
    const run = super.query as (...all: unknown[]) => unknown;
    return run.call(
      this,
      typeof statement === 'object' && !(statement instanceof pg.Query)
        ? { ...statement, name: undefined }
        : statement,
      ...rest,
    );
  }
}

/**
 * PgBouncer refuses startup parameters that it does not track. It tracks the time zone and the date style of each
 * client and sets them on whichever session the client gets; nothing else would stay with us. The timeouts and
 * extra_float_digits are those of the role, which `serve` checks; since PostgreSQL 12 the default of the latter writes
 * doubles exactly. Plans are only kept for named statements.
 */
const pooled: pg.PoolConfig & { Client: typeof pg.Client } = {
  Client: UnnamedClient,
  onConnect: async (client) => void (await client.query('set timezone = UTC; set datestyle = ISO')),
};

/**
 * By default PostgreSQL plans some prepared statements each time, because it overestimates the length of their arrays.
 * With a generic plan an interaction by itself takes 220 instead of 610 microseconds, the look-up of a batch 310
 * instead of 700. Only connections for uploads and interactions use it; keys, maintenance and the operator would gain
 * nothing. An unnamed statement is planned each time anyway, and then without its values: on a partitioned table that
 * costs more (an interaction by its id 570 instead of 190), so that statement contains the id as a literal. A cluster needs
 * the organisation's value to find its node, and refuses a generic plan.
 */
const planOnce = `
  select set_config('plan_cache_mode', 'force_generic_plan', false)
  where not exists (${selectCluster})`;

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
  '55P03', // a lock was not acquired in time
  'IN001', // our own: restored, and not confirmed yet; see keys_can_be_trusted in migrations/0001_organisations-and-keys.sql
]);

/** SQLSTATE classes: connection, authorisation, insufficient resources (disk full among them), system error. */
const unavailableClasses = new Set(['08', '28', '53', '58']);

/** True if the fault is the database's and not the statement's: the same request may succeed later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // A host with several addresses, each of which was tried.
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  const { code, syscall } = error as { code?: unknown; syscall?: string };
  if (error instanceof pg.DatabaseError) {
    return (
      unavailableStates.has(error.code ?? '') ||
      unavailableClasses.has(error.code?.slice(0, 2) ?? '') ||
      endsSession(error) ||
      isWorkerLost(error)
    );
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

/** The same, but false if only a node of a cluster is away, which has some organisations only. */
export function isServerAway(error: unknown): boolean {
  return isUnavailable(error) && !isLossOfWorker(error);
}

/** True if the error is an answer of PostgreSQL, so it can be reached. */
export function isAnswered(error: unknown): boolean {
  return error instanceof pg.DatabaseError;
}

/** PostgreSQL could not begin the session, or has ended it. Such errors may have any code, also XX000. */
function endsSession({ severity }: pg.DatabaseError): boolean {
  return severity === 'FATAL' || severity === 'PANIC';
}

/** True if PostgreSQL refuses this user, password or database: it will not change without the operator. */
export function isRefusedLogin(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(28|3D000|42)/.test(error.code ?? '');
}

/** True if PostgreSQL has no room to write. A new session then fails while it writes a cache, without the code for that. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  return (
    error.code === '53100' || (error.code === 'XX000' && /^could not write init file/.test(error.message))
  );
}

/**
 * True if a committing statement failed without a definite answer. An error that PostgreSQL reports means that nothing
 * was committed, unless it came with the end of a connection: ours, or one between the nodes of a cluster.
 */
export function leavesOutcomeOpen(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return true;
  const { isRolledBack } = error as { isRolledBack?: boolean };
  if (isRolledBack || isWorkerNotConnected(error)) return false;
  if (/^(57P|08)/.test(error.code ?? '') || endsSession(error)) return true;
  return isWorkerLostInCommit(error);
}

/** Marks an error after which COMMIT was answered with ROLLBACK: nothing is stored, whatever the error says. */
export function noteRolledBack(error: unknown): void {
  if (error instanceof Error) Object.assign(error, { isRolledBack: true });
}

/** True if a lock was not acquired within the lock timeout or the statement timeout. */
export function isLockTimeout(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '55P03' || code === '57014';
}

/** True if PostgreSQL gave up waiting for a lock: the connection is as good as before. */
export function isLockNotAcquired(error: unknown): boolean {
  return (error as { code?: unknown }).code === '55P03';
}

/** True if a row with the same primary key or unique value exists. */
export function isDuplicate(error: unknown): boolean {
  return (error as { code?: unknown }).code === '23505';
}

/**
 * True if PostgreSQL aborted this transaction in favour of another, or data was moved to another node: a retry is enough.
 */
export function isConflict(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '40P01' || code === '40001' || isMoved(error as Error);
}
