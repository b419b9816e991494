import { limits } from '../../limits.ts';
import type { Client, OwnPool } from '../pool.ts';
import { selectCluster } from './extension.ts';
import { Detours } from './node-detours.ts';
import type { OwningNodes } from './owning-nodes.ts';

/**
 * A pool for the coordinator and one for each Citus worker; without Citus, the coordinator is the only server. After a worker
 * refuses a connection, its requests go to the coordinator for a while, which knows whether the worker is down.
 */
export class NodePools {
  readonly #coordinator: OwnPool;
  readonly #owners: OwningNodes | undefined;
  readonly #make: (node: string) => OwnPool;
  readonly #workers = new Map<string, OwnPool>();
  readonly #leftAloneUntilMs = new Map<string, number>();
  readonly #openMax: number;
  readonly #detours: Detours;
  #isCluster: boolean | undefined;
  /** Connections about to be opened to replace one that is being closed. */
  #replaced = 0;

  /** `openMax` bounds the open connections over all servers, idle ones included. The caller never uses more at once. */
  constructor(
    coordinator: OwnPool,
    owners?: OwningNodes,
    make: (node: string) => OwnPool = () => coordinator,
    {
      openMax = Number.POSITIVE_INFINITY,
      detours = new Detours(),
    }: { readonly openMax?: number; readonly detours?: Detours } = {},
  ) {
    this.#coordinator = coordinator;
    this.#owners = owners;
    this.#make = make;
    this.#openMax = openMax;
    this.#detours = detours;
  }

  /** The most connections to one server. */
  get max(): number {
    return this.#coordinator.options.max;
  }

  get #pools(): OwnPool[] {
    return [this.#coordinator, ...this.#workers.values()];
  }

  /** Pool sizes for the metrics, over all servers. */
  get totalCount(): number {
    return sum(this.#pools.map(({ totalCount }) => totalCount));
  }

  get idleCount(): number {
    return sum(this.#pools.map(({ idleCount }) => idleCount));
  }

  get waitingCount(): number {
    return sum(this.#pools.map(({ waitingCount }) => waitingCount));
  }

  get options(): { readonly max: number } {
    return { max: Math.min(this.#openMax, this.max * this.#pools.length) };
  }

  /** Also if the owners are unknown, as behind a pooler. `distribute` runs while all processes are stopped. */
  async isCluster(): Promise<boolean> {
    if (this.#isCluster === undefined) {
      const { rowCount } = await this.#coordinator.query(selectCluster);
      this.#isCluster = rowCount === 1;
    }
    return this.#isCluster;
  }

  /** The worker that owns the organisation's rows; undefined if unknown, as without Citus. */
  ownerOf(organisationId: string): string | undefined {
    return this.#owners?.of(organisationId);
  }

  async connect(node: string | undefined): Promise<Client> {
    if (node === undefined) return this.#connectTo(this.#coordinator);
    if (performance.now() >= (this.#leftAloneUntilMs.get(node) ?? 0)) {
      try {
        const client = await this.#connectTo(this.#poolOf(node));
        this.#detours.connected(node);
        return client;
      } catch (error) {
        this.#leftAloneUntilMs.set(node, performance.now() + limits.nodeLeftAloneMs);
        this.#detours.refused(node, error);
      }
    }
    this.#detours.taken(node);
    return this.#connectTo(this.#coordinator);
  }

  /** At the bound it closes an idle connection first, and opens the new one before another request can take its place. */
  async #connectTo(pool: OwnPool): Promise<Client> {
    if (spareOf(pool) === 0 && this.totalCount + this.#replaced >= this.#openMax) {
      this.#replaced++;
      try {
        await closeIdle(this.#pools);
      } finally {
        this.#replaced--;
      }
    }
    return pool.connect();
  }

  #poolOf(node: string): OwnPool {
    const found = this.#workers.get(node);
    if (found) return found;
    this.#endGone();
    const made = this.#make(node);
    this.#workers.set(node, made);
    return made;
  }

  /** Closes the pools of workers that were removed or have another address now. */
  #endGone(): void {
    for (const [node, pool] of this.#workers) {
      if (this.#owners?.nodes.has(node)) continue;
      this.#workers.delete(node);
      this.#leftAloneUntilMs.delete(node);
      this.#detours.forget(node);
      void pool.end();
    }
  }

  /** Closes the pools of the workers. The coordinator's pool is closed by its creator. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((pool) => pool.end()));
  }
}

/** Idle connections that no waiting request is about to get. */
function spareOf({ idleCount, waitingCount }: OwnPool): number {
  return Math.max(0, idleCount - waitingCount);
}

/** Closes an idle connection of the pool that has the most. */
async function closeIdle(pools: readonly OwnPool[]): Promise<void> {
  const [fullest] = pools.toSorted((a, b) => spareOf(b) - spareOf(a));
  if (!fullest || spareOf(fullest) === 0) return;
  const idle = await fullest.connect();
  idle.release(true);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0);
}
