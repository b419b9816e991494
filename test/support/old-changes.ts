import type pg from 'pg';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';

/** Creates the change log table for a past day, with one unnumbered change per organisation. Returns the table's name. */
export async function addOldChanges(
  client: Pick<pg.Client, 'query'>,
  organisationIds: readonly string[],
  daysAgo: number,
): Promise<string> {
  const dayMs = 86_400_000;
  const startMs = Math.floor(Date.now() / dayMs - daysAgo) * dayMs;
  const name = `changes_${new Date(startMs).toISOString().slice(0, 10).replaceAll('-', '_')}`;
  await client.query(
    `create table ${name} partition of changes
     for values from ('${uuidFloor(startMs)}') to ('${uuidFloor(startMs + dayMs)}')`,
  );
  for (const organisationId of organisationIds)
    await client.query(
      `insert into changes (organisation_id, change_id, type, size, ids) values ($1, $2, 'tags', 1, array[$1::uuid])`,
      [organisationId, uuidFloor(startMs + dayMs / 2)],
    );
  return name;
}
