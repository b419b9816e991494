import type { Socket } from 'node:net';
import pg from 'pg';
import type { DatabaseConfig } from '../../config.ts';
import type { RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { isDiskFull } from '../pool.ts';
import { migrationNames } from '../schema/migration-checksums.ts';
import { migrationsFolder, type SchemaState, schemaState } from '../schema/schema-state.ts';
import type { Requirements } from './requirements.ts';
import { type Stalling, StallWatch } from './server-state.ts';

/**
 * Checks whether a lock blocks writes. Ignores partitions of past days, because maintenance locks a day of interactions
 * for up to an hour to build an index. Retries and replays of old interactions do write to such a day and may time out,
 * but nothing else waits for that lock. The end of a partition is parsed from its name, because `pg_get_expr` on its
 * bounds would wait for the lock. Receipts have weekly partitions.
 */
const blockedQuestion = `
  select exists (
    select from pg_locks l join pg_class c on c.oid = l.relation
    where l.granted and l.locktype = 'relation' and c.relkind in ('r', 'p')
      and l.database = (select oid from pg_database where datname = current_database()) and c.oid >= 16384
      and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
      and not (c.relname ~ '^(to_drop_)?(interactions|changes|receipts|receipt_batches)_\\d{4}_\\d\\d_\\d\\d$'
        and right(c.relname, 10) < to_char((now() at time zone 'UTC') -
          case when c.relname ~ 'receipt' then interval '6 days' else interval '0' end, 'YYYY_MM_DD'))
  ) as blocked`;

/** Writes a temporary file of about a megabyte, because the series exceeds `work_mem`. Nothing is left behind. */
const spaceQuestion = `set local work_mem = '64kB'; select count(*) from generate_series(1, ${limits.probeRows})`;

interface Said {
  readonly schema: SchemaState;
  /** Null if this was not checked. */
  readonly isBlocked: boolean | null;
}

/**
 * The check has its own connection. In the shared pool it would wait behind uploads, but a busy pool does not mean that
 * the database is unavailable. Clients can request the check without a key, so concurrent requests share one query, and
 * its result is cached for a short time.
 */
export class Readiness {
  readonly #config: Pick<DatabaseConfig, 'databaseUrl' | 'databasePooler'>;
  readonly #parts: Readonly<Record<string, Stalling>>;
  readonly #requirements: Requirements | undefined;
  /** This program's migrations, which do not change while it runs. */
  #expected: readonly string[] | undefined;
  /** A client that is connected and idle. */
  #client: pg.Client | undefined;
  #said: Promise<Said> | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(
    config: Pick<DatabaseConfig, 'databaseUrl' | 'databasePooler'>,
    parts: Readonly<Record<string, Stalling>> = {},
    requirements?: Requirements,
  ) {
    this.#config = config;
    this.#parts = parts;
    this.#requirements = requirements;
  }

  /** Rejects within the timeout if the database does not respond. */
  async schemaState(): Promise<SchemaState> {
    return (await this.#answer()).schema;
  }

  /** Rejects if the database does not respond. */
  async stalled(): Promise<{ readonly part: string; readonly ms: number }[]> {
    const { isBlocked } = await this.#answer();
    // Earlier write timeouts do not describe the current state. If no lock blocks writes any more, the next writes will
    // show whether they succeed.
    if (isBlocked === false) for (const watch of this.#givenUp()) watch.forgive();
    return Object.entries(this.#parts)
      .map(([part, { stalledMs: ms }]) => ({ part, ms }))
      .filter(({ ms }) => ms > limits.stalledMs);
  }

  /** Never rejects. */
  async isReady(): Promise<boolean> {
    try {
      const stalled = await this.stalled();
      const state = await this.schemaState();
      if ((await this.serverFailure()) !== undefined) return false;
      if ((await this.unmet()) !== undefined) return false;
      return stalled.length === 0 && state !== 'behind' && state !== 'ahead';
    } catch {
      return false;
    }
  }

  /** Returns the server error that causes writes of several organisations, or all pending writes, to fail. */
  async serverFailure(): Promise<unknown> {
    await this.#answer();
    const errors = this.#watches.map(({ failures }) => failures.error);
    const stalled = this.#watches.filter(({ stalledMs }) => stalledMs > limits.stalledMs);
    return [...errors, ...stalled.map(({ cause }) => cause)].find((error) => error !== undefined);
  }

  async unmet(): Promise<RequestError | undefined> {
    return this.#requirements?.unmet();
  }

  /** Includes parts that have not reached the limit. */
  get stalledMs(): Record<string, number> {
    return Object.fromEntries(Object.entries(this.#parts).map(([part, { stalledMs }]) => [part, stalledMs]));
  }

  get #watches(): StallWatch[] {
    return Object.values(this.#parts).filter((part) => part instanceof StallWatch);
  }

  #givenUp(): StallWatch[] {
    return this.#watches.filter((watch) => watch.hasGivenUp);
  }

  #answer(): Promise<Said> {
    if (this.#said) return this.#said;
    const said = this.#ask().finally(() => {
      setTimeout(() => this.#forget(said), limits.readinessReusedMs).unref();
    });
    this.#said = said;
    return said;
  }

  #forget(said: Promise<Said> | undefined): void {
    if (this.#said === said) this.#said = undefined;
  }

  async close(): Promise<void> {
    await this.#said?.catch(() => {});
    this.#drop();
  }

  async #ask(): Promise<Said> {
    this.#expected ??= await migrationNames(migrationsFolder);
    const isSuspected = this.#watches.some(({ failures }) => failures.isSuspected);
    // A connection that is already open would not show that new connections fail.
    if (isSuspected) this.#drop();
    const kept = this.#take();
    const client = kept ?? this.#newClient();
    // Destroying the stream makes any step fail (DNS, connection, login, answer) and drops the connection.
    const timer = setTimeout(() => client.connection.stream.destroy(), limits.readinessTimeoutMs);
    try {
      if (!kept) await client.connect();
      const schema = await schemaState(client, this.#expected);
      // Locks are checked only after writes have timed out.
      const { rows } =
        this.#givenUp().length > 0
          ? await client.query<{ blocked: boolean }>(blockedQuestion)
          : { rows: [{ blocked: null }] };
      if (isSuspected) await this.#lookForSpace(client);
      this.#keep(client);
      return { schema, isBlocked: rows[0]?.blocked ?? null };
    } catch (error) {
      client.connection.stream.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** A small write may succeed where a batch would not, so this probe needs more space. */
  async #lookForSpace(client: pg.Client): Promise<void> {
    try {
      await client.query(spaceQuestion);
    } catch (error) {
      if (isDiskFull(error)) for (const { failures } of this.#watches) failures.confirm(error);
    }
  }

  #newClient(): pg.Client {
    const client = new pg.Client({
      connectionString: this.#config.databaseUrl,
      application_name: 'intake-server',
      // Without this timeout, a statement that waits for a lock would continue after the check. A pooler does not accept
      // the setting.
      ...(!this.#config.databasePooler && { statement_timeout: limits.readinessTimeoutMs }),
    });
    client.on('error', () => {
      if (this.#client !== client) return;
      // The cached result may be wrong now.
      this.#forget(this.#said);
      this.#take();
    });
    return client;
  }

  #keep(client: pg.Client): void {
    this.#client = client;
    this.#idle = setTimeout(() => this.#drop(), limits.databaseIdleMs).unref();
  }

  #take(): pg.Client | undefined {
    clearTimeout(this.#idle);
    const client = this.#client;
    this.#client = undefined;
    return client;
  }

  /** Closes the connection without waiting for a response, which may never arrive. */
  #drop(): void {
    const client = this.#take();
    client?.end().catch(() => {});
    (client?.connection.stream as Socket | undefined)?.destroySoon();
  }
}
