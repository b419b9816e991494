import { causeOf } from '../loggable-error.ts';

/** Logs when a detour around a worker starts and ends. `worker` is its `host:port`. */
export interface DetourLog {
  begun(what: { readonly worker: string; readonly cause: string }): void;
  ended(what: { readonly worker: string }): void;
}

/**
 * The workers that this process cannot connect to. The coordinator forwards their requests, so nothing fails, but without
 * a log line nobody would notice the additional cost. Only changes are logged, not every attempt.
 */
export class Detours {
  readonly #onTaken: (worker: string) => void;
  readonly #workers = new Set<string>();
  #log: DetourLog | undefined;

  /** `onTaken` is called whenever a connection to the coordinator replaces a connection to a worker. */
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

  /** Removes a worker that has left the cluster. */
  forget(worker: string): void {
    this.#workers.delete(worker);
  }
}
