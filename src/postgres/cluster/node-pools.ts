import { limits } from '../../limits.ts';
import type { Client, OwnPool } from '../pool.ts';
import { selectCluster } from './extension.ts';
import { Detours } from './node-detours.ts';
import type { OwningNodes } from './owning-nodes.ts';

/**
 * After a worker has refused a connection, its requests go to the coordinator for a short time, because the coordinator
 * knows whether the worker is down. Without Citus, the coordinator is the only server.
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
  /** The number of connections that are about to be opened in place of one that is being closed. */
  #replaced = 0;

  /** `openMax` limits the open connections to all servers together. The caller never uses more at the same time. */
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

  /** The maximum number of connections to one server. */
  get max(): number {
    return this.#coordinator.options.max;
  }

  get #pools(): OwnPool[] {
    return [this.#coordinator, ...this.#workers.values()];
  }

  /** Pool sizes for the metrics, summed over all servers. */
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

  /** Also works behind a pooler. Can be cached, because `distribute` runs only while all processes are stopped. */
  async isCluster(): Promise<boolean> {
    this.#isCluster ??= (await this.#coordinator.query(selectCluster)).rowCount === 1;
    return this.#isCluster;
  }

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
    return this.#connectTo(this.#coordinator);
  }

  /** At the limit, closes an idle connection and opens the new one before another request can take its slot. */
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

  /** Closes the pools of workers that were removed or have a new address. */
  #endGone(): void {
    for (const [node, pool] of this.#workers) {
      if (this.#owners?.nodes.has(node)) continue;
      this.#workers.delete(node);
      this.#leftAloneUntilMs.delete(node);
      this.#detours.forget(node);
      void pool.end();
    }
  }

  /** The coordinator's pool is closed by its creator. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((pool) => pool.end()));
  }
}

/** Idle connections that are not about to be given to a waiting request. */
function spareOf({ idleCount, waitingCount }: OwnPool): number {
  return Math.max(0, idleCount - waitingCount);
}

async function closeIdle(pools: readonly OwnPool[]): Promise<void> {
  const [fullest] = pools.toSorted((a, b) => spareOf(b) - spareOf(a));
  if (!fullest || spareOf(fullest) === 0) return;
  const idle = await fullest.connect();
  idle.release(true);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0);
}
