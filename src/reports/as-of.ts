import { isoTime } from '../postgres/iso-time.ts';
import type { Client } from '../postgres/pool.ts';

/** Everything stored before this time is counted; null while what was stored before there was a report is not yet. */
export async function asOf(client: Client, organisationId: string): Promise<string | null> {
  const { rows } = await client.query<{ as_of: string | null }>({
    name: 'report: as of',
    text: `
      select case when not exists (
        select from report_progress where organisation_id = $1 and (interactions_after is not null or transactions_after is not null)
      ) then ${isoTime('now()')} end as as_of`,
    values: [organisationId],
  });
  return rows[0]?.as_of ?? null;
}
