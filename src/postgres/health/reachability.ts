import pg from 'pg';
import { causeOf } from '../loggable-error.ts';
import { isUnavailable } from '../pool.ts';

/** The address of PostgreSQL, and why it cannot be used. */
export interface Away {
  readonly host: string;
  readonly port: number;
  readonly cause: string;
}

export interface ReachabilityLog {
  away(what: Away): void;
  back(what: Omit<Away, 'cause'> & { readonly away_ms: number }): void;
}

/**
 * Whether background work can use PostgreSQL; logs only changes, not every attempt. It is back when everything that
 * failed has succeeded again: a standby that can be read but not written is not back.
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

  /** False if the error has another cause, which the caller must log. */
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
