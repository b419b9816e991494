import pg from 'pg';

export interface LoggedError {
  readonly [key: string]: unknown;
  readonly type: string;
  readonly message: string;
  readonly stack: string;
}

/**
 * What an error may say in a log. PostgreSQL's messages and details quote values of rows, which may identify a person;
 * of its errors only the codes and the names of objects are kept.
 */
export function serializeError(error: Error): LoggedError {
  const stack = framesOf(error);
  if (error instanceof pg.DatabaseError) {
    const { code, table, column, constraint, routine } = error;
    return { type: 'DatabaseError', message: `SQLSTATE ${code}`, table, column, constraint, routine, stack };
  }
  const { code } = error as { code?: string };
  const cause = error.cause instanceof Error ? serializeError(error.cause) : undefined;
  return { type: error.name, code, message: error.message, stack, ...(cause && { cause }) };
}

function framesOf(error: Error): string {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .join('\n');
}
