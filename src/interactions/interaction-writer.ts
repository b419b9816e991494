import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { NodePools } from '../postgres/cluster/node-pools.ts';
import { StallWatch } from '../postgres/health/server-state.ts';
import { isLockNotAcquired, isLockTimeout, isUnavailable } from '../postgres/pool.ts';
import { CommitUnconfirmed } from '../postgres/transactions.ts';
import type { Traces } from '../traces/traces.ts';
import { flushInteractions, isKeyed } from './interaction-inserts.ts';
import type { NewInteraction } from './interaction-rows.ts';
import type { KnownReferences } from './known-ids.ts';

interface Group {
  readonly organisationId: string;
  readonly waiting: readonly Waiting[];
}

interface Waiting {
  readonly added: NewInteraction;
  /** False if a reference is missing, the key was not free, or the person may have been erased. */
  readonly resolve: (written: boolean) => void;
  readonly reject: (error: unknown) => void;
  readonly caller: Traces['current'];
}

/**
 * Queued interactions share statements and a commit. There is no batching delay: if a connection is free, the queue is
 * flushed at the end of the event-loop turn, or earlier once enough interactions wait, so that PostgreSQL works while
 * other requests are read. The writer has its own connections, so uploads never delay it.
 */
export class InteractionWriter {
  readonly #pools: NodePools;
  readonly #waiting = new Map<string, Waiting[]>();
  #waitingCount = 0;
  /** Queued or being written. */
  #count = 0;
  /** Flushes in progress. The key is undefined for the coordinator or the only server. */
  readonly #writing = new Map<string | undefined, number>();
  #scheduled = false;

  readonly stallWatch = new StallWatch();
  readonly references: KnownReferences;
  readonly #onFlush: (rows: number) => void;
  readonly #traces: Traces | undefined;

  constructor(
    pools: NodePools,
    references: KnownReferences,
    onFlush: (rows: number) => void = () => {},
    traces?: Traces,
  ) {
    this.#pools = pools;
    this.references = references;
    this.#traces = traces;
    this.#onFlush = onFlush;
  }

  get waiting(): number {
    return this.#count;
  }

  write(added: NewInteraction): Promise<boolean> {
    const waiting = this.#waiting.get(added.organisationId)?.length ?? 0;
    const free = limits.interactionsWaitingMax - this.#count;
    // An organisation may not fill more of the queue than is still free, so there is always room for others.
    if (waiting >= free)
      return Promise.reject(new RequestError(waiting > 0 ? 'too_many_requests' : 'overloaded'));
    this.#count++;
    return new Promise<boolean>((resolve, reject) => {
      const one = { added, resolve, reject, caller: this.#traces?.current };
      const others = this.#waiting.get(added.organisationId);
      if (others) others.push(one);
      else this.#waiting.set(added.organisationId, [one]);
      this.#waitingCount++;
      const node = this.#pools.ownerOf(added.organisationId);
      if (this.#waitingCount >= limits.interactionsAtOnce && this.#isFree(node)) this.#writeNext(node);
      else this.#schedule();
    });
  }

  /** At the end of the event-loop turn, after the requests that have already arrived. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      for (const organisationId of this.#waiting.keys()) {
        const node = this.#pools.ownerOf(organisationId);
        while (this.#waiting.has(organisationId) && this.#isFree(node)) this.#writeNext(node);
      }
    });
  }

  #isFree(node: string | undefined): boolean {
    const max = node === undefined ? limits.interactionWritersMax : limits.interactionWritersPerNodeMax;
    return (this.#writing.get(node) ?? 0) < max;
  }

  /** Each commit goes to one node, so an unavailable node fails only its own, and no two-phase commit is needed. */
  #writeNext(node: string | undefined): void {
    const groups: Group[] = [];
    let room: number = limits.interactionsPerStatementMax;
    for (const [organisationId, all] of this.#waiting) {
      if (this.#pools.ownerOf(organisationId) !== node) continue;
      const waiting = all.splice(0, room);
      groups.push({ organisationId, waiting });
      this.#waiting.delete(organisationId);
      if (all.length > 0) this.#waiting.set(organisationId, all);
      room -= waiting.length;
      if (room === 0) break;
    }
    const taken = limits.interactionsPerStatementMax - room;
    this.#waitingCount -= taken;
    this.#onFlush(taken);
    this.#writing.set(node, (this.#writing.get(node) ?? 0) + 1);
    void this.#flush(node, groups).finally(() => {
      this.#writing.set(node, (this.#writing.get(node) ?? 0) - 1);
      this.#count -= taken;
      if (this.#waiting.size > 0) this.#schedule();
    });
  }

  /** The span is linked to all requests, because the current async context belongs only to the last one. */
  #flush(node: string | undefined, groups: readonly Group[]): Promise<void> {
    const write = () => this.#writeGroups(node, groups);
    if (!this.#traces) return write();
    const callers = groups.flatMap(({ waiting }) => waiting.map(({ caller }) => caller));
    return this.#traces.flush(callers, write);
  }

  async #writeGroups(node: string | undefined, groups: readonly Group[]): Promise<void> {
    try {
      const affected = node === undefined ? groups.map(({ organisationId }) => organisationId) : [];
      const written = await this.stallWatch.run(affected, () => this.#store(node, groups));
      for (const { waiting } of groups)
        for (const { added, resolve } of waiting) resolve(written.has(added.interactionId));
    } catch (error) {
      // Nothing was written. A single row may be the cause, so organisations and then rows are retried alone.
      const parts = isDatabaseFault(error) ? [] : partsOf(groups, error);
      if (parts.length > 0) for (const part of parts) await this.#writeGroups(node, [part]);
      else for (const { reject } of groups.flatMap(({ waiting }) => waiting)) reject(error);
    }
  }

  async #store(node: string | undefined, groups: readonly Group[]): Promise<ReadonlySet<string>> {
    try {
      const all = groups.map(({ organisationId, waiting }) => ({
        organisationId,
        interactions: waiting.map(({ added }) => added),
      }));
      return await flushInteractions(this.#pools, node, all, this.references);
    } catch (error) {
      if (isDatabaseFault(error)) this.references.forgetKnown();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#pools.close();
  }
}

/**
 * Returns whether the database may be gone, so that the known ids may be wrong. That another transaction is claiming a
 * key does not count.
 */
function isDatabaseFault(error: unknown): boolean {
  return error instanceof CommitUnconfirmed || (isUnavailable(error) && !isLockNotAcquired(error));
}

/** The groups to retry: each organisation, or each row if there is only one. Empty if there was only one row. */
function partsOf(groups: readonly Group[], error: unknown): Group[] {
  if (groups.length > 1) return [...groups];
  return groups.flatMap(({ organisationId, waiting }) => {
    const keyed = isLockTimeout(error) ? waiting.filter(({ added }) => isKeyed(added)) : [];
    // Another transaction holds a key. On the common pool, waiting for it does not delay other flushes.
    for (const { resolve } of keyed) resolve(false);
    if (keyed.length > 0) return { organisationId, waiting: waiting.filter((one) => !keyed.includes(one)) };
    return waiting.length > 1 ? waiting.map((one) => ({ organisationId, waiting: [one] })) : [];
  });
}
