import { setTimeout as sleep } from 'node:timers/promises';
import { FairQueue } from '../../admission/fair-queue.ts';
import { limits } from '../../limits.ts';
import { type Client, type OwnPool, type Pool, withClient } from '../pool.ts';
import { selectCluster } from './extension.ts';
import { Detours } from './node-detours.ts';

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
