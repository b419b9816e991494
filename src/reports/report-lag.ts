import type { Config } from '../config.ts';
import type { Pool } from '../postgres/pool.ts';
import { msOfUuidV7 } from '../registry/uuid-v7.ts';
import { organisationsWithReport } from './report-switch.ts';

/**
 * Returns the age of the oldest change in the log that a report has not counted yet, over all organisations whose
 * report is on. Returns 0 if all changes are counted. Numbers have no gaps, so an organisation's oldest uncounted
 * change is found by its number. A report walks the tables only if changes were dropped from the log uncounted, so the
 * lag of such a report is at least the length of the log.
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
