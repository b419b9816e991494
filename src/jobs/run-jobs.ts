import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { storeInTransaction } from '../bookkeeping/store.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { databaseTime, queryRows } from '../postgres/transactions.ts';
import type { JobKind, Next, Place, Step } from './job.ts';
import { jobLimits } from './limits.ts';
import { Round } from './round.ts';

interface Job {
  readonly organisation_id: string;
  readonly kind: string;
  readonly step: string;
  readonly position: unknown;
  readonly turn: string;
}

const jobColumns = 'organisation_id, kind, step, position, turn';

/** The other process may be the current or a previous leader. */
class TakenByAnother extends Error {}

interface Turn {
  readonly job: Job;
  readonly readyMs: number;
  readonly usedMs: number;
}

/**
 * New work may arrive while the round lasts. The next step is always taken by the job that has used the least time,
 * because a job of a hundred short steps must not wait for a hundred long ones. A job that fails is taken up again
 * after a pause, which doubles each time, and the others continue. Returns 'more' if jobs may be left.
 */
export async function runJobs(
  pool: Pool,
  kinds: readonly JobKind[],
  round = new Round(jobLimits.roundMs),
): Promise<'more' | 'all'> {
  let failure: unknown;
  const failed = (error: unknown) => {
    failure ??= error;
  };
  const turns: Turn[] = [];
  let lookedMs = performance.now();
  let isFull = await takeUp(pool, kinds, turns, failed);
  while (turns.length > 0 && !round.isOver) {
    if (performance.now() > lookedMs + jobLimits.findAgainMs) {
      isFull = await takeUp(pool, kinds, turns, failed);
      lookedMs = performance.now();
    }
    const { job, usedMs } = await nextTurn(turns, round);
    const kind = kinds.find(({ name }) => name === job.kind) as JobKind;
    const startMs = performance.now();
    try {
      const next = await runStep(pool, kind, job, round.stopping);
      const nowMs = performance.now();
      const pauseMs = next === job ? jobLimits.lookAgainMs : (kind.pauseFactor ?? 0) * (nowMs - startMs);
      if (next) turns.push({ job: next, readyMs: nowMs + pauseMs, usedMs: usedMs + nowMs - startMs });
    } catch (error) {
      if (error instanceof TakenByAnother) continue;
      failed(error);
      await pauseJob(pool, job).catch(() => {});
    }
  }
  if (failure !== undefined) throw failure;
  return turns.length > 0 || isFull ? 'more' : 'all';
}

/** Also adds new jobs. Returns true if there is no room for more. */
async function takeUp(
  pool: Pool,
  kinds: readonly JobKind[],
  turns: Turn[],
  failed: (error: unknown) => void,
): Promise<boolean> {
  for (const kind of kinds) await addJobs(pool, kind).catch(failed);
  const keyOf = ({ organisation_id, kind }: Job) => `${kind} ${organisation_id}`;
  const known = new Set(turns.map(({ job }) => keyOf(job)));
  const due = (await dueJobs(pool, kinds)).filter((job) => !known.has(keyOf(job)));
  // A job that arrives later is not owed the time that the others have used before.
  const usedMs = turns.reduce((least, turn) => Math.min(least, turn.usedMs), turns[0]?.usedMs ?? 0);
  const room = jobLimits.jobsPerRound - turns.length;
  turns.push(...due.slice(0, room).map((job) => ({ job, readyMs: 0, usedMs })));
  return turns.length === jobLimits.jobsPerRound;
}

/** Returns false if there is nothing to do at the moment. For tests, which decide what happens between two steps. */
export async function takeStep(pool: Pool, kind: JobKind, organisationId: string): Promise<boolean> {
  const find = async () => (await kind.find(pool)).filter((one) => one === organisationId);
  await addJobs(pool, { ...kind, find });
  const { rows } = await pool.query<Job>(
    `select ${jobColumns} from jobs where organisation_id = $1 and kind = $2`,
    [organisationId, kind.name],
  );
  const [job] = rows;
  if (!job) return false;
  try {
    return (await runStep(pool, kind, job, undefined)) !== job;
  } catch (error) {
    if (error instanceof TakenByAnother) return true;
    throw error;
  }
}

/**
 * Waits until a turn is ready or the round is over. Returns the turn that has used the least time, if possible a ready
 * one.
 */
async function nextTurn(turns: Turn[], { leftMs, stopping }: Round): Promise<Turn> {
  const isReady = ({ readyMs }: Turn) => readyMs <= performance.now();
  if (!turns.some(isReady)) {
    const firstMs = Math.min(...turns.map(({ readyMs }) => readyMs));
    const options = { ...(stopping && { signal: stopping }) };
    const pauseMs = Math.min(leftMs, Math.max(0, firstMs - performance.now()));
    await sleep(pauseMs, undefined, options).catch(() => {});
  }
  const ready = turns.filter(isReady);
  const next = (ready.length > 0 ? ready : turns).reduce((one, other) =>
    other.usedMs < one.usedMs ? other : one,
  );
  turns.splice(turns.indexOf(next), 1);
  return next;
}

/**
 * Jobs begin at random turns, so that a process that stalls in a job cannot take a step of the organisation's next one.
 */
async function addJobs(pool: Pool, { name, first, find }: JobKind): Promise<void> {
  const organisationIds = await find(pool);
  if (organisationIds.length === 0) return;
  await pool.query({
    text: `
      insert into jobs (organisation_id, kind, step, turn, not_before, failures, since)
      select i.organisation_id, $2, $3, $5::bigint, $4::timestamptz, 0, $4::timestamptz
      from unnest($1::uuid[]) as i(organisation_id) on conflict do nothing`,
    values: [organisationIds, name, first, await databaseTime(pool), randomInt(2 ** 47)],
  });
}

/** In random order, because one of the jobs may use up a whole round. */
async function dueJobs(pool: Pool, kinds: readonly JobKind[]): Promise<Job[]> {
  const { rows } = await pool.query<Job>(
    `select ${jobColumns} from jobs
     where kind = any ($1::text[]) and not_before <= now() order by random() limit ${jobLimits.jobsPerRound}`,
    [kinds.map(({ name }) => name)],
  );
  return rows;
}

/** Returns the job at its new place, the same job if it still waits, or undefined if it has ended. */
async function runStep(
  pool: Pool,
  kind: JobKind,
  job: Job,
  stopping: AbortSignal | undefined,
): Promise<Job | undefined> {
  const step: Step<string> | undefined = kind.steps[job.step];
  // A step that this release does not know was saved by another release, which continues with it.
  if (!step) throw new TakenByAnother();
  const place: Place = {
    organisationId: job.organisation_id,
    position: job.position,
    lock: (client) => lockJob(client, job),
  };
  if ('work' in step)
    return storeInTransaction(pool, async (client) => {
      await lockJob(client, job);
      const { next, done = [] } = await step.work(client, place);
      return { result: await save(client, job, next), done };
    });
  const next = 'wait' in step ? await step.wait(pool, place) : await step.call(pool, place, stopping);
  if (next === undefined) return job;
  return storeInTransaction(pool, async (client) => {
    await lockJob(client, job);
    return { result: await save(client, job, next), done: [] };
  });
}

async function lockJob(client: Client, { organisation_id, kind, turn }: Job): Promise<void> {
  const { rows } = await client.query<{ turn: string }>({
    name: 'lock job',
    text: 'select turn from jobs where organisation_id = $1 and kind = $2 for update',
    values: [organisation_id, kind],
  });
  if (rows[0]?.turn !== turn) throw new TakenByAnother();
}

async function save(client: Client, job: Job, next: Next<string>): Promise<Job | undefined> {
  const { organisation_id, kind } = job;
  if (next === 'ended') {
    const end = {
      name: 'end job',
      text: 'delete from jobs where organisation_id = $1 and kind = $2',
      values: [organisation_id, kind],
    };
    await queryRows(client, end, 1);
    return undefined;
  }
  const { step, position = null } = next;
  const turn = String(BigInt(job.turn) + 1n);
  const move = {
    name: 'move job',
    text: `
      update jobs set step = $3, position = $4, turn = $5, failures = 0 where organisation_id = $1 and kind = $2`,
    values: [organisation_id, kind, step, position === null ? null : JSON.stringify(position), turn],
  };
  await queryRows(client, move, 1);
  return { organisation_id, kind, step, position, turn };
}

async function pauseJob(pool: Pool, { organisation_id, kind, turn }: Job): Promise<void> {
  const { firstPauseMs, longestPauseMs } = jobLimits;
  await pool.query({
    text: `
      update jobs set failures = failures + 1,
        not_before = to_timestamp(($4::float8 + least($5::float8 * 2 ^ least(failures, 20), $6::float8)) / 1000)
      where organisation_id = $1 and kind = $2 and turn = $3`,
    values: [organisation_id, kind, turn, (await databaseTime(pool)).getTime(), firstPauseMs, longestPauseMs],
  });
}
