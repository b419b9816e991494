import { setTimeout as sleep } from 'node:timers/promises';
import { beforeTomorrow } from '../changes/change-log.ts';
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
import { firstUuid } from '../registry/uuid-v7.ts';
import { type Changed, countChanges } from './count-changes.ts';
import { organisationsWithReport } from './report-switch.ts';

interface Progress {
  readonly step: string;
  readonly number: string;
  readonly interactions_after: string | null;
  readonly transactions_after: string | null;
}

/** Of an organisation whose counting failed. */
interface Failing {
  readonly pauseMs: number;
  readonly untilMs: number;
  readonly size: number;
}

/**
 * Counts changes of all organisations whose report is on, a step of each in turn, until nothing is left or the time is up; the
 * next run continues. While the process is busy it counts little: the report may be late, requests may not. An organisation
 * whose step fails pauses, and continues with smaller steps, of which one follows each turn of all others: a step is slow if one
 * recommendation or student has very many interactions.
 */
export class ReportKeeper {
  readonly #pool: Pool;
  readonly #stepMs: number;
  readonly #watch: () => () => boolean;
  readonly #failing = new Map<string, Failing>();

  /** PostgreSQL must end a statement before the driver's timeout does, which would leave its locks held. */
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
      // Even if the time is up: otherwise a backlog of the others would keep all that have failed once from being counted.
      const next = failing.splice(0, 1);
      failing.push(...(await this.#stepOfEach(next, isBusy, () => stopping?.aborted === true, failures)));
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Counts a step of each; returns the organisations that may have more. */
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
 * Whether the database is away, so that a step of any other organisation would fail as well. A step that took too long or too much
 * memory, or whose node of a cluster is away, says nothing about the others.
 */
function isAway(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  if (error instanceof CommitUnconfirmed) return isAway(error.cause);
  return isServerAway(error) && !/^(57014|55P03|25P0|53|58)/.test(String(code));
}

/** Returns a function that tells whether the process is busy: how much CPU it took since the last look, all threads together. */
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

/** In random order, so that the last of one run may be the first of the next; no more than a run can count. */
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

/** Counts about so many of an organisation's next changes, in one transaction; true if there may be more. */
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
        // `jit` is set here too: the options of our sessions do not reach those of a pooler or of another node.
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

/** Gives each statement the time that is left of all of them together. */
function endingAfter(client: Client, msMax: number): Client {
  const endMs = performance.now() + msMax;
  const query = (...statement: Parameters<Client['query']>) => {
    const leftMs = Math.ceil(endMs - performance.now());
    if (leftMs <= 0) throw new Error(`a step of the report took longer than ${msMax} ms`);
    // Nothing waits for this one: if it fails, so does the statement that is sent along with it.
    client.query(`set local statement_timeout = ${leftMs}`).catch(() => {});
    return client.query(...statement);
  };
  return { query } as unknown as Client;
}

/** Without this lock, two processes would count the same changes twice. */
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
 * A walk through the tables runs to its end before the log is read. Behind the log, an organisation that uploads steadily would
 * never finish it, nor would it if it started again whenever a day of the log is dropped.
 */
async function nextStep(
  client: Client,
  organisationId: string,
  at: Progress,
  size: number,
): Promise<Step | undefined> {
  const walked =
    (await fromInteractions(client, organisationId, at, size * limits.reportWalkFactor)) ??
    (await fromTransactions(client, organisationId, at, size));
  if (walked) return walked;
  const { rows } = await client.query<{ last_number: string }>({
    name: 'report: forgotten changes',
    text: `
      select last_number from change_counters where organisation_id = $1 and forgotten_number > $2::bigint`,
    values: [organisationId, at.number],
  });
  // Part of the log was dropped before it was counted: only the tables still have it.
  if (rows[0])
    return {
      changed: { interactions: { ids: [] }, transactions: [] },
      progress: {
        // The walk finds everything that has a number by now. So the log is needed only from here on, and what is dropped
        // before this number does not begin another walk.
        number: rows[0].last_number,
        interactions_after: firstUuid,
        transactions_after: firstUuid,
      },
    };
  return fromLog(client, organisationId, at, size);
}

/** So many changes from the log that they have not many more ids than a step may have. */
async function fromLog(
  client: Client,
  organisationId: string,
  at: Progress,
  size: number,
): Promise<Step | undefined> {
  // An entry of size 0 reports that older interactions have expired, and those stay counted.
  const isCounted = `type in ('interactions', 'transactions') and size > 0`;
  const { rows } = await client.query<{ number: string; type: string; ids: string[] | null }>(
    `select number, type, case when ${isCounted} then ids end as ids
     from (
       select number, type, size, ids, sum(case when ${isCounted} then size else 0 end) over (order by number) as size_until
       from (
         select number, type, size, ids from changes where organisation_id = $1 and number > $2::bigint and ${beforeTomorrow()}
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

/** The next interactions of the table itself, in the order of their ids. */
async function fromInteractions(
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

/** The next transactions of the table itself, in the order of their ids. */
async function fromTransactions(
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
