import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { type ActivityCounts, measures } from './activity-counts.ts';

interface ReportedProcess {
  readonly version: string;
  readonly isLeader: () => boolean;
  readonly counts: ActivityCounts;
}

interface ChoreRun {
  ran_at: Date | null;
  failed_at: Date | null;
}

/** If a write fails, that minute's activity is lost, which is acceptable because nothing depends on it. */
export class ActivityReport {
  readonly #pool: Pool;
  readonly #process: ReportedProcess;
  readonly #processId = randomUUID();
  readonly #startedAt = new Date();
  #chores = new Map<string, ChoreRun>();

  constructor(pool: Pool, process: ReportedProcess) {
    this.#pool = pool;
    this.#process = process;
  }

  choreDone(chore: string): void {
    this.#runOf(chore).ran_at = new Date();
  }

  choreFailed(chore: string): void {
    this.#runOf(chore).failed_at = new Date();
  }

  start(failed: (error: unknown) => void): () => Promise<void> {
    let running = Promise.resolve();
    const report = () => {
      running = this.report().catch(failed);
    };
    report();
    const timer = setInterval(report, limits.activityIntervalMs);
    return async () => {
      clearInterval(timer);
      await running;
      await this.#leave().catch(() => {});
    };
  }

  async report(): Promise<void> {
    const { version, isLeader, counts } = this.#process;
    const busiest = [...counts.take()];
    const chores = [...this.#chores];
    this.#chores = new Map();
    const sums = measures.map((measure) => busiest.map(([, activity]) => activity[measure]));
    await this.#pool.query({
      text: reportStatement,
      values: [
        this.#processId,
        hostname(),
        version,
        this.#startedAt,
        isLeader(),
        busiest.map(([organisationId]) => organisationId),
        ...sums,
        chores.map(([chore]) => chore),
        chores.map(([, { ran_at }]) => ran_at),
        chores.map(([, { failed_at }]) => failed_at),
      ],
    });
  }

  /** A process that was killed does not get here, and stays listed for an hour. */
  async #leave(): Promise<void> {
    await this.#pool.query('delete from processes where process_id = $1', [this.#processId]);
  }

  #runOf(chore: string): ChoreRun {
    const run = this.#chores.get(chore) ?? { ran_at: null, failed_at: null };
    this.#chores.set(chore, run);
    return run;
  }
}

/** Only the leader removes old rows, because several processes removing the same rows could block each other. */
const reportStatement = `
  with seen as (
    insert into processes (process_id, host, version, started_at, seen_at, is_leader)
    values ($1::uuid, $2, $3, $4, now(), $5::boolean)
    on conflict (process_id) do update set seen_at = excluded.seen_at, is_leader = excluded.is_leader
  ), counted as (
    insert into organisation_activity
    select now(), $1::uuid, * from unnest($6::uuid[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
  ), run as (
    insert into chore_runs as c (chore, ran_at, failed_at)
    select * from unnest($13::text[], $14::timestamptz[], $15::timestamptz[])
    on conflict (chore) do update
    set ran_at = coalesce(excluded.ran_at, c.ran_at), failed_at = coalesce(excluded.failed_at, c.failed_at)
  ), forgotten as (
    delete from organisation_activity where $5 and ended_at < now() - interval '2 hours'
  )
  delete from processes where $5 and process_id <> $1 and seen_at < now() - interval '1 hour'`;
