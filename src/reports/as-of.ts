// reports/: revenue from recommendations, counted in steps from the change log (see docs/uploading/recommendations.md).

import { isoTime } from '../postgres/iso-time.ts';
import type { Client } from '../postgres/pool.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';

/**
 * Returns a time such that everything that was committed before it is counted. This is the time of the oldest uncounted
 * change, or the start of the transaction, which is before its snapshot. Returns null until the report has counted
 * everything that was stored before the log existed or was dropped from the log uncounted.
 */
export async function asOf(client: Client, organisationId: string): Promise<string | null> {
  const oldest = (condition: string, order: string) => `
    (select change_id from changes where organisation_id = $1 and ${condition} order by ${order} limit 1)`;
  const counted = `(select number from report_progress where organisation_id = $1)`;
  const { rows } = await client.query<{
    is_walking: boolean;
    unnumbered: string | null;
    uncounted: string | null;
    begun: string;
  }>(
    `select exists (
         select from report_progress
         where organisation_id = $1 and (interactions_after is not null or transactions_after is not null))
         or exists (
           select from change_counters where organisation_id = $1 and forgotten_number > coalesce(${counted}, 0)) as is_walking,
       ${oldest('number is null', 'change_id')} as unnumbered,
       ${oldest(`number > coalesce(${counted}, 0)`, 'number')} as uncounted,
       ${isoTime('now()')} as begun
     from tenants where organisation_id = $1`,
    [organisationId],
  );
  const [state] = rows;
  if (!state || state.is_walking) return null;
  const uncounted = [state.unnumbered, state.uncounted].filter((id) => id !== null).map(timeOfUuidV7);
  // A process whose clock was wrong may have written a change from the future.
  return [state.begun, ...uncounted].reduce((first, time) => (time < first ? time : first));
}
