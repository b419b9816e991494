import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A statement that code in src/ sent to PostgreSQL from this process. */
export interface RecordedStatement {
  readonly text: string;
  /** The name of the prepared statement, or undefined if the statement is not prepared. */
  readonly name: string | undefined;
  /** The parameters of the statement's first call. */
  readonly values: readonly unknown[];
  /** The source lines on the statement's call stack, innermost first, such as `src/receipts/receipts.ts:105`. */
  readonly lines: readonly string[];
}

export interface Recording {
  /** All statements by their text, each listed once. */
  readonly statements: ReadonlyMap<string, RecordedStatement>;
  /** Every source line that occurs on a statement's call stack. */
  readonly lines: ReadonlySet<string>;
  /** The statements that failed, each with its latest error. */
  readonly failures: ReadonlyMap<string, pg.DatabaseError>;
  stop(): void;
}

/** Records the statements that code in src/ sends to PostgreSQL. Skips statements that the tests send themselves. */
export function recordStatements(): Recording {
  const statements = new Map<string, RecordedStatement>();
  const lines = new Set<string>();
  const failures = new Map<string, pg.DatabaseError>();
  const record = (statement: string | Sent, given: unknown, result: unknown) => {
    const from = linesOfStack();
    const { text, name, values } = typeof statement === 'string' ? { text: statement } : statement;
    for (const line of from) lines.add(line);
    if (from.length === 0) return;
    if (result instanceof Promise)
      result.catch((error) => {
        if (error instanceof pg.DatabaseError) failures.set(text, error);
      });
    if (statements.has(text)) return;
    // A batch's memory is freed after it is stored, so its parameters are copied.
    const parameters = (values ?? (Array.isArray(given) ? given : [])).map((value) =>
      Buffer.isBuffer(value) ? Buffer.from(value) : value,
    );
    statements.set(text, { text, name, values: parameters, lines: from });
  };
  // A pool calls its client only when a connection is free, and by then the caller is no longer on the stack.
  const stops = [pg.Client, pg.Pool].map((driver) => spyOnQuery(driver.prototype, record));
  return { statements, lines, failures, stop: () => stops.forEach((stop) => void stop()) };
}

interface Sent {
  readonly text: string;
  readonly name?: string;
  readonly values?: readonly unknown[];
}

function spyOnQuery(
  driver: object,
  record: (statement: never, given: unknown, result: unknown) => void,
): () => void {
  const spied = driver as { query: (this: unknown, statement: never, ...rest: never[]) => unknown };
  const { query } = spied;
  spied.query = function (statement, ...rest) {
    const result = query.call(this, statement, ...rest);
    record(statement, rest[0], result);
    return result;
  };
  return () => {
    spied.query = query;
  };
}

function linesOfStack(): string[] {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 30;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = limit;
  return [...stack.matchAll(/(src\/[\w/-]+\.ts):(\d+):\d+/g)].map(([, file, line]) => `${file}:${line}`);
}

/** Returns every line of these files that calls the driver's `query`. */
export function linesThatQuery(pattern: string): string[] {
  return globSync(pattern, { cwd: root }).flatMap((file) =>
    readFileSync(`${root}/${file}`, 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        /(\.query|(?<!function )\bqueryRows?)(<|\()/.test(line) ? [`${file}:${at + 1}`] : [],
      ),
  );
}
