import { FairQueue } from '../admission/fair-queue.ts';
import { limits } from '../limits.ts';
import type { NodePools } from './cluster/node-pools.ts';
import { type Client, type Pool, withClient } from './pool.ts';

/**
 * Organisations take turns, and each may use only a share of the connections, so that others get a connection soon. A
 * request that waits too long fails with `overloaded`, which does not mean that the database is unavailable.
 */
export class SharedPool {
  readonly #pools: NodePools;
  readonly #turns: FairQueue;
  readonly #readersMax: number;
  #inUse = 0;
  #allInUseSinceMs = 0;

  constructor(pools: NodePools) {
    const atOnce = pools.max;
    this.#pools = pools;
    const share = (part: number) => Math.max(1, Math.floor(atOnce * part));
    this.#readersMax = share(limits.readersConnectionShareMax);
    this.#turns = new FairQueue({
      atOnce,
      perOrganisationMax: share(limits.connectionShareMax),
      waitingMax: limits.connectionsWaitingMax,
      waitMs: limits.connectionWaitMs,
    });
  }

  get waitingCount(): number {
    return this.#turns.waitingCount;
  }

  /** How long all connections have been in use without any of them being returned. */
  get stalledMs(): number {
    return this.#inUse < this.#pools.max ? 0 : performance.now() - this.#allInUseSinceMs;
  }

  for(organisationId: string): Pool {
    return this.#poolOf(() => this.#connect(organisationId, undefined));
  }

  /** Behind the organisation's uploads, change readers would wait for a whole batch with every page and fall behind. */
  forReaders(organisationId: string): Pool {
    return this.#poolOf(() => this.#connect(`readers of ${organisationId}`, undefined, this.#readersMax));
  }

  /** For statements on the organisation's own rows. In a cluster, connects directly to the node that stores them. */
  atOwner(organisationId: string): Pool {
    return this.#poolOf(() => this.#connect(organisationId, this.#pools.ownerOf(organisationId)));
  }

  ownerOf(organisationId: string): string | undefined {
    return this.#pools.ownerOf(organisationId);
  }

  /** For a query about several organisations on one node. */
  at(node: string | undefined): Pool {
    return this.#poolOf(() => this.#connect(`all of ${node ?? 'the coordinator'}`, node));
  }

  #poolOf(connect: () => Promise<Client>): Pool {
    const query = (...statement: Parameters<Client['query']>) =>
      withClient({ connect }, async (client) => client.query(...statement));
    return { connect, query } as unknown as Pool;
  }

  async #connect(who: string, node: string | undefined, max?: number): Promise<Client> {
    const beganMs = performance.now();
    const endTurn = await this.#beginTurn(who, max);
    try {
      const client = await this.#pools.connect(node);
      const leftMs = limits.lockWaitMs - (performance.now() - beganMs);
      // The time is rounded down to a multiple of the minimum, so that there are few distinct statements.
      const steps = Math.floor(leftMs / limits.lockWaitMsMin);
      client.lockWaitMs = Math.max(1, steps) * limits.lockWaitMsMin;
      const release = client.release.bind(client);
      client.release = (destroy) => {
        release(destroy);
        endTurn();
      };
      return client;
    } catch (error) {
      endTurn();
      throw error;
    }
  }

  async #beginTurn(who: string, max: number | undefined): Promise<() => void> {
    const endTurn = await this.#turns.begin(who, max);
    this.#inUse++;
    this.#allInUseSinceMs = performance.now();
    return () => {
      this.#inUse--;
      endTurn();
    };
  }
}
