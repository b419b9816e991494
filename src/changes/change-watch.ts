import { setTimeout as sleep } from 'node:timers/promises';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { SharedPool } from '../postgres/shared-pool.ts';
import { statesOf } from './change-log.ts';
import { ReaderGroups } from './reader-group.ts';

/** A reader that waits for the change with a number. */
interface Waiting {
  readonly organisationId: string;
  readonly number: number;
  readonly wake: () => void;
}

/**
 * Wakes waiting readers when there are new changes. A process polls for all of them, with one query to each node that has
 * their rows, so that a node that is away delays only its own readers. LISTEN and NOTIFY would not do: a transaction that
 * notifies holds a database-wide lock while it commits.
 */
export class ChangeWatch {
  readonly groups = new ReaderGroups();
  readonly #pool: Pick<SharedPool, 'ownerOf' | 'at'>;
  readonly #waiting = new Set<Waiting>();
  readonly #streams = new Map<string, number>();
  /** Nodes that have not answered yet. */
  readonly #asked = new Set<string | undefined>();
  #isAsking = false;
  #isStopping = false;

  constructor(pool: Pick<SharedPool, 'ownerOf' | 'at'>) {
    this.#pool = pool;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** The number of open streams. */
  get streams(): number {
    return [...this.#streams.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Counts a stream of an organisation; the returned function ends it. */
  open(organisationId: string): () => void {
    const before = this.#streams.get(organisationId) ?? 0;
    if (before >= limits.changeStreamsPerOrganisationMax)
      throw new RequestError('too_many_requests', {
        message:
          `This organisation reads ${before} streams of changes from this process, and may not read more. ` +
          'End one of them, or read pages.',
      });
    this.#streams.set(organisationId, before + 1);
    return () => {
      const left = (this.#streams.get(organisationId) ?? 1) - 1;
      if (left > 0) this.#streams.set(organisationId, left);
      else this.#streams.delete(organisationId);
    };
  }

  /** Waits until the change with this number exists, the time is up, or the reader has disconnected. */
  async wait(organisationId: string, number: number, ms: number, gone: AbortSignal): Promise<void> {
    if (this.#isStopping || gone.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = { organisationId, number, wake: resolve };
    const timer = setTimeout(resolve, ms);
    gone.addEventListener('abort', resolve as () => void, { once: true });
    this.#waiting.add(waiting);
    if (!this.#isAsking) void this.#keepAsking();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      gone.removeEventListener('abort', resolve as () => void);
      this.#waiting.delete(waiting);
    }
  }

  /** Makes readers of these organisations check at once whether they may still read. */
  wake(organisationIds: ReadonlySet<string>): void {
    for (const { organisationId, wake } of this.#waiting) if (organisationIds.has(organisationId)) wake();
  }

  stop(): void {
    this.#isStopping = true;
    for (const { wake } of this.#waiting) wake();
  }

  async #keepAsking(): Promise<void> {
    this.#isAsking = true;
    while (this.#waiting.size > 0 && !this.#isStopping) {
      for (const [node, organisationIds] of this.#waitingByNode())
        if (!this.#asked.has(node)) void this.#ask(node, organisationIds);
      await sleep(limits.changesPollMs, undefined, { ref: false });
    }
    this.#isAsking = false;
  }

  #waitingByNode(): Map<string | undefined, string[]> {
    const organisationIds = new Set([...this.#waiting].map(({ organisationId }) => organisationId));
    return Map.groupBy(organisationIds, (organisationId) => this.#pool.ownerOf(organisationId));
  }

  async #ask(node: string | undefined, organisationIds: readonly string[]): Promise<void> {
    this.#asked.add(node);
    try {
      const states = await statesOf(this.#pool.at(node), organisationIds, node !== undefined);
      for (const { organisationId, number, wake } of this.#waiting) {
        const state = states.get(organisationId);
        if (state && (state.hasUnnumbered || number <= state.last)) wake();
      }
    } catch {
      // Readers report database errors when they read; until then they wait.
    } finally {
      this.#asked.delete(node);
    }
  }
}
