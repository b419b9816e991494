import { limits } from '../limits.ts';
import type { OwningNodes } from './owning-nodes.ts';
import type { Client, OwnPool } from './pool.ts';

/**
 * The connections of one kind of work: to the coordinator, which is the only server there is where the database is no
 * Citus cluster, and to each worker. A worker that refuses is left alone for a while, and the coordinator is asked in its
 * place: it knows whether the worker is away.
 */
export class NodePools {
  readonly #coordinator: OwnPool;
  readonly #owners: OwningNodes | undefined;
  readonly #make: (node: string) => OwnPool;
  readonly #workers = new Map<string, OwnPool>();
  readonly #leftAloneUntilMs = new Map<string, number>();
  readonly #openMax: number;
  /** How many are about to be opened in the place of one that is being closed. */
  #replaced = 0;

  /** `openMax` is for those who never use more than that at once: so many are open over all servers, idle ones included. */
  constructor(
    coordinator: OwnPool,
    owners?: OwningNodes,
    make: (node: string) => OwnPool = () => coordinator,
    openMax = Number.POSITIVE_INFINITY,
  ) {
    this.#coordinator = coordinator;
    this.#owners = owners;
    this.#make = make;
    this.#openMax = openMax;
  }

  /** How many connections each server may be given. */
  get max(): number {
    return this.#coordinator.options.max;
  }

  get #pools(): OwnPool[] {
    return [this.#coordinator, ...this.#workers.values()];
  }

  /** What the metrics ask of a pool: of all servers together. */
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

  /** The worker that has the organisation's rows; undefined where that is not known, as on one PostgreSQL. */
  ownerOf(organisationId: string): string | undefined {
    return this.#owners?.of(organisationId);
  }

  async connect(node: string | undefined): Promise<Client> {
    if (node === undefined || performance.now() < (this.#leftAloneUntilMs.get(node) ?? 0))
      return this.#connectTo(this.#coordinator);
    try {
      return await this.#connectTo(this.#poolOf(node));
    } catch {
      this.#leftAloneUntilMs.set(node, performance.now() + limits.nodeLeftAloneMs);
      return this.#connectTo(this.#coordinator);
    }
  }

  /** Where as many are open as may be, one that is idle is closed first. Nothing may come between that and the new one. */
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

  /** Of workers that have another address now, or were removed. */
  #endGone(): void {
    for (const [node, pool] of this.#workers) {
      if (this.#owners?.nodes.has(node)) continue;
      this.#workers.delete(node);
      this.#leftAloneUntilMs.delete(node);
      void pool.end();
    }
  }

  /** Those to the workers; that to the coordinator ends whoever has made it. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((pool) => pool.end()));
  }
}

/** How many are idle and not promised to somebody who is about to be given one. */
function spareOf({ idleCount, waitingCount }: OwnPool): number {
  return Math.max(0, idleCount - waitingCount);
}

/** One of the server that has most of them. */
async function closeIdle(pools: readonly OwnPool[]): Promise<void> {
  const [fullest] = pools.toSorted((a, b) => spareOf(b) - spareOf(a));
  if (!fullest || spareOf(fullest) === 0) return;
  const idle = await fullest.connect();
  idle.release(true);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0);
}
