import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import type { Pool } from '../pool.ts';
import { selectCluster } from './extension.ts';
import { uuidHash } from './uuid-hash.ts';

/** A range of hashes, and the worker that stores the organisations with these hashes. */
interface Shard {
  readonly min: number;
  readonly max: number;
  /** The worker as `host:port`. */
  readonly node: string;
}

/**
 * Tracks which worker of a Citus cluster stores an organisation's rows, by polling the coordinator. The result is only a
 * hint. Every worker listed here has the metadata and forwards statements to other nodes, so after a shard has moved,
 * statements take a detour but do not fail. The list is empty on plain PostgreSQL.
 */
export class OwningNodes {
  readonly #pool: Pool;
  readonly #table: string;
  #shards: readonly Shard[] = [];

  /** `table` is the table with which all distributed tables are colocated. */
  constructor(pool: Pool, table: string) {
    this.#pool = pool;
    this.#table = table;
  }

  /** Returns the worker that stores the organisation's rows, or undefined if it is unknown. */
  of(organisationId: string): string | undefined {
    if (this.#shards.length === 0) return undefined;
    const hash = uuidHash(organisationId);
    return this.#shards.find(({ min, max }) => min <= hash && hash <= max)?.node;
  }

  /** The workers that have at least one shard. */
  get nodes(): ReadonlySet<string> {
    return new Set(this.#shards.map(({ node }) => node));
  }

  /** Starts polling if the database uses Citus. Returns a function that stops polling. */
  watch(): () => Promise<void> {
    const stopping = new AbortController();
    const running = this.#keepAsking(stopping.signal);
    return async () => {
      stopping.abort();
      await running;
    };
  }

  async #keepAsking(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      try {
        const { rowCount } = await this.#pool.query(selectCluster);
        if (rowCount === 0) return;
        await this.ask();
      } catch {
        // All requests use the coordinator until the next poll succeeds.
        this.#shards = [];
      }
      await sleep(limits.nodesIntervalMs, undefined, { signal: stopping }).catch(() => {});
    }
  }

  async ask(): Promise<void> {
    const { rows } = await this.#pool.query<Shard>(
      `select s.shardminvalue::integer as min, s.shardmaxvalue::integer as max, n.nodename || ':' || n.nodeport as node
       from pg_dist_shard s join pg_dist_placement p using (shardid) join pg_dist_node n using (groupid)
       where s.logicalrelid = to_regclass($1) and n.groupid > 0 and n.noderole = 'primary' and n.isactive
         and n.hasmetadata and n.metadatasynced`,
      [this.#table],
    );
    this.#shards = rows;
  }
}
