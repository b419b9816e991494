import type { PoolClient, QueryConfig } from 'pg';

/** Callbacks for the start and end of statements. */
export interface StatementEvents {
  /** Called with the name and the duration of a statement that has ended. */
  readonly ended?: ((name: string, durationMs: number) => void) | undefined;
  /**
   * Called with the name of a statement that starts. Returns a function that is called with the error, if any, when the
   * statement ends.
   */
  readonly begin?: ((name: string) => ((error?: unknown) => void) | undefined) | undefined;
}

/** Makes a connection report its prepared statements and COMMIT. Other statements have no name. */
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
