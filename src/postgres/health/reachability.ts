import pg from 'pg';
import { causeOf } from '../loggable-error.ts';
import { isUnavailable } from '../pool.ts';

interface Away {
  readonly host: string;
  readonly port: number;
  readonly cause: string;
}

export interface ReachabilityLog {
  away(what: Away): void;
  back(what: Omit<Away, 'cause'> & { readonly away_ms: number }): void;
}

/**
 * PostgreSQL counts as available again when every kind of attempt that failed has succeeded again, so a read-only
 * standby does not count as available.
 */
export class Reachability {
  readonly #server: { readonly host: string; readonly port: number };
  readonly #log: ReachabilityLog;
  readonly #failing = new Set<string>();
  #awaySinceMs = 0;

  constructor(databaseUrl: string, log: ReachabilityLog) {
    const { host, port } = new pg.Client({ connectionString: databaseUrl });
    this.#server = { host, port };
    this.#log = log;
  }

  /** Returns false if PostgreSQL is not the cause, in which case the caller must log the error. */
  failed(attempt: string, error: unknown): boolean {
    if (!isUnavailable(error)) return false;
    if (this.#failing.size === 0) {
      this.#awaySinceMs = performance.now();
      this.#log.away({ ...this.#server, cause: causeOf(error) });
    }
    this.#failing.add(attempt);
    return true;
  }

  succeeded(attempt: string): void {
    if (!this.#failing.delete(attempt) || this.#failing.size > 0) return;
    this.#log.back({ ...this.#server, away_ms: Math.round(performance.now() - this.#awaySinceMs) });
  }
}
