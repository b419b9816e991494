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

  constructor(
    coordinator: OwnPool,
    owners?: OwningNodes,
    make: (node: string) => OwnPool = () => coordinator,
  ) {
    this.#coordinator = coordinator;
    this.#owners = owners;
    this.#make = make;
  }

  /** How many connections each server may be given. */
  get max(): number {
    return this.#coordinator.options.max;
  }

  /** The worker that has the organisation's rows; undefined where that is not known, as on one PostgreSQL. */
  ownerOf(organisationId: string): string | undefined {
    return this.#owners?.of(organisationId);
  }

  async connect(node: string | undefined): Promise<Client> {
    if (node === undefined || performance.now() < (this.#leftAloneUntilMs.get(node) ?? 0))
      return this.#coordinator.connect();
    try {
      return await this.#poolOf(node).connect();
    } catch {
      this.#leftAloneUntilMs.set(node, performance.now() + limits.nodeLeftAloneMs);
      return this.#coordinator.connect();
    }
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
