import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { insertInteractions, type NewInteraction } from '../store/interactions.ts';
import { isUnavailable, leavesOutcomeOpen, type Pool } from '../store/pool.ts';

interface Waiting {
  readonly added: NewInteraction;
  /** True once it is committed, false where its item or its student does not exist. */
  readonly resolve: (written: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Interactions that wait at the same time share a statement and its commit; each is answered only after it. A statement
 * holds one organisation, for on Citus the rows of several would be spread over every shard. Nobody waits for company:
 * with a connection free, an interaction is on its way before the next request is read.
 */
export class InteractionWriter {
  readonly #pool: Pool;
  readonly #waiting = new Map<string, Waiting[]>();
  /** Those that wait and those that are being written. */
  #count = 0;
  #writing = 0;
  #scheduled = false;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  write(added: NewInteraction): Promise<boolean> {
    if (this.#count >= limits.interactionsWaitingMax) return Promise.reject(new RequestError('overloaded'));
    this.#count++;
    return new Promise<boolean>((resolve, reject) => {
      const others = this.#waiting.get(added.organisationId);
      if (others) others.push({ added, resolve, reject });
      else this.#waiting.set(added.organisationId, [{ added, resolve, reject }]);
      this.#schedule();
    }).finally(() => this.#count--);
  }

  /** After the requests that have arrived already have been read, and before any that has not. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#waiting.size > 0 && this.#writing < limits.interactionWritersMax) this.#writeNext();
    });
  }

  /** The organisation that has waited longest goes first. */
  #writeNext(): void {
    const [organisationId, all] = this.#waiting.entries().next().value as [string, Waiting[]];
    const batch = all.splice(0, limits.interactionsPerStatementMax);
    this.#waiting.delete(organisationId);
    if (all.length > 0) this.#waiting.set(organisationId, all);
    this.#writing++;
    void this.#writeBatch(organisationId, batch).finally(() => {
      this.#writing--;
      if (this.#waiting.size > 0) this.#schedule();
    });
  }

  async #writeBatch(organisationId: string, batch: readonly Waiting[]): Promise<void> {
    try {
      const written = await this.#insert(organisationId, batch);
      for (const { added, resolve } of batch) resolve(written.has(added.interactionId));
    } catch (error) {
      // A statement that PostgreSQL refused wrote nothing. One row may be to blame, and its neighbours are not: each is
      // tried by itself.
      if (batch.length > 1 && !(error instanceof RequestError) && !isUnavailable(error)) {
        for (const waiting of batch) await this.#writeBatch(organisationId, [waiting]);
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  }

  async #insert(organisationId: string, batch: readonly Waiting[]): Promise<Set<string>> {
    // Until a connection is had nothing can have been written; once the statement is on its way, only the answer tells.
    const client = await this.#pool.connect();
    try {
      const added = batch.map((waiting) => waiting.added);
      const written = await insertInteractions(client, organisationId, added);
      client.release();
      return written;
    } catch (error) {
      client.release(true);
      throw leavesOutcomeOpen(error) ? new RequestError('outcome_unknown', { cause: error }) : error;
    }
  }
}
