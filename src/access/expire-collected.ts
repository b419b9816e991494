import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';

/**
 * Deletes the collected records of requests that were done before the given time, in transactions of limited size. The
 * requests and their counts are kept.
 */
export async function expireCollected(pool: Pool, doneBefore: Date, stopping?: AbortSignal): Promise<void> {
  const { rows } = await pool.query<{ organisation_id: string; access_request_id: string }>(
    `select organisation_id, access_request_id from access_requests where state = 'done' and done_at < $1`,
    [doneBefore],
  );
  for (const { organisation_id, access_request_id } of rows) {
    let gone: number;
    do {
      if (stopping?.aborted) return;
      const { rowCount } = await pool.query(
        `delete from access_request_records r using (
           select type, id from access_request_records
           where organisation_id = $1 and access_request_id = $2 order by type, id limit ${limits.purgeRowsMax}) as old
         where r.organisation_id = $1 and r.access_request_id = $2 and r.type = old.type and r.id = old.id`,
        [organisation_id, access_request_id],
      );
      gone = rowCount ?? 0;
    } while (gone === limits.purgeRowsMax);
    await pool.query(
      `update access_requests set state = 'expired' where organisation_id = $1 and access_request_id = $2 and not exists (
         select from access_request_records where organisation_id = $1 and access_request_id = $2)`,
      [organisation_id, access_request_id],
    );
  }
}
