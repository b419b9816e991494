import { limits } from '../../limits.ts';
import type { Client, Pool } from '../../postgres/pool.ts';
import { queryRows } from '../../postgres/transactions.ts';
import { isUuid } from '../../registry/fields.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import type { StepResult, Sweep } from './sweep-step.ts';

/**
 * Overwrites people's ids in the change log with the nil UUID. The ids are not removed, because a cursor contains a
 * position in an entry's list of ids. Only entries about customers contain people's ids. This step runs before the
 * customers are deleted. The log entries about the deletion of customers stay until the day on which they were written is
 * dropped.
 */
export async function forgetInLog(
  pool: Pool,
  { organisationId, ids }: Sweep,
  after: string | null,
): Promise<(client: Client) => Promise<StepResult>> {
  const people = [...ids.keys()].filter(isUuid);
  const { rows } = await pool.query<{ change_id: string; has_people: boolean; erasure_id: string | null }>(
    `select change_id, ids && $3::uuid[] as has_people from changes
     where organisation_id = $1 and type = 'customers' and change_id > $2
     order by change_id limit ${limits.erasureChangesPerStep}`,
    [organisationId, after ?? firstUuid, people],
  );
  const found = rows.filter(({ has_people }) => has_people).map(({ change_id }) => change_id);
  const last = rows.length === limits.erasureChangesPerStep ? (rows.at(-1)?.change_id ?? null) : null;
  return async (client) => {
    if (found.length > 0) {
      const statement = {
        text: `
          update changes set ids = (
            select array_agg(case when i.id = any ($3::uuid[]) then '${firstUuid}'::uuid else i.id end order by i.at)
            from unnest(ids) with ordinality as i(id, at))
          where organisation_id = $1 and change_id = any ($2::uuid[])
            and change_id >= '${found[0]}' and change_id <= '${found.at(-1)}'`,
        values: [organisationId, found, people],
      };
      await queryRows(client, statement, found.length);
    }
    return { done: [], rows: [], after: last };
  };
}
