import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { NodePools } from '../postgres/cluster/node-pools.ts';
import { StallWatch } from '../postgres/health/stall-watch.ts';
import { isLockNotAcquired, isLockTimeout, isUnavailable } from '../postgres/pool.ts';
import { CommitUnconfirmed } from '../postgres/transactions.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import type { Traces } from '../traces/traces.ts';
import { flushInteractions, isKeyed } from './interaction-inserts.ts';
import type { NewInteraction } from './interaction-rows.ts';
import { KnownIds } from './known-ids.ts';

/** Interactions of one organisation. */
interface Group {
  readonly organisationId: string;
  readonly waiting: readonly Waiting[];
}

interface Waiting {
  readonly added: NewInteraction;
  /** True once it is committed; false if a reference is missing, its key was not free, or its person may be erased. */
  readonly resolve: (written: boolean) => void;
  readonly reject: (error: unknown) => void;
  /** The trace context of its request. */
  readonly caller: Traces['current'];
}

/**
 * Queued interactions share statements and a commit; each is answered after the commit. In a cluster, those of a commit
 * belong to one node. There is no batching delay: with a connection free, the queue is flushed at the end of the event-loop
 * turn, or as soon as enough are waiting, so that PostgreSQL works while the rest is read. The writer has its own
 * connections, so that no upload is ahead of it.
 */
export class InteractionWriter {
  readonly #pools: NodePools;
  #known = new KnownIds();
  readonly #waiting = new Map<string, Waiting[]>();
  #waitingCount = 0;
  /** How many are in the queue or being written. */
  #count = 0;
  /** How many flushes are under way to each node; undefined is the coordinator or the only server. */
  readonly #writing = new Map<string | undefined, number>();
  #scheduled = false;

  /** Notices when flushes stop finishing. */
  readonly stallWatch = new StallWatch();
  readonly suppressions: Suppressions;
  readonly #onFlush: (rows: number) => void;
  readonly #traces: Traces | undefined;

  constructor(
    pools: NodePools,
    suppressions: Suppressions,
    onFlush: (rows: number) => void = () => {},
    traces?: Traces,
  ) {
    this.#pools = pools;
    this.suppressions = suppressions;
    suppressions.onNewVersion = () => this.forgetKnown();
    this.#traces = traces;
    this.#onFlush = onFlush;
  }

  get waiting(): number {
    return this.#count;
  }

  write(added: NewInteraction): Promise<boolean> {
    const waiting = this.#waiting.get(added.organisationId)?.length ?? 0;
    const free = limits.interactionsWaitingMax - this.#count;
    // An organisation may queue as much as is still free, so that there is always room for the others.
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

  /** Runs at the end of the event-loop turn, after the requests that have already arrived. */
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

  /**
   * Takes the organisations of a node that have waited longest, up to the maximum of rows in a transaction. Each commit
   * goes to one node, so a node that is away fails only its own, and there is no two-phase commit.
   */
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

  /** Runs in the async context of whichever request came last, but belongs to all of them. */
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
      // A failed flush wrote nothing. One row may be the cause: each organisation is retried alone, then each row.
      const parts = isDatabaseFault(error) ? [] : partsOf(groups, error);
      if (parts.length > 0) for (const part of parts) await this.#writeGroups(node, [part]);
      else for (const { reject } of groups.flatMap(({ waiting }) => waiting)) reject(error);
    }
  }

  /** Returns the ids that were written. */
  async #store(node: string | undefined, groups: readonly Group[]): Promise<ReadonlySet<string>> {
    try {
      const all = groups.map(({ organisationId, waiting }) => ({
        organisationId,
        interactions: waiting.map(({ added }) => added),
      }));
      return await flushInteractions(this.#pools, node, all, () => this.#known, this.suppressions);
    } catch (error) {
      if (isDatabaseFault(error)) this.forgetKnown();
      throw error;
    }
  }

  /** The ids known to exist. `forgetKnown` replaces the set, so what is learnt for the old one is lost. */
  get known(): KnownIds {
    return this.#known;
  }

  /** Called when a connection was lost or another server answers: the known ids came from a server that may be gone. */
  forgetKnown(): void {
    this.#known = new KnownIds();
  }

  async close(): Promise<void> {
    await this.#pools.close();
  }
}

/** The database may be gone, and with it what was known of it. Not so if somebody else is claiming a key. */
function isDatabaseFault(error: unknown): boolean {
  return error instanceof CommitUnconfirmed || (isUnavailable(error) && !isLockNotAcquired(error));
}

/** What to retry alone: each organisation, then each row. Empty if there was one row only. */
function partsOf(groups: readonly Group[], error: unknown): Group[] {
  if (groups.length > 1) return [...groups];
  return groups.flatMap(({ organisationId, waiting }) => {
    const keyed = isLockTimeout(error) ? waiting.filter(({ added }) => isKeyed(added)) : [];
    // Another transaction holds one of the keys. The request that waits for it does so on the common pool and delays nobody here.
    for (const { resolve } of keyed) resolve(false);
    if (keyed.length > 0) return { organisationId, waiting: waiting.filter((one) => !keyed.includes(one)) };
    return waiting.length > 1 ? waiting.map((one) => ({ organisationId, waiting: [one] })) : [];
  });
}
