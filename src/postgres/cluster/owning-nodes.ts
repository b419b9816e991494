import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import type { Pool } from '../pool.ts';
import { selectCluster } from './extension.ts';

interface Shard {
  readonly min: number;
  readonly max: number;
  /** As `host:port`. */
  readonly node: string;
}

/**
 * The owner of an organisation's rows is only a hint. Every worker listed here has the metadata and forwards
 * statements, so after a shard has moved, statements take a detour but do not fail. Empty on plain PostgreSQL.
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

  /** Undefined if it is unknown, and without a cluster. */
  of(organisationId: string): string | undefined {
    if (this.#shards.length === 0) return undefined;
    const hash = uuidHash(organisationId);
    return this.#shards.find(({ min, max }) => min <= hash && hash <= max)?.node;
  }

  get nodes(): ReadonlySet<string> {
    return new Set(this.#shards.map(({ node }) => node));
  }

  /** Returns a function that stops polling. */
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

/** PostgreSQL's `uuid_hash`, as on a little-endian machine. Citus places rows by this hash. */
export function uuidHash(uuid: string): number {
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex');
  const start = (0x9e3779b9 + bytes.length + 3_923_095) | 0;
  const first = mix(
    (start + bytes.readInt32LE(0)) | 0,
    (start + bytes.readInt32LE(4)) | 0,
    (start + bytes.readInt32LE(8)) | 0,
  );
  return finish((first.a + bytes.readInt32LE(12)) | 0, first.b, first.c);
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/** Mixes three words with Bob Jenkins' hash, as in PostgreSQL's common/hashfn.c. */
function mix(a: number, b: number, c: number): { a: number; b: number; c: number } {
  for (const [bits1, bits2, bits3] of [
    [4, 6, 8],
    [16, 19, 4],
  ] as const) {
    a = ((a - c) | 0) ^ rotate(c, bits1);
    c = (c + b) | 0;
    b = ((b - a) | 0) ^ rotate(a, bits2);
    a = (a + c) | 0;
    c = ((c - b) | 0) ^ rotate(b, bits3);
    b = (b + a) | 0;
  }
  return { a, b, c };
}

function finish(a: number, b: number, c: number): number {
  c = ((c ^ b) - rotate(b, 14)) | 0;
  a = ((a ^ c) - rotate(c, 11)) | 0;
  b = ((b ^ a) - rotate(a, 25)) | 0;
  c = ((c ^ b) - rotate(b, 16)) | 0;
  a = ((a ^ c) - rotate(c, 4)) | 0;
  b = ((b ^ a) - rotate(a, 14)) | 0;
  return ((c ^ b) - rotate(b, 24)) | 0;
}
