import { open } from 'node:fs/promises';
import { RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { isLockTimeout, isServerAway, isUnavailable, type Pool } from '../pool.ts';
import type { Requirement } from './requirements.ts';

/** A process whose clock differs from the database's by more than this stores nothing. */
export const clockDifferenceMaxMs = 60_000;

export interface Row {
  readonly now_ms: number;
  readonly is_read_only: boolean;
  /** The settings with which PostgreSQL may lose what it has confirmed. */
  readonly refused: readonly string[];
  /** Settings that the operator has accepted, because storage below PostgreSQL makes up for them, or data may be lost. */
  readonly accepted: readonly string[];
}

/**
 * Read from the catalogue, because a session keeps the settings of the time at which it began. `synchronous_commit`
 * cannot be accepted, because a connection can always turn it on.
 */
export const stateQuestion = `
  with kept as (
    select distinct on (1) split_part(c, '=', 1) as name, substr(c, strpos(c, '=') + 1) as value
    from pg_db_role_setting s cross join unnest(s.setconfig) as c
    where s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
      and s.setrole in (0, (select oid from pg_roles where rolname = session_user))
    order by 1, s.setrole = 0, s.setdatabase = 0),
  off as (
    select name || '=off' as setting from unnest(array['fsync', 'full_page_writes', 'synchronous_commit']) as u(name)
    where current_setting(name) = 'off' or exists (select from kept k where k.name = u.name and k.value ~* '^(of|f|n|0)')),
  judged as (
    select setting, setting <> 'synchronous_commit=off'
      and setting = any (regexp_split_to_array(coalesce(current_setting('intake.accepted_settings', true), ''), '[, ]+'))
      as is_accepted from off)
  select extract(epoch from clock_timestamp())::float8 * 1000 as now_ms,
    pg_is_in_recovery() or coalesce(
      (select value ~* '^(on|t|y|1)' from kept where name = 'default_transaction_read_only'),
      current_setting('transaction_read_only') = 'on') as is_read_only,
    array(select setting from judged where not is_accepted) as refused,
    array(select setting from judged where is_accepted) as accepted`;

export async function readServerState(pool: Pick<Pool, 'query'>): Promise<Row> {
  const { rows } = await pool.query<Row>({ name: 'state of the server', text: stateQuestion });
  return rows[0] as Row;
}

export function explainUnsafe(refused: readonly string[], server = 'PostgreSQL'): string {
  const files = refused.filter((setting) => setting !== 'synchronous_commit=off');
  const inFiles =
    'in postgresql.conf or with alter system' +
    ', or if the storage is safe without it, set intake.accepted_settings there to the setting as shown here';
  const inRole = 'for the role, the database and in postgresql.conf';
  return (
    `${server} may lose data that it has confirmed, because of ${refused.join(' and ')}; turn it on ` +
    [...(files.length > 0 ? [inFiles] : []), ...(files.length < refused.length ? [inRole] : [])].join(
      '; and ',
    )
  );
}

/** Data is ordered and deleted by the database's time, so a process whose own clock differs must not store anything. */
export class ServerState implements Requirement {
  readonly #pool: Pick<Pool, 'query'>;
  #row: Row | undefined;
  /** The database's time at the zero of this process's monotonic clock. */
  #originMs = 0;

  constructor(pool: Pick<Pool, 'query'>) {
    this.#pool = pool;
  }

  /** Negative if this process is behind, 0 if unknown. The monotonic clock shows a jump at once, without a query. */
  get aheadMs(): number {
    return this.#row ? Date.now() - this.#originMs - performance.now() : 0;
  }

  async look(): Promise<void> {
    const askedMs = performance.now();
    const row = await readServerState(this.#pool);
    this.#row = row;
    this.#originMs = row.now_ms - (askedMs + performance.now()) / 2;
  }

  unmet(): RequestError | undefined {
    const wrongClock = this.wrongClock();
    if (wrongClock || !this.#row) return wrongClock;
    const { is_read_only, refused } = this.#row;
    if (is_read_only)
      return new RequestError('database_unavailable', {
        message:
          'PostgreSQL is read-only; point DATABASE_URL at the primary if this is a standby, and otherwise turn ' +
          'default_transaction_read_only off. This process becomes ready on its own.',
      });
    if (refused.length > 0)
      return new RequestError('database_unsafe', { message: `${explainUnsafe(refused)}.` });
    return undefined;
  }

  wrongClock(): RequestError | undefined {
    const { aheadMs } = this;
    if (Math.abs(aheadMs) <= clockDifferenceMaxMs) return undefined;
    const seconds = Math.round(Math.abs(aheadMs) / 1_000);
    return new RequestError('clock_differs', {
      message:
        `The clock of this process is ${seconds} seconds ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of the database, so ` +
        'this process stores nothing and does no maintenance; the operator has to correct the one that is wrong.',
    });
  }
}

/** An SQL condition. `parameter` is the time of this process. */
export const isClockRight = (parameter: string) =>
  `abs(extract(epoch from clock_timestamp() - ${parameter}::timestamptz)) * 1000 <= ${clockDifferenceMaxMs}`;

/** Whether this process can open files. Without file descriptors, Node drops new connections without an error. */
export class FileDescriptors implements Requirement {
  #error: RequestError | undefined;

  async look(): Promise<void> {
    try {
      await (await open('/dev/null')).close();
      this.#error = undefined;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      this.#error =
        code === 'EMFILE' || code === 'ENFILE' ? new RequestError('out_of_descriptors') : undefined;
    }
  }

  unmet(): RequestError | undefined {
    return this.#error;
  }
}

export interface Stalling {
  readonly stalledMs: number;
}

/** Stalled means that tasks are running, but none has finished for too long. Otherwise the process is just busy. */
export class StallWatch implements Stalling {
  #underWay = 0;
  #movedMs = 0;
  /** The error of a task that timed out, if no task has succeeded since then. */
  #givenUp: unknown;

  readonly failures = new ServerFailures();

  /** `organisations` lists the owners of the written data, unless a single cluster node stores it. */
  async run<T>(organisations: readonly string[], work: () => Promise<T>): Promise<T> {
    if (this.#underWay === 0 && !this.hasGivenUp) this.#movedMs = performance.now();
    this.#underWay++;
    try {
      const result = await work();
      this.#moved();
      this.failures.clear();
      return result;
    } catch (error) {
      if (isGivenUp(error)) this.#givenUp = error;
      else this.#moved();
      this.failures.note(organisations, error);
      throw error;
    } finally {
      this.#underWay--;
    }
  }

  get stalledMs(): number {
    return this.#underWay > 0 || this.hasGivenUp ? performance.now() - this.#movedMs : 0;
  }

  get hasGivenUp(): boolean {
    return this.#givenUp !== undefined;
  }

  get cause(): unknown {
    return this.hasGivenUp ? serverErrorOf(this.#givenUp) : undefined;
  }

  /** Called when nothing blocks writes any more. If tasks are still running, their outcome decides. */
  forgive(): void {
    if (this.#underWay === 0) this.#givenUp = undefined;
  }

  #moved(): void {
    this.#movedMs = performance.now();
    this.#givenUp = undefined;
  }
}

/** A statement that failed because of its content does not count. */
function isGivenUp(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === 'overloaded' || isUnavailable(error) || isUnavailable(cause);
}

/**
 * Tracks write failures that the database server causes. Failures of a single organisation do not count, because its
 * data may be the cause, unless the readiness check gets the same error. A failure is over after a successful write,
 * and also after a fixed time, because without traffic there would be no successful write.
 */
class ServerFailures {
  /** The organisations whose writes failed most recently, with the oldest failure first. */
  readonly #failed = new Map<string, { readonly error: unknown; readonly atMs: number }>();

  note(organisations: readonly string[], error: unknown): void {
    const cause = serverErrorOf(error);
    if (cause === undefined) return;
    const atMs = performance.now();
    for (const organisationId of organisations) {
      this.#failed.delete(organisationId);
      this.#failed.set(organisationId, { error: cause, atMs });
    }
    for (const [oldest] of this.#failed) {
      if (this.#failed.size <= limits.failedOrganisationsMin) break;
      this.#failed.delete(oldest);
    }
  }

  /** The readiness check got the same error, so the cause is not one organisation's data. */
  confirm(error: unknown): void {
    if (this.isSuspected) this.note([...this.#failed.keys(), 'readiness'], error);
  }

  clear(): void {
    this.#failed.clear();
  }

  /** The last error, if writes of several organisations have failed within a short time and none has succeeded since. */
  get error(): unknown {
    const recent = this.#recent();
    return recent.length < limits.failedOrganisationsMin ? undefined : recent.at(-1)?.error;
  }

  get isSuspected(): boolean {
    return this.#recent().length > 0;
  }

  #recent(): { readonly error: unknown }[] {
    const sinceMs = performance.now() - limits.serverFailuresMs;
    return [...this.#failed.values()].filter(({ atMs }) => atMs > sinceMs);
  }
}

/**
 * Excludes an unavailable cluster node, which stores only some organisations, and timeouts, which may be due to the
 * data or to a lock and are handled by `StallWatch`.
 */
function serverErrorOf(error: unknown): unknown {
  const { code, message, cause } = error as { code?: unknown; message: string; cause?: unknown };
  if (!isUnavailable(error)) return cause instanceof Error ? serverErrorOf(cause) : undefined;
  const isTimeout = isLockTimeout(error) || /^25P0/.test(String(code)) || /^Query read timeout/.test(message);
  return isServerAway(error) && !isTimeout ? error : undefined;
}
