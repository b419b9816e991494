import { collectRecords } from '../../src/access/collect-records.ts';
import { erasePeople } from '../../src/erasure/sweep/erase-people.ts';
import { rewriting } from '../../src/erasure/sweep/rewrite-user-ids.ts';
import type { JobKind } from '../../src/jobs/job.ts';
import { Round } from '../../src/jobs/round.ts';
import { runJobs, takeStep } from '../../src/jobs/run-jobs.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import { settling } from '../../src/rejections/unsettled-batches.ts';
import { removeOrganisations } from '../../src/removal/remove-organisations.ts';
import { dropExpiredDays, expireRows } from '../../src/retention/expire-rows.ts';
import { purgeRejections } from '../../src/retention/purge-rejections.ts';
import type { Suppressions } from '../../src/suppression/suppressions.ts';

/** Runs the work of all organisations until none is left or all of it waits. */
async function runAll(pool: Pool, kind: JobKind): Promise<void> {
  await runJobs(pool, [kind], new Round(10_000));
}

/** User ids are rewritten first, as for organisations that were created less than a day ago. */
export async function sweepErasures(pool: Pool, suppressions: Suppressions): Promise<void> {
  await runAll(pool, rewriting);
  await runAll(pool, erasePeople(suppressions));
}

/** Takes one step of an organisation's sweep. Returns false if there is nothing to do at the moment. */
export async function sweepStep(
  pool: Pool,
  organisationId: string,
  suppressions: Suppressions,
): Promise<boolean> {
  const isRewritten = await rewriteFor(pool, organisationId);
  return (await takeStep(pool, erasePeople(suppressions), organisationId)) && isRewritten;
}

/** An organisation older than a day: its user ids are not rewritten again before each sweep. */
export async function endRewriting(pool: Pool, organisationId: string): Promise<void> {
  const text = 'update tenants set user_ids_rewritten_from = null where organisation_id = $1';
  await pool.query(text, [organisationId]);
}

/** Returns false if rewriting waits for running transactions, and most other work for it. */
async function rewriteFor(pool: Pool, organisationId: string): Promise<boolean> {
  while (await takeStep(pool, rewriting, organisationId));
  const text = 'select from jobs where organisation_id = $1 and kind = $2';
  return (await pool.query(text, [organisationId, rewriting.name])).rowCount === 0;
}

export async function collectForAll(pool: Pool, suppressions: Suppressions): Promise<void> {
  await runAll(pool, rewriting);
  await runAll(pool, collectRecords(suppressions));
}

export async function collectPart(
  pool: Pool,
  organisationId: string,
  suppressions: Suppressions,
): Promise<boolean> {
  const isRewritten = await rewriteFor(pool, organisationId);
  return (await takeStep(pool, collectRecords(suppressions), organisationId)) && isRewritten;
}

export function settleAll(pool: Pool): Promise<void> {
  return runAll(pool, settling);
}

/** Deletes what has expired at a time, or by now. Returns 'more' if something is left when the time is up. */
export async function expireAll(
  pool: Pool,
  at: Date | null = null,
  roundMs = 60_000,
): Promise<'more' | 'all'> {
  await dropExpiredDays(pool, undefined, at);
  return runJobs(pool, [expireRows(at)], new Round(roundMs));
}

/** Removes organisations that were deleted more than 30 days ago, without pauses, until all of them wait or are gone. */
export async function removeDeleted(pool: Pool, stopping?: AbortSignal): Promise<void> {
  const removal = { ...removeOrganisations({ deletedOrganisationsKeptDays: 30 }), pauseFactor: 0 };
  await runJobs(pool, [removal], new Round(60_000, stopping));
}

export function purgeAll(pool: Pool, daysKept: number): Promise<void> {
  return runAll(pool, purgeRejections(daysKept));
}
