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

export type Client = pg.PoolClient & {
  /** How long a transaction may wait for a lock. If this is undefined, only the statement timeout limits the wait. */
  lockWaitMs?: number;
};
export type Pool = Pick<pg.Pool, 'connect' | 'query'>;
/** A pool that its creator closes. */
export type OwnPool = pg.Pool;

/** Converting instants, days, decimals and large integers to JavaScript values would distort them. */
const keptAsText = new Set<number>([
  pg.types.builtins.TIMESTAMPTZ,
  pg.types.builtins.DATE,
  pg.types.builtins.NUMERIC,
  pg.types.builtins.INT8,
]);

export interface StatementEvents {
  readonly ended?: ((name: string, durationMs: number) => void) | undefined;
  /** Returns a function that is called with the error, if any, when the statement ends. */
  readonly begin?: ((name: string) => ((error?: unknown) => void) | undefined) | undefined;
}

interface PoolOptions {
  readonly plansOnce?: boolean;
  readonly statements?: StatementEvents | undefined;
  readonly connectTimeoutMs?: number;
}

export function createPool(
  config: DatabaseConfig,
  onIdleError: (error: Error) => void,
  { plansOnce = false, statements, connectTimeoutMs = limits.databaseConnectTimeoutMs }: PoolOptions = {},
): OwnPool {
  const pool = new pg.Pool({
    connectionString: config.databaseUrl,
    max: config.databaseConnectionsMax,
    // A new connection has to log in and prepare its statements. A burst of requests should not have to wait for that.
    idleTimeoutMillis: limits.databaseIdleMs,
    connectionTimeoutMillis: Math.min(connectTimeoutMs, config.databaseTimeoutMs),
    // The server cancels slow statements itself. This timeout is for a server that has stopped responding.
    query_timeout: config.databaseTimeoutMs + limits.databaseGraceMs,
    application_name: 'intake-server',
    ...(config.databasePooler ? pooled : ownSessions(config.databaseTimeoutMs, plansOnce)),
    // A statement may be sent before the previous one is answered. See `inOneTransaction` in transactions.ts.
    pipeline: true,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        keptAsText.has(oid) ? (value: string) => value : pg.types.getTypeParser(oid, format as 'text'),
    } as pg.CustomTypesConfig,
  });
  // The pool replaces a broken connection. Without a listener, the error would end the process. If the connection is in
  // use, its statement fails and reports the error.
  pool.on('error', onIdleError);
  pool.on('connect', (client) => {
    client.on('error', () => {});
    if (statements) timeStatements(client, statements);
  });
  return pool;
}

/** Makes a connection report its prepared statements and COMMIT. Other statements have no name. */
function timeStatements(client: pg.PoolClient, events: StatementEvents): void {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  client.query = ((...args: unknown[]) => {
    const name = args[0] === 'commit' ? args[0] : (args[0] as pg.QueryConfig).name;
    if (name === undefined) return query(...args);
    const startedMs = performance.now();
    const end = events.begin?.(name);
    const tell = (error?: unknown) => {
      events.ended?.(name, performance.now() - startedMs);
      end?.(error);
    };
    // The pool's own `query` passes a callback. All other callers use the promise.
    const callback = args.at(-1);
    if (typeof callback === 'function') {
      const telling = (...result: unknown[]) => {
        tell(result[0]);
        callback(...result);
      };
      return query(...args.slice(0, -1), telling);
    }
    const result = query(...args) as Promise<unknown>;
    result.then(() => tell(), tell);
    return result;
  }) as typeof client.query;
}

/** If the database becomes unavailable, the connection is closed instead of being returned to the pool. */
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

/** The text format of instants, days and doubles must not depend on database or role settings. */
function ownSessions(timeoutMs: number, plansOnce: boolean | undefined): pg.PoolConfig {
  return {
    statement_timeout: timeoutMs,
    idle_in_transaction_session_timeout: timeoutMs,
    // JIT is off, because compiling our statements takes PostgreSQL longer than running them.
    options: [
      '-c timezone=UTC -c datestyle=ISO -c extra_float_digits=1 -c jit=off',
      clusterOptions,
      // For a small table, PostgreSQL would prefer a sequential scan, and the connection would keep that plan after the
      // table has grown.
      ...(plansOnce ? ['-c enable_seqscan=off'] : []),
    ].join(' '),
    ...(plansOnce && { onConnect: async (client: pg.ClientBase) => void (await client.query(planOnce)) }),
  };
}

/**
 * Behind a pooler in transaction mode, the next transaction may run in another session, which either does not know the
 * name of a prepared statement or has used it for another process's statement.
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
 * PgBouncer refuses startup parameters that it does not track. It tracks each client's time zone and date style and
 * sets them on the session it assigns. The timeouts and `extra_float_digits` are therefore role settings, which `serve`
 * checks.
 */
const pooled: pg.PoolConfig & { Client: typeof pg.Client } = {
  Client: UnnamedClient,
  onConnect: async (client) => void (await client.query('set timezone = UTC; set datestyle = ISO')),
};

/**
 * Makes PostgreSQL keep one plan per prepared statement. By default, it replans some of them each time, because it
 * overestimates the length of their arrays. With a generic plan, a single interaction takes 220 instead of 610
 * microseconds, and looking up a batch takes 310 instead of 700. Maintenance and the lake use this setting too: planned with
 * its id, a statement about an organisation that PostgreSQL's statistics do not know seems to read a single row, so any
 * index looks good enough. Keys and the operator would gain nothing. An unnamed statement is planned each time anyway, and
 * in this mode without its values. On a partitioned table that costs more (570 instead of 190 for an
 * interaction by its id), so that statement contains the id as a literal. A cluster needs the organisation's value to
 * find its node, and refuses a generic plan.
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
  'IN001', // restored but not confirmed; see keys_can_be_trusted in migrations/0001_organisations-and-keys.sql
]);

/** SQLSTATE classes: connection, authorisation, insufficient resources (including disk full), system error. */
const unavailableClasses = new Set(['08', '28', '53', '58']);

/** Returns whether the problem is in the database and not in the statement, so that the same request may succeed later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // The host has several addresses, and all of them were tried.
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
  // A client that disconnects while it sends its body also causes such a code, and so does a missing file, but not in
  // these system calls.
  if (typeof code === 'string')
    return unreachableCodes.has(code) && /^(connect|read|write|getaddrinfo)/.test(syscall ?? '');
  // The driver's own errors about a connection have no code.
  return /^(Connection terminated|Query read timeout|timeout exceeded|Client has encountered a connection)/.test(
    error.message,
  );
}

/** A cluster node stores only some organisations, so the loss of one does not count. */
export function isServerAway(error: unknown): boolean {
  return isUnavailable(error) && !isLossOfWorker(error);
}

/** Returns whether the error is a response of PostgreSQL, which means that PostgreSQL is reachable. */
export function isAnswered(error: unknown): boolean {
  return error instanceof pg.DatabaseError;
}

/** Returns whether PostgreSQL could not start the session or has ended it. Such errors may have any code, even XX000. */
function endsSession({ severity }: pg.DatabaseError): boolean {
  return severity === 'FATAL' || severity === 'PANIC';
}

/** Only the operator can correct a user, a password or the name of a database. */
export function isRefusedLogin(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(28|3D000|42)/.test(error.code ?? '');
}

/** Without disk space, a new session fails with a different code, because it cannot write a cache file. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  return (
    error.code === '53100' || (error.code === 'XX000' && /^could not write init file/.test(error.message))
  );
}

/**
 * An error that PostgreSQL reports means that nothing was committed, unless a connection broke, either our own or one
 * between cluster nodes.
 */
export function leavesOutcomeOpen(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return true;
  const { isRolledBack } = error as { isRolledBack?: boolean };
  if (isRolledBack || isWorkerNotConnected(error)) return false;
  if (/^(57P|08)/.test(error.code ?? '') || endsSession(error)) return true;
  return isWorkerLostInCommit(error);
}

/** After this error, COMMIT was answered with ROLLBACK. Nothing is stored in that case, whatever the error says. */
export function noteRolledBack(error: unknown): void {
  if (error instanceof Error) Object.assign(error, { isRolledBack: true });
}

export function isLockTimeout(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '55P03' || code === '57014';
}

/** The connection can still be used. */
export function isLockNotAcquired(error: unknown): boolean {
  return (error as { code?: unknown }).code === '55P03';
}

export function isDuplicate(error: unknown): boolean {
  return (error as { code?: unknown }).code === '23505';
}

/** PostgreSQL aborted this transaction in favour of another one, or data was moved to another node. */
export function isConflict(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '40P01' || code === '40001' || isMoved(error as Error);
}
