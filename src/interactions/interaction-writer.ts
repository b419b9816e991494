import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { NodePools } from '../postgres/node-pools.ts';
import { inOneExchange } from '../postgres/one-exchange.ts';
import { type Client, isUnavailable, leavesOutcomeOpen } from '../postgres/pool.ts';
import { StallWatch } from '../postgres/stall-watch.ts';
import {
  CommitUnconfirmed,
  expectRows,
  inTransaction,
  retryConflicts,
  type SendLast,
} from '../postgres/transactions.ts';
import { itemTypes } from '../registry/interaction.ts';
import type { Traces } from '../traces/traces.ts';
import { type Added, type Insert, insertsAtWorker, insertsOf } from './interaction-inserts.ts';
import type { NewInteraction } from './interaction-rows.ts';
import { KnownIds } from './known-ids.ts';
import { isMissing, missingAmong, referencedBy } from './look-up-references.ts';

/** Interactions of one organisation. */
interface Group {
  readonly organisationId: string;
  readonly waiting: readonly Waiting[];
}

interface Waiting {
  readonly added: NewInteraction;
  /** True once it is committed, false if its item or student does not exist. */
  readonly resolve: (written: boolean) => void;
  readonly reject: (error: unknown) => void;
  /** The trace context of its request. */
  readonly caller: Traces['current'];
}

/**
 * Queued interactions share statements and a commit; each is answered after the commit. On Citus, those of a commit belong
 * to one worker. There is no batching delay: with a connection free, the queue is flushed at the end of the event-loop
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
  readonly #onFlush: (rows: number) => void;
  readonly #traces: Traces | undefined;

  constructor(pools: NodePools, onFlush: (rows: number) => void = () => {}, traces?: Traces) {
    this.#pools = pools;
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
    const max = node === undefined ? limits.interactionWritersMax : limits.interactionWritersPerWorkerMax;
    return (this.#writing.get(node) ?? 0) < max;
  }

  /**
   * Takes the organisations of a node that have waited longest, up to the maximum of rows in a transaction. Each commit
   * goes to one node, so a worker that is away fails only its own, and there is no two-phase commit.
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
      const notWritten = await this.stallWatch.run(() => this.#insert(node, groups));
      for (const { waiting } of groups)
        for (const { added, resolve } of waiting) resolve(!notWritten.has(added));
    } catch (error) {
      // A failed statement wrote nothing. One row may be the cause: each organisation is retried by itself, then each row.
      const parts = isUnavailable(error) || error instanceof RequestError ? [] : partsOf(groups);
      if (parts.length > 1) for (const part of parts) await this.#writeGroups(node, [part]);
      else for (const { reject } of groups.flatMap(({ waiting }) => waiting)) reject(error);
    }
  }

  /** Returns those that were not written because their item or student does not exist. */
  #insert(node: string | undefined, groups: readonly Group[]): Promise<ReadonlySet<NewInteraction>> {
    const inserting =
      node === undefined ? this.#insertInOneExchange(groups) : this.#insertOnCluster(node, groups);
    return inserting.catch((error: unknown) => {
      if (error instanceof RequestError || isUnavailable(error)) this.forgetKnown();
      throw error;
    });
  }

  async #insertInOneExchange(groups: readonly Group[]): Promise<ReadonlySet<NewInteraction>> {
    // Without a connection nothing can have been written; once the insert is sent, only its answer tells.
    const client = await this.#pools.connect(undefined);
    let isOnItsWay = false;
    let missing: ReadonlySet<NewInteraction>;
    let lost: Insert[];
    try {
      missing = await missingOf(client, groups, this.#known);
      const inserts = addedOf(groups, missing).flatMap(insertsOf);
      isOnItsWay = inserts.length > 0;
      const written = await inOneExchange(
        client,
        inserts.map(({ statement }) => statement),
      );
      lost = inserts
        .filter(({ rows }, at) => written[at] !== rows)
        .flatMap((one) => (one.retold ? [one, one.retold()] : one));
      client.release();
    } catch (error) {
      client.release(true);
      const isOpen = isOnItsWay && leavesOutcomeOpen(error);
      throw isOpen ? new RequestError('outcome_unknown', { cause: error }) : error;
    }
    // The others are committed.
    if (lost.length > 0) await this.#inTransaction(undefined, async (_client, send) => lost.forEach(send));
    return missing;
  }

  /** On Citus nothing is committed until all rows were seen to be written. */
  #insertOnCluster(node: string, groups: readonly Group[]): Promise<ReadonlySet<NewInteraction>> {
    return this.#inTransaction(node, async (client, send) => {
      const missing = await missingOf(client, groups, this.#known);
      insertsAtWorker(addedOf(groups, missing)).forEach(send);
      return missing;
    });
  }

  /** If a statement writes fewer rows than it should, the whole transaction is retried; see `expectRows`. */
  async #inTransaction<T>(
    node: string | undefined,
    work: (client: Client, send: (insert: Insert) => void) => Promise<T>,
  ): Promise<T> {
    const pool = { connect: () => this.#pools.connect(node) };
    const sendTo =
      (sendLast: SendLast) =>
      ({ statement, rows }: Insert) =>
        sendLast(async (last) => expectRows(await last.query({ ...statement }), rows, 'interactions'));
    try {
      return await retryConflicts(() =>
        inTransaction(pool, (client, sendLast) => work(client, sendTo(sendLast))),
      );
    } catch (error) {
      throw error instanceof CommitUnconfirmed
        ? new RequestError('outcome_unknown', { cause: error })
        : error;
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

function partsOf(groups: readonly Group[]): Group[] {
  if (groups.length > 1) return [...groups];
  return groups.flatMap(({ organisationId, waiting }) =>
    waiting.map((one) => ({ organisationId, waiting: [one] })),
  );
}

/** The interactions with a missing reference. PostgreSQL is asked only about references that are not known to exist. */
async function missingOf(
  client: Client,
  groups: readonly Group[],
  known: KnownIds,
): Promise<ReadonlySet<NewInteraction>> {
  const found = await Promise.all(
    groups.map(async ({ organisationId, waiting }) => {
      const asked = waiting.map(({ added }) => added).filter((added) => !isKnown(known, added));
      if (asked.length === 0) return [];
      const missing = await missingAmong(client, organisationId, referencedBy(asked), known);
      return asked.filter((added) => isMissing(added, missing));
    }),
  );
  return new Set(found.flat());
}

/** The groups without what is missing, and without those that are then empty. */
function addedOf(groups: readonly Group[], missing: ReadonlySet<NewInteraction>): Added[] {
  return groups
    .map(({ organisationId, waiting }) => ({
      organisationId,
      interactions: waiting.map(({ added }) => added).filter((one) => !missing.has(one)),
    }))
    .filter(({ interactions }) => interactions.length > 0);
}

function isKnown(
  knownIds: KnownIds,
  { organisationId, itemType, itemId, studentId }: NewInteraction,
): boolean {
  return (
    knownIds.has(organisationId, itemTypes[itemType], itemId) &&
    (studentId === null || knownIds.has(organisationId, 'customers', studentId))
  );
}
