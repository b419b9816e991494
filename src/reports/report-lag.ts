import { beforeTomorrow } from '../changes/change-log.ts';
import type { Pool } from '../postgres/pool.ts';
import { msOfUuidV7 } from '../registry/uuid-v7.ts';
import { organisationsWithReport } from './report-switch.ts';

/**
 * The age of the oldest change in the log that no report has counted, over all organisations whose report is on; 0 if all are
 * counted. Numbers have no gaps, so the oldest one of an organisation is found by its number.
 */
export async function reportLagMs(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ oldest: string | null }>(
    `select min(u.change_id::text) as oldest
     from change_counters c
     left join report_progress p on p.organisation_id = c.organisation_id
     join changes u on u.organisation_id = c.organisation_id
       and u.number = greatest(coalesce(p.number, 0), c.forgotten_number) + 1 and u.${beforeTomorrow()}
     where c.organisation_id = any ($1::uuid[])`,
    [await organisationsWithReport(pool)],
  );
  const oldest = rows[0]?.oldest;
  return oldest ? Math.max(0, Date.now() - msOfUuidV7(oldest)) : 0;
}
