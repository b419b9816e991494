import { causeOf } from '../loggable-error.ts';

/** A worker of a Citus cluster, as `host:port`. */
export interface DetourLog {
  begun(what: { readonly worker: string; readonly cause: string }): void;
  ended(what: { readonly worker: string }): void;
}

/**
 * Workers that this process cannot connect to. The coordinator passes their requests on, so nothing fails, and without a
 * log line nobody would notice what it costs. Logs only changes, not every attempt.
 */
export class Detours {
  readonly #onTaken: (worker: string) => void;
  readonly #workers = new Set<string>();
  #log: DetourLog | undefined;

  /** `onTaken` is called for every connection that is made to the coordinator in place of a worker. */
  constructor(onTaken: (worker: string) => void = () => {}) {
    this.#onTaken = onTaken;
  }

  logTo(log: DetourLog): void {
    this.#log = log;
  }

  taken(worker: string): void {
    this.#onTaken(worker);
  }

  refused(worker: string, error: unknown): void {
    if (this.#workers.has(worker)) return;
    this.#workers.add(worker);
    this.#log?.begun({ worker, cause: causeOf(error) });
  }

  connected(worker: string): void {
    if (this.#workers.delete(worker)) this.#log?.ended({ worker });
  }

  /** The cluster no longer has the worker. */
  forget(worker: string): void {
    this.#workers.delete(worker);
  }
}
