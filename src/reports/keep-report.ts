import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { limits } from '../limits.ts';
import { type Client, isServerAway, type Pool } from '../postgres/pool.ts';
import {
  CommitUnconfirmed,
  inTransaction,
  queryRow,
  queryRows,
  retryConflicts,
} from '../postgres/transactions.ts';
import { firstUuid, msOfUuidV7 } from '../registry/uuid-v7.ts';
import { type Changed, countChanges } from './count-changes.ts';

interface Progress {
  readonly step: string;
  readonly number: string;
  readonly interactions_after: string | null;
  readonly transactions_after: string | null;
}

interface Failing {
  readonly pauseMs: number;
  readonly untilMs: number;
  readonly size: number;
}

/**
 * The organisations take turns, with one step each, until nothing is left or the time is up. The next run continues
 * from there. While the process is busy, only a few changes are counted, because reports may be late but requests may
 * not. If an organisation's step fails, that organisation pauses. It then continues with smaller steps, one after each
 * round of the other organisations, because a step is slow if one recommendation or student has very many interactions.
 */
export class ReportKeeper {
  readonly #pool: Pool;
  readonly #stepMs: number;
  readonly #watch: () => () => boolean;
  readonly #failing = new Map<string, Failing>();

  /**
   * A step's time limit is at most the driver's timeout, because PostgreSQL must cancel a statement before that timeout
   * expires. Otherwise the statement's locks would stay held.
   */
  constructor(pool: Pool, { databaseTimeoutMs }: Pick<Config, 'databaseTimeoutMs'>, watch = watchCpu) {
    this.#pool = pool;
    this.#stepMs = Math.min(limits.reportStepMs, databaseTimeoutMs);
    this.#watch = watch;
  }

  async run(stopping?: AbortSignal): Promise<void> {
    const isBusy = this.#watch();
    const waiting = (await organisationsToCount(this.#pool)).filter((one) => !this.#isPaused(one));
    if (waiting.length > 0) await sleep(limits.reportLookMs);
    const startMs = performance.now();
    const isOver = () => {
      const msMax = isBusy() ? limits.reportMsPerBusyRun : limits.reportMsPerRun;
      return stopping?.aborted === true || performance.now() > startMs + msMax;
    };
    const failures: unknown[] = [];
    const failing = waiting.filter((one) => this.#failing.has(one));
    let healthy = waiting.filter((one) => !this.#failing.has(one));
    while (healthy.length + failing.length > 0 && !isOver()) {
      healthy = await this.#stepOfEach(healthy, isBusy, isOver, failures);
      // This step runs even if the time is up. Otherwise, the other organisations' backlog would block every
      // organisation that has failed once.
      const next = failing.splice(0, 1);
      failing.push(...(await this.#stepOfEach(next, isBusy, () => stopping?.aborted === true, failures)));
    }
    if (failures.length > 0) throw failures[0];
  }

  async #stepOfEach(
    organisationIds: readonly string[],
    isBusy: () => boolean,
    isOver: () => boolean,
    failures: unknown[],
  ): Promise<string[]> {
    const left: string[] = [];
    for (const organisationId of organisationIds) {
      if (isOver()) break;
      const size = this.#failing.get(organisationId)?.size ?? limits.reportIdsPerStep;
      const taken = isBusy() ? Math.min(size, limits.reportIdsPerBusyStep) : size;
      try {
        if (await keepStep(this.#pool, organisationId, taken, this.#stepMs)) left.push(organisationId);
        if (taken === size) this.#noteSuccess(organisationId, size);
      } catch (error) {
        this.#noteFailure(organisationId, taken);
        if (isAway(error)) throw error;
        failures.push(error);
      }
    }
    return left;
  }

  #isPaused(organisationId: string): boolean {
    return performance.now() < (this.#failing.get(organisationId)?.untilMs ?? 0);
  }

  #noteSuccess(organisationId: string, size: number): void {
    if (2 * size >= limits.reportIdsPerStep) this.#failing.delete(organisationId);
    else this.#failing.set(organisationId, { pauseMs: 0, untilMs: 0, size: 2 * size });
  }

  #noteFailure(organisationId: string, size: number): void {
    const before = this.#failing.get(organisationId)?.pauseMs ?? 0;
    const pauseMs = Math.min(Math.max(limits.reportPauseMs, 2 * before), limits.reportPauseMsMax);
    const smaller = Math.max(Math.trunc(size / 5), limits.reportIdsPerStepMin);
    this.#failing.set(organisationId, { pauseMs, untilMs: performance.now() + pauseMs, size: smaller });
  }
}

/**
 * If the database is unavailable, any other organisation's step would fail as well. A step that took too long, used too
 * much memory, or needed an unavailable cluster node says nothing about the other organisations.
 */
function isAway(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  if (error instanceof CommitUnconfirmed) return isAway(error.cause);
  return isServerAway(error) && !/^(57014|55P03|25P0|53|58)/.test(String(code));
}

/** Uses the CPU time of all threads since the last call. */
export function watchCpu(): () => boolean {
  let last = { atMs: performance.now(), cpu: process.cpuUsage() };
  let isBusy = false;
  return () => {
    const passedMs = performance.now() - last.atMs;
    if (passedMs < limits.reportLookMs) return isBusy;
    const { user, system } = process.cpuUsage(last.cpu);
    isBusy = (user + system) / 1_000 > limits.reportBusyPart * passedMs;
    last = { atMs: performance.now(), cpu: process.cpuUsage() };
    return isBusy;
  };
}

/** In random order, so that the last organisation of one run may be the first of the next. */
async function organisationsToCount(pool: Pool): Promise<string[]> {
  const withReport = await organisationsWithReport(pool);
  const { rows } = await pool.query<{ organisation_id: string }>(
    `select organisation_id from (
       select c.organisation_id from change_counters c
       left join report_progress p on p.organisation_id = c.organisation_id
       where p.number is null or p.number < c.last_number
       union
       select organisation_id from report_progress
       where interactions_after is not null or transactions_after is not null) as waiting
     where organisation_id = any ($1::uuid[])
     order by random() limit ${limits.reportOrganisationsPerRun}`,
    [withReport],
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

/** Counts about `size` of an organisation's next changes in one transaction, and returns true if there may be more. */
export function keepStep(
  pool: Pool,
  organisationId: string,
  size: number = limits.reportIdsPerStep,
  msMax: number = limits.reportStepMs,
): Promise<boolean> {
  return retryConflicts(() =>
    inTransaction(
      pool,
      async (connection) => {
        const client = endingAfter(connection, msMax);
        // `jit` is also set here, because our session options do not apply to the sessions of a pooler or of another
        // node.
        await client.query(`set local work_mem = '${limits.reportSortMemory}'; set local jit = off`);
        const before = await lockProgress(client, organisationId);
        const next = await nextStep(client, organisationId, before, size);
        if (!next) return false;
        const step = String(Number(before.step) + 1);
        await countChanges(client, organisationId, step, next.changed);
        const { number, interactions_after, transactions_after } = next.progress;
        const moveOn = {
          name: 'report: move on',
          text: `
          update report_progress set step = $2, number = $3, interactions_after = $4, transactions_after = $5
          where organisation_id = $1`,
          values: [organisationId, step, number, interactions_after, transactions_after],
        };
        await queryRows(client, moveOn, 1);
        return true;
      },
      'begin isolation level repeatable read',
    ),
  );
}

/** Each statement gets the time that remains for all of them together. */
function endingAfter(client: Client, msMax: number): Client {
  const endMs = performance.now() + msMax;
  const query = (...statement: Parameters<Client['query']>) => {
    const leftMs = Math.ceil(endMs - performance.now());
    if (leftMs <= 0) throw new Error(`a step of the report took longer than ${msMax} ms`);
    // This is not awaited, because if this query fails, the statement that is sent with it also fails.
    client.query(`set local statement_timeout = ${leftMs}`).catch(() => {});
    return client.query(...statement);
  };
  return { query } as unknown as Client;
}

/** Without this lock, two processes would count the same changes. */
async function lockProgress(client: Client, organisationId: string): Promise<Progress> {
  await client.query({
    name: 'report: begin',
    // An organisation that is being removed is not in `tenants`.
    text: `
      insert into report_progress (organisation_id, step, number)
      select organisation_id, 0, 0 from tenants where organisation_id = $1 on conflict do nothing`,
    values: [organisationId],
  });
  return queryRow<Progress>(client, {
    name: 'report: lock progress',
    text: `
      select step, number, interactions_after, transactions_after from report_progress
      where organisation_id = $1 for update`,
    values: [organisationId],
  });
}

interface Step {
  readonly changed: Changed;
  readonly progress: Omit<Progress, 'step'>;
}

/**
 * The tables are walked completely before the log is read. If the log came first, an organisation that uploads steadily
 * would never finish the walk. The walk would not finish either if it restarted whenever a day of the log is dropped.
 */
async function nextStep(
  client: Client,
  organisationId: string,
  at: Progress,
  size: number,
): Promise<Step | undefined> {
  const walked =
    (await stepFromInteractions(client, organisationId, at, size * limits.reportWalkFactor)) ??
    (await stepFromTransactions(client, organisationId, at, size));
  if (walked) return walked;
  const { rows } = await client.query<{ last_number: string }>({
    name: 'report: forgotten changes',
    text: `
      select last_number from change_counters where organisation_id = $1 and forgotten_number > $2::bigint`,
    values: [organisationId, at.number],
  });
  // Part of the log was dropped before it was counted, so only the tables still contain that data.
  if (rows[0])
    return {
      changed: { interactions: { ids: [] }, transactions: [] },
      progress: {
        // The walk finds everything that has a number by now. The log is therefore only needed from here on, and
        // dropping changes before this number does not start another walk.
        number: rows[0].last_number,
        interactions_after: firstUuid,
        transactions_after: firstUuid,
      },
    };
  return stepFromLog(client, organisationId, at, size);
}

async function stepFromLog(
  client: Client,
  organisationId: string,
  at: Progress,
  size: number,
): Promise<Step | undefined> {
  // A change of size 0 means that older interactions have expired. They stay counted.
  const isCounted = `type in ('interactions', 'transactions') and size > 0`;
  const { rows } = await client.query<{ number: string; type: string; ids: string[] | null }>(
    `select number, type, case when ${isCounted} then ids end as ids
     from (
       select number, type, size, ids, sum(case when ${isCounted} then size else 0 end) over (order by number) as size_until
       from (
         select number, type, size, ids from changes where organisation_id = $1 and number > $2::bigint
         order by number limit ${limits.reportChangesPerStep}) as next) as first_ones
     where size_until <= ${Math.trunc(size)} or number = $2::bigint + 1
     order by number`,
    [organisationId, at.number],
  );
  const last = rows.at(-1);
  if (!last) return undefined;
  const idsOf = (type: string) => [
    ...new Set(rows.flatMap((row) => (row.type === type && row.ids ? row.ids : []))),
  ];
  return {
    changed: { interactions: { ids: idsOf('interactions') }, transactions: idsOf('transactions') },
    progress: { ...at, number: last.number },
  };
}

async function stepFromInteractions(
  client: Client,
  organisationId: string,
  at: Progress,
  size: number,
): Promise<Step | undefined> {
  const after = at.interactions_after;
  if (after === null) return undefined;
  const { rows } = await client.query<{ until: string; count: string }>(
    `select id as until, count(*) over () as count from (
       select interaction_id as id from interactions where organisation_id = $1 and interaction_id > $2
       order by interaction_id limit ${Math.trunc(size)}) as next
     order by id desc limit 1`,
    [organisationId, after],
  );
  const until = rows[0]?.until;
  const count = Number(rows[0]?.count ?? 0);
  return {
    changed: {
      interactions: until === undefined ? { ids: [] } : { after, until, count },
      transactions: [],
    },
    progress: { ...at, interactions_after: count === size && until !== undefined ? until : null },
  };
}

async function stepFromTransactions(
  client: Client,
  organisationId: string,
  at: Progress,
  size: number,
): Promise<Step | undefined> {
  const after = at.transactions_after;
  if (after === null) return undefined;
  const { rows } = await client.query<{ id: string }>(
    `select transaction_id as id from transactions where organisation_id = $1 and transaction_id > $2
     order by transaction_id limit ${Math.trunc(size)}`,
    [organisationId, after],
  );
  const transactions = rows.map(({ id }) => id);
  return {
    changed: { interactions: { ids: [] }, transactions },
    progress: { ...at, transactions_after: rows.length === size ? (transactions.at(-1) ?? null) : null },
  };
}

/** A separate statement, because in a cluster `organisations` is on the coordinator, and counted data is not. */
async function organisationsWithReport(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    'select organisation_id from organisations where recommendations_report',
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

/**
 * Numbers have no gaps, so an organisation's oldest uncounted change is found by its number. A report walks the tables
 * only if changes were dropped from the log uncounted, so its lag is at least the length of the log.
 */
export async function reportLagMs(
  pool: Pool,
  { changesKeptDays }: Pick<Config, 'changesKeptDays'>,
): Promise<number> {
  const { rows } = await pool.query<{ oldest: string | null; is_walking: boolean | null }>(
    `select min(u.change_id::text) as oldest,
       bool_or(c.forgotten_number > coalesce(p.number, 0) or p.interactions_after is not null or p.transactions_after is not null)
         as is_walking
     from change_counters c
     left join report_progress p on p.organisation_id = c.organisation_id
     left join changes u on u.organisation_id = c.organisation_id
       and u.number = greatest(coalesce(p.number, 0), c.forgotten_number) + 1
     where c.organisation_id = any ($1::uuid[])`,
    [await organisationsWithReport(pool)],
  );
  const { oldest, is_walking } = rows[0] ?? {};
  return Math.max(
    oldest ? Date.now() - msOfUuidV7(oldest) : 0,
    is_walking ? changesKeptDays * 24 * 3_600_000 : 0,
  );
}
