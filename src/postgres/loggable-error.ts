import pg from 'pg';
import { workerNamedIn } from './cluster/worker-errors.ts';
import { isDiskFull, isUnavailable } from './pool.ts';

interface LoggedError {
  readonly [key: string]: unknown;
  readonly type: string;
  readonly message: string;
  /** Empty if the database is unavailable, because the stack is useless in that case. */
  readonly stack: string;
}

/** PostgreSQL's messages quote row values, which may identify a person, so only codes and object names are kept. */
export function serializeError(error: Error): LoggedError {
  const stack = isUnavailable(error) ? '' : framesOf(error);
  if (error instanceof pg.DatabaseError) {
    const { code, table, column, constraint, routine } = error;
    const worker = workerNamedIn(error);
    const names = { table, column, constraint, routine, worker };
    return { type: 'DatabaseError', message: withMeaning(`SQLSTATE ${code}`, error), ...names, stack };
  }
  const { code } = error as { code?: string };
  const cause = error.cause instanceof Error ? serializeError(error.cause) : undefined;
  return { type: error.name, code, message: error.message, stack, ...(cause && { cause }) };
}

/** Describes a database error in a word or two, without the values that PostgreSQL's messages quote. */
export function causeOf(error: unknown): string {
  if (error instanceof AggregateError) return causeOf(error.errors[0]);
  const { code, message } = error as { code?: string; message: string };
  // This message is our own and quotes nothing.
  if (code === 'IN001') return message;
  if (!(error instanceof pg.DatabaseError)) return code ?? message;
  const worker = workerNamedIn(error);
  return withMeaning(
    worker === undefined ? `SQLSTATE ${code}` : `SQLSTATE ${code} of the worker ${worker}`,
    error,
  );
}

function withMeaning(text: string, error: unknown): string {
  const meaning = meaningOf(error);
  return meaning === undefined ? text : `${text}: ${meaning}`;
}

const diskFull = "PostgreSQL's disk is full; free space on it or grow its volume";

const meanings: Readonly<Record<string, string>> = {
  '25006': 'PostgreSQL is read-only, like a standby; point DATABASE_URL at the primary',
  '53200': 'PostgreSQL is out of memory; give its machine more, or lower its work_mem or max_connections',
  '53300': 'PostgreSQL has no connection left; raise max_connections, or put PgBouncer in front',
  '55P03': 'another session holds a lock',
  '57P01': 'PostgreSQL is stopping, or an administrator ended the connection',
  '57P02': 'PostgreSQL has crashed and is restarting',
  '57P03': 'PostgreSQL is starting or stopping',
  IN001:
    'the database was restored to an earlier time; run intake-server after-restore with the audit log and the ledger of erased ' +
    'people, or with --revoke-all-keys and --without-erasures',
  '58030': "PostgreSQL's disk reports an error; check the disk",
};

export function meaningOf(error: unknown): string | undefined {
  if (isDiskFull(error)) return diskFull;
  return error instanceof pg.DatabaseError ? meanings[error.code ?? ''] : undefined;
}

function framesOf(error: Error): string {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .join('\n');
}
