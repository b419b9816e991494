import { causeOf } from '../loggable-error.ts';

/** `worker` is `host:port`. */
export interface DetourLog {
  begun(what: { readonly worker: string; readonly cause: string }): void;
  ended(what: { readonly worker: string }): void;
}

/**
 * The coordinator forwards the requests of workers that this process cannot connect to. Nothing fails, but without a
 * log line nobody would notice the additional cost.
 */
export class Detours {
  readonly #workers = new Set<string>();
  #log: DetourLog | undefined;

  logTo(log: DetourLog): void {
    this.#log = log;
  }

  refused(worker: string, error: unknown): void {
    if (this.#workers.has(worker)) return;
    this.#workers.add(worker);
    this.#log?.begun({ worker, cause: causeOf(error) });
  }

  connected(worker: string): void {
    if (this.#workers.delete(worker)) this.#log?.ended({ worker });
  }

  forget(worker: string): void {
    this.#workers.delete(worker);
  }
}
