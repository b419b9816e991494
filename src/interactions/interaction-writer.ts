import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { insertInteractions, type NewInteraction } from '../store/interactions.ts';
import { type Client, inOneTransaction, isUnavailable, leavesOutcomeOpen, type Pool } from '../store/pool.ts';

/** Those of one organisation, which share a statement. */
interface Group {
  readonly organisationId: string;
  readonly waiting: readonly Waiting[];
}

interface Waiting {
  readonly added: NewInteraction;
  /** True once it is committed, false where its item or its student does not exist. */
  readonly resolve: (written: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Interactions that wait at the same time share a statement and its commit; each is answered only after it. A statement
 * holds one organisation, for on Citus the rows of several would be spread over every shard; statements of several
 * organisations share a commit. Nobody waits for company: with a connection free, an interaction is on its way when the
 * requests that have arrived with it are read, or enough of them, so that PostgreSQL works while the others are. The
 * connections are the writer's own, so that no upload can be in front of it.
 */
export class InteractionWriter {
  readonly #pool: Pool;
  readonly #waiting = new Map<string, Waiting[]>();
  #waitingCount = 0;
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
      this.#waitingCount++;
      if (this.#waitingCount >= limits.interactionsAtOnce && this.#isFree()) this.#writeNext();
      else this.#schedule();
    });
  }

  /** After the requests that have arrived already have been read, and before any that has not. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#waiting.size > 0 && this.#isFree()) this.#writeNext();
    });
  }

  #isFree(): boolean {
    return this.#writing < limits.interactionWritersMax;
  }

  /** Takes the organisations that have waited longest, as many as a transaction may hold rows. */
  #writeNext(): void {
    const groups: Group[] = [];
    let room: number = limits.interactionsPerStatementMax;
    for (const [organisationId, all] of this.#waiting) {
      const waiting = all.splice(0, room);
      groups.push({ organisationId, waiting });
      this.#waiting.delete(organisationId);
      if (all.length > 0) this.#waiting.set(organisationId, all);
      room -= waiting.length;
      if (room === 0) break;
    }
    const taken = limits.interactionsPerStatementMax - room;
    this.#waitingCount -= taken;
    this.#writing++;
    void this.#writeGroups(groups).finally(() => {
      this.#writing--;
      this.#count -= taken;
      if (this.#waiting.size > 0) this.#schedule();
    });
  }

  async #writeGroups(groups: readonly Group[]): Promise<void> {
    try {
      const written = await this.#insert(groups);
      for (const [at, { waiting }] of groups.entries())
        for (const { added, resolve } of waiting) resolve(written[at]?.has(added.interactionId) ?? false);
    } catch (error) {
      // What PostgreSQL refused wrote nothing. One row may be to blame, and its neighbours are not: each organisation is
      // tried by itself, and then each row.
      const parts = isUnavailable(error) || error instanceof RequestError ? [] : partsOf(groups);
      if (parts.length > 1) for (const part of parts) await this.#writeGroups([part]);
      else for (const { reject } of groups.flatMap(({ waiting }) => waiting)) reject(error);
    }
  }

  /** The ids of those that were written, for each group. */
  async #insert(groups: readonly Group[]): Promise<Set<string>[]> {
    // Until a connection is had nothing can have been written; once the statement is on its way, only the answer tells.
    const client = await this.#pool.connect();
    try {
      const statements = groups.map(({ organisationId, waiting }) => {
        const added = waiting.map((one) => one.added);
        return (on: Client) => insertInteractions(on, organisationId, added);
      });
      const [first] = statements;
      const written =
        first && statements.length === 1 ? [await first(client)] : await inOneTransaction(client, statements);
      client.release();
      return written;
    } catch (error) {
      client.release(true);
      throw leavesOutcomeOpen(error) ? new RequestError('outcome_unknown', { cause: error }) : error;
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

function partsOf(groups: readonly Group[]): Group[] {
  if (groups.length > 1) return [...groups];
  return groups.flatMap(({ organisationId, waiting }) =>
    waiting.map((one) => ({ organisationId, waiting: [one] })),
  );
}
