import { setTimeout as sleep } from 'node:timers/promises';
import { FairQueue } from '../admission/fair-queue.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { SharedPool } from '../postgres/cluster/node-pools.ts';
import { statesOf } from './change-log.ts';
import { ReaderGroups } from './reader-group.ts';

interface Waiting {
  readonly organisationId: string;
  readonly number: number;
  readonly wake: () => void;
}

/**
 * Each process polls on behalf of all its readers, with one query per node that stores their rows, so an unavailable
 * node delays only the readers whose rows it stores. LISTEN and NOTIFY would not work, because a notifying transaction
 * holds a database-wide lock while it commits.
 */
export class ChangeWatch {
  readonly groups = new ReaderGroups();
  readonly #turns = new FairQueue({ atOnce: 1, waitingMax: Number.POSITIVE_INFINITY });
  readonly #pool: Pick<SharedPool, 'ownerOf' | 'at'>;
  readonly #waiting = new Set<Waiting>();
  readonly #streams = new Map<string, number>();
  readonly #nodesAsked = new Set<string | undefined>();
  #isAsking = false;
  #isStopping = false;

  constructor(pool: Pick<SharedPool, 'ownerOf' | 'at'>) {
    this.#pool = pool;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  open(organisationId: string): () => void {
    const before = this.#streams.get(organisationId) ?? 0;
    if (before >= limits.changeStreamsPerOrganisationMax)
      throw new RequestError('too_many_requests', {
        message:
          `This organisation already has ${before} open streams of changes in this process, which is the maximum. ` +
          'Close one of them, or read pages instead.',
      });
    this.#streams.set(organisationId, before + 1);
    return () => {
      const left = (this.#streams.get(organisationId) ?? 1) - 1;
      if (left > 0) this.#streams.set(organisationId, left);
      else this.#streams.delete(organisationId);
    };
  }

  /**
   * Waits until a stream may send a page, one in each turn of the event loop. Streams that share a page would otherwise
   * all copy it to their sockets at once, and every other request would wait for them.
   */
  async turn(organisationId: string): Promise<void> {
    setImmediate(await this.#turns.begin(organisationId));
  }

  /** Waits until the change with this number exists, the timeout expires, or the reader has disconnected. */
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

  /** Makes these organisations' readers check immediately whether they are still allowed to read. */
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
        if (!this.#nodesAsked.has(node)) void this.#ask(node, organisationIds);
      await sleep(limits.changesPollMs, undefined, { ref: false });
    }
    this.#isAsking = false;
  }

  #waitingByNode(): Map<string | undefined, string[]> {
    const organisationIds = new Set([...this.#waiting].map(({ organisationId }) => organisationId));
    return Map.groupBy(organisationIds, (organisationId) => this.#pool.ownerOf(organisationId));
  }

  async #ask(node: string | undefined, organisationIds: readonly string[]): Promise<void> {
    this.#nodesAsked.add(node);
    try {
      const states = await statesOf(this.#pool.at(node), organisationIds, node !== undefined);
      for (const { organisationId, number, wake } of this.#waiting) {
        const state = states.get(organisationId);
        if (state && (state.hasUnnumbered || number <= state.last)) wake();
      }
    } catch {
      // Ignore the error: readers keep waiting, and get database errors when they read.
    } finally {
      this.#nodesAsked.delete(node);
    }
  }
}
