import pg from 'pg';
import { isUnavailable, workerNamedIn } from './pool.ts';

export interface LoggedError {
  readonly [key: string]: unknown;
  readonly type: string;
  readonly message: string;
  /** Empty if the database is away: the stack then says nothing. */
  readonly stack: string;
}

/**
 * What an error may say in the log. PostgreSQL's messages and details quote values of rows, which may identify a
 * person, so only the codes and the names of objects are kept.
 */
export function serializeError(error: Error): LoggedError {
  const stack = isUnavailable(error) ? '' : framesOf(error);
  if (error instanceof pg.DatabaseError) {
    const { code, table, column, constraint, routine } = error;
    const worker = workerNamedIn(error);
    const names = { table, column, constraint, routine, worker };
    return { type: 'DatabaseError', message: `SQLSTATE ${code}`, ...names, stack };
  }
  const { code } = error as { code?: string };
  const cause = error.cause instanceof Error ? serializeError(error.cause) : undefined;
  return { type: error.name, code, message: error.message, stack, ...(cause && { cause }) };
}

/** A database error in a word or two, without the values that PostgreSQL's messages quote. */
export function causeOf(error: unknown): string {
  if (error instanceof AggregateError) return causeOf(error.errors[0]);
  const { code, message } = error as { code?: string; message: string };
  // Our own message, which quotes nothing.
  if (code === 'IN001') return message;
  if (!(error instanceof pg.DatabaseError)) return code ?? message;
  const worker = workerNamedIn(error);
  return worker === undefined ? `SQLSTATE ${code}` : `SQLSTATE ${code} of the worker ${worker}`;
}

function framesOf(error: Error): string {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .join('\n');
}
