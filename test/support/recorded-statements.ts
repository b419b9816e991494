import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A statement that the source sent to PostgreSQL from this process. */
export interface RecordedStatement {
  readonly text: string;
  /** What it is prepared as; undefined where it is not. */
  readonly name: string | undefined;
  /** What its parameters were, the first time. */
  readonly values: readonly unknown[];
  /** The lines of the source that it came through, the innermost first: `src/receipts/receipts.ts:105`. */
  readonly lines: readonly string[];
}

export interface Recording {
  /** Each once, by its text. */
  readonly statements: ReadonlyMap<string, RecordedStatement>;
  /** Every line of the source that a statement came through. */
  readonly lines: ReadonlySet<string>;
  /** The statements that failed, each with its last error. */
  readonly failures: ReadonlyMap<string, pg.DatabaseError>;
  stop(): void;
}

/** Records, where the driver is called, what goes to PostgreSQL. What the tests themselves ask is left out. */
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
    // The memory of a batch is given back when it is stored.
    const parameters = (values ?? (Array.isArray(given) ? given : [])).map((value) =>
      Buffer.isBuffer(value) ? Buffer.from(value) : value,
    );
    statements.set(text, { text, name, values: parameters, lines: from });
  };
  // A pool calls its client when a connection is free: by then it is forgotten who asked.
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

/** Every line of these files that calls the driver's `query`. */
export function linesThatQuery(pattern: string): string[] {
  return globSync(pattern, { cwd: root }).flatMap((file) =>
    readFileSync(`${root}/${file}`, 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        /(\.query|(?<!function )\bqueryRows?)(<|\()/.test(line) ? [`${file}:${at + 1}`] : [],
      ),
  );
}
