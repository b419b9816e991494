import { beforeTomorrow } from '../changes/change-log.ts';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { BeginAgain, expectRows, inTransaction, retryConflicts } from '../postgres/transactions.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { type Changed, countChanges } from './count-changes.ts';

interface Progress {
  readonly step: string;
  readonly number: string;
  readonly interactions_after: string | null;
  readonly transactions_after: string | null;
}

/**
 * Counts changes of all organisations, a step of each in turn, until nothing is left or the time is up; the next run
 * continues. An organisation whose step fails, for example because one student has millions of interactions, pauses for a
 * while: it must not use up the time of the others.
 */
export class ReportKeeper {
  readonly #pool: Pool;
  readonly #pauses = new Map<string, { readonly ms: number; readonly untilMs: number }>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async run(stopping?: AbortSignal): Promise<void> {
    const endMs = performance.now() + limits.reportMsPerRun;
    let waiting = (await organisationsToCount(this.#pool)).filter((one) => !this.#isPaused(one));
    const failures: unknown[] = [];
    while (waiting.length > 0) {
      const left: string[] = [];
      for (const organisationId of waiting) {
        if (stopping?.aborted || performance.now() > endMs) break;
        try {
          if (await keepStep(this.#pool, organisationId)) left.push(organisationId);
          this.#pauses.delete(organisationId);
        } catch (error) {
          this.#pause(organisationId);
          failures.push(error);
        }
      }
      waiting = performance.now() > endMs || stopping?.aborted ? [] : left;
    }
    if (failures.length > 0) throw failures[0];
  }

  #isPaused(organisationId: string): boolean {
    return performance.now() < (this.#pauses.get(organisationId)?.untilMs ?? 0);
  }

  #pause(organisationId: string): void {
    const before = this.#pauses.get(organisationId)?.ms;
    const ms = before === undefined ? limits.reportPauseMs : Math.min(2 * before, limits.reportPauseMsMax);
    this.#pauses.set(organisationId, { ms, untilMs: performance.now() + ms });
  }
}

/** In random order, so that the last of one run may be the first of the next; no more than a run can count. */
async function organisationsToCount(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    `select organisation_id from (
       select c.organisation_id from change_counters c
       left join report_progress p on p.organisation_id = c.organisation_id
       where p.number is null or p.number < c.last_number
       union
       select organisation_id from report_progress
       where interactions_after is not null or transactions_after is not null) as waiting
     order by random() limit ${limits.reportOrganisationsPerRun}`,
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

/** Counts the next changes of an organisation, in one transaction; true if there may be more. */
export function keepStep(pool: Pool, organisationId: string): Promise<boolean> {
  return retryConflicts(() =>
    inTransaction(
      pool,
      async (client) => {
        await client.query(`set local statement_timeout = ${limits.reportStatementMs}`);
        const before = await lockProgress(client, organisationId);
        const next = await nextStep(client, organisationId, before);
        if (!next) return false;
        const step = String(Number(before.step) + 1);
        await countChanges(client, organisationId, step, next.changed);
        const { number, interactions_after, transactions_after } = next.progress;
        const moved = await client.query({
          name: 'report: move on',
          text: `
          update report_progress set step = $2, number = $3, interactions_after = $4, transactions_after = $5
          where organisation_id = $1`,
          values: [organisationId, step, number, interactions_after, transactions_after],
        });
        expectRows(moved, 1, 'how far the report has come');
        return true;
      },
      'begin isolation level repeatable read',
    ),
  );
}

/** Without this lock, two processes would count the same changes twice. */
async function lockProgress(client: Client, organisationId: string): Promise<Progress> {
  await client.query({
    name: 'report: begin',
    text: `insert into report_progress (organisation_id, step, number) values ($1, 0, 0) on conflict do nothing`,
    values: [organisationId],
  });
  const { rows } = await client.query<Progress>({
    name: 'report: lock progress',
    text: `
      select step, number, interactions_after, transactions_after from report_progress
      where organisation_id = $1 for update`,
    values: [organisationId],
  });
  if (!rows[0]) throw new BeginAgain('how far the report has come was not read');
  return rows[0];
}

interface Step {
  readonly changed: Changed;
  readonly progress: Omit<Progress, 'step'>;
}

async function nextStep(client: Client, organisationId: string, at: Progress): Promise<Step | undefined> {
  const { rows } = await client.query<{ forgotten_number: string }>({
    name: 'report: forgotten changes',
    text: `
      select forgotten_number from change_counters where organisation_id = $1 and forgotten_number > $2::bigint`,
    values: [organisationId, at.number],
  });
  // Part of the log was dropped before it was counted: only the tables still know.
  if (rows[0])
    return {
      changed: { interactions: [], transactions: [] },
      progress: {
        number: rows[0].forgotten_number,
        interactions_after: firstUuid,
        transactions_after: firstUuid,
      },
    };
  return (
    (await fromLog(client, organisationId, at)) ??
    (await fromTable(client, organisationId, at, 'interaction')) ??
    (await fromTable(client, organisationId, at, 'transaction'))
  );
}

/** So many changes from the log that they have not many more ids than a step may have. */
async function fromLog(client: Client, organisationId: string, at: Progress): Promise<Step | undefined> {
  const isCounted = `type in ('interactions', 'transactions')`;
  const { rows } = await client.query<{ number: string; type: string; ids: string[] | null }>(
    `select number, type, case when ${isCounted} then ids end as ids
     from (
       select number, type, ids, sum(case when ${isCounted} then size else 0 end) over (order by number) as size_until
       from (
         select number, type, size, ids from changes where organisation_id = $1 and number > $2::bigint and ${beforeTomorrow()}
         order by number limit ${limits.reportChangesPerStep}) as next) as first_ones
     where size_until <= ${limits.reportIdsPerStep} or number = $2::bigint + 1
     order by number`,
    [organisationId, at.number],
  );
  const last = rows.at(-1);
  if (!last) return undefined;
  const idsOf = (type: string) => [
    ...new Set(rows.flatMap((row) => (row.type === type && row.ids ? row.ids : []))),
  ];
  return {
    changed: { interactions: idsOf('interactions'), transactions: idsOf('transactions') },
    progress: { ...at, number: last.number },
  };
}

/** The next rows of the table itself, in the order of their ids. */
async function fromTable(
  client: Client,
  organisationId: string,
  at: Progress,
  kind: 'interaction' | 'transaction',
): Promise<Step | undefined> {
  const after = at[`${kind}s_after`];
  if (after === null) return undefined;
  const { rows } = await client.query<{ id: string }>(
    `select ${kind}_id as id from ${kind}s where organisation_id = $1 and ${kind}_id > $2
     order by ${kind}_id limit ${limits.reportIdsPerStep}`,
    [organisationId, after],
  );
  const ids = rows.map(({ id }) => id);
  const until = rows.length < limits.reportIdsPerStep ? null : (ids.at(-1) ?? null);
  return {
    changed: { interactions: [], transactions: [], [`${kind}s`]: ids },
    progress: { ...at, [`${kind}s_after`]: until },
  };
}
