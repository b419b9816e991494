import type { PoolClient, QueryConfig } from 'pg';

/** Who wants to know of statements. */
export interface StatementEvents {
  /** Is told the name of a statement and how long it took. */
  readonly ended?: ((name: string, durationMs: number) => void) | undefined;
  /** Is told the name of a statement that begins; what it gives is called at the end, with the error if it failed. */
  readonly begin?: ((name: string) => ((error?: unknown) => void) | undefined) | undefined;
}

/** Has a connection tell of its prepared statements and of COMMIT; others have no name to be told by. */
export function timeStatements(client: PoolClient, events: StatementEvents): void {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  client.query = ((...args: unknown[]) => {
    const name = args[0] === 'commit' ? args[0] : (args[0] as QueryConfig).name;
    if (name === undefined) return query(...args);
    const startedMs = performance.now();
    const end = events.begin?.(name);
    const tell = (error?: unknown) => {
      events.ended?.(name, performance.now() - startedMs);
      end?.(error);
    };
    // The pool's own `query` gives a callback, everybody else waits for a promise.
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
