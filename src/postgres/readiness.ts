import type { Socket } from 'node:net';
import pg from 'pg';
import type { DatabaseConfig } from '../config.ts';
import { limits } from '../limits.ts';
import { migrationNames } from './migration-checksums.ts';
import { migrationsFolder, type SchemaState, schemaState } from './schema-state.ts';
import { type Stalling, StallWatch } from './stall-watch.ts';

/** While a partition is indexed it is locked as well, for an hour perhaps, and nobody writes to it then. */
const blockedQuestion = `
  select exists (
    select from pg_locks l join pg_class c on c.oid = l.relation
    where l.granted and l.locktype = 'relation' and c.relkind in ('r', 'p') and not c.relispartition
      and l.database = (select oid from pg_database where datname = current_database()) and c.oid >= 16384
      and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
  ) as blocked`;

/** What PostgreSQL said. */
interface Said {
  readonly schema: SchemaState;
  /** Whether somebody holds a lock on a table that keeps others from writing to it; null where that was not asked. */
  readonly isBlocked: boolean | null;
}

/** What a process does that can stall. */
export type StallingPart = 'uploads' | 'interactions' | 'connections' | 'keys';

/**
 * Whether the database can be reached and has a schema that this version works with, and whether writing goes on.
 * PostgreSQL is asked over a connection of its own: on one of the common pool it would wait behind the uploads, and a
 * pool that is in use is not a database that is away. No key is needed to ask, so requests at the same time share one
 * question, and those shortly after it its answer.
 */
export class Readiness {
  readonly #config: Pick<DatabaseConfig, 'databaseUrl' | 'databasePooler'>;
  readonly #parts: Readonly<Partial<Record<StallingPart, Stalling>>>;
  /** The migrations that came with this program do not change while it runs. */
  #expected: readonly string[] | undefined;
  /** Connected, and with nothing under way. */
  #client: pg.Client | undefined;
  #said: Promise<Said> | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(
    config: Pick<DatabaseConfig, 'databaseUrl' | 'databasePooler'>,
    parts: Readonly<Partial<Record<StallingPart, Stalling>>> = {},
  ) {
    this.#config = config;
    this.#parts = parts;
  }

  /** Rejects, in time, where the database does not say. */
  async schemaState(): Promise<SchemaState> {
    return (await this.#answer()).schema;
  }

  /** What has stalled, and for how long. Rejects where the database does not say. */
  async stalled(): Promise<{ readonly part: StallingPart; readonly ms: number }[]> {
    const { isBlocked } = await this.#answer();
    // Writes that were given up say nothing about now. Where nothing is in their way any more, the next ones will tell.
    if (isBlocked === false) for (const watch of this.#givenUp()) watch.forgive();
    return Object.entries(this.#parts)
      .map(([part, { stalledMs }]) => ({ part: part as StallingPart, ms: stalledMs }))
      .filter(({ ms }) => ms > limits.stalledMs);
  }

  /** For how long each part has stalled, whether or not that is too long. */
  get stalledMs(): Record<string, number> {
    return Object.fromEntries(Object.entries(this.#parts).map(([part, { stalledMs }]) => [part, stalledMs]));
  }

  #givenUp(): StallWatch[] {
    const watches = Object.values(this.#parts).filter((part) => part instanceof StallWatch);
    return watches.filter((watch) => watch.hasGivenUp);
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
    const kept = this.#take();
    const client = kept ?? this.#newClient();
    // Whatever it waits for then (a name, a connection, a login, an answer) fails, and the connection is gone.
    const timer = setTimeout(() => client.connection.stream.destroy(), limits.readinessTimeoutMs);
    try {
      if (!kept) await client.connect();
      const schema = await schemaState(client, this.#expected);
      // The locks are looked at only when writes have timed out.
      const { rows } =
        this.#givenUp().length > 0
          ? await client.query<{ blocked: boolean }>(blockedQuestion)
          : { rows: [{ blocked: null }] };
      this.#keep(client);
      return { schema, isBlocked: rows[0]?.blocked ?? null };
    } catch (error) {
      client.connection.stream.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #newClient(): pg.Client {
    const client = new pg.Client({
      connectionString: this.#config.databaseUrl,
      application_name: 'intake-server',
      // A statement that waits for a lock would go on waiting when we have gone. A pooler does not take the timeout.
      ...(!this.#config.databasePooler && { statement_timeout: limits.readinessTimeoutMs }),
    });
    client.on('error', () => {
      if (this.#client !== client) return;
      // What was answered a moment ago may no longer be so.
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

  /** Says goodbye, but does not wait for an answer: the server may be one that gives none. */
  #drop(): void {
    const client = this.#take();
    client?.end().catch(() => {});
    (client?.connection.stream as Socket | undefined)?.destroySoon();
  }
}
