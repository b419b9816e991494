import { randomUUID } from 'node:crypto';
import type pg from 'pg';

/** Creates interactions on past days, as the service would have stored them. */

export interface OldDay {
  /** The name of the day's table. */
  readonly name: string;
  readonly startMs: number;
}

const dayMs = 86_400_000;

/** Returns the smallest UUID for a millisecond. */
function floorOf(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/**
 * Creates the table for a past day. If midnight has passed since the template of the databases was created, the table for
 * three days ago exists already.
 */
export async function addOldDay(client: Pick<pg.Client, 'query'>, daysAgo: number): Promise<OldDay> {
  const startMs = Math.floor(Date.now() / dayMs - daysAgo) * dayMs;
  const name = `interactions_${new Date(startMs).toISOString().slice(0, 10).replaceAll('-', '_')}`;
  const [first, end] = [floorOf(startMs), floorOf(startMs + dayMs)];
  const { rows } = await client.query('select from interaction_partitions where name = $1', [name]);
  if (rows.length > 0) return { name, startMs };
  await client.query(
    `create table ${name} partition of interactions for values from ('${first}') to ('${end}')`,
  );
  await client.query('insert into interaction_partitions (name, first_id, end_id) values ($1, $2, $3)', [
    name,
    first,
    end,
  ]);
  return { name, startMs };
}

/** Adds interactions on a day, with their counts and change log entries. Returns their ids. */
export async function addInteractions(
  client: Pick<pg.Client, 'query'>,
  organisationId: string,
  { startMs }: Pick<OldDay, 'startMs'>,
  count: number,
  msOf: (at: number) => number = () => Math.floor(Math.random() * dayMs),
): Promise<string[]> {
  if (count === 0) return [];
  const ids = Array.from(
    { length: count },
    (_, at) => `${floorOf(startMs + msOf(at)).slice(0, 14)}7${randomUUID().slice(15)}`,
  );
  await client.query(
    `insert into interactions (organisation_id, interaction_id, interaction_type, item_type, item_id, event_timestamp, event_time)
     select $1, id, 'SHARE', 'TAG', gen_random_uuid(), '1767225600', to_timestamp(1767225600) from unnest($2::uuid[]) id`,
    [organisationId, ids],
  );
  await client.query(
    `insert into record_count_changes (organisation_id, type, records) values ($1, 'interactions', $2)`,
    [organisationId, count],
  );
  // The change is dated today, because the log may no longer include the past day.
  const changeId = `${floorOf(Date.now()).slice(0, 14)}7${randomUUID().slice(15)}`;
  await client.query(
    `insert into changes (organisation_id, change_id, type, size, ids) values ($1, $2, 'interactions', $3, $4)`,
    [organisationId, changeId, count, ids],
  );
  return ids;
}
