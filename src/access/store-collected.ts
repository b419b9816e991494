import { withoutMentioned } from '../people/read-texts.ts';
import type { Client } from '../postgres/pool.ts';
import { beginAgainUnless, queryRow, queryRows } from '../postgres/transactions.ts';
import type { CollectedRecord, Collection } from './read-about.ts';

/**
 * Leaves out records of people who are or were erased, and their ids in interactions of others. The requests are locked
 * first, so that one that is cancelled meanwhile gets no records after maintenance has deleted them.
 */
export async function storeCollected(
  client: Client,
  { organisationId, hiddenAmong }: Collection,
  type: string,
  found: readonly CollectedRecord[],
): Promise<void> {
  const hidden = await hiddenAmong(found.flatMap(({ people }) => people));
  const visible = found.flatMap((one) =>
    one.people.some((id) => hidden.has(id)) ? (withoutMentioned(type, one, hidden) ?? []) : one,
  );
  if (visible.length === 0) return;
  const running = await lockRunning(client, organisationId);
  const copies = visible.flatMap(({ requests, ...one }) =>
    requests.filter((request) => running.has(request)).map((request) => ({ ...one, request })),
  );
  for (const [request, of] of Map.groupBy(copies, (one) => one.request)) {
    const byId = new Map(of.map((one) => [one.id, one]));
    const ids = [...byId.keys()];
    const { rowCount } = await client.query(
      `insert into access_request_records (organisation_id, access_request_id, type, id, record, people)
       select o.organisation_id, $2::uuid, $3::text, i.id, i.record, i.people
       from tenants o cross join unnest($4::text[], $5::text[], $6::jsonb[]) as i(id, record, people)
       where o.organisation_id = $1 on conflict do nothing`,
      [
        organisationId,
        request,
        type,
        ids,
        [...byId.values()].map(({ record }) => record),
        [...byId.values()].map(({ people }) => JSON.stringify([...new Set(people)])),
      ],
    );
    if (rowCount !== ids.length) await beginAgainUnlessStored(client, organisationId, request, type, ids);
    const text = `
      update access_requests
      set records = jsonb_set(records, array[$3::text], (coalesce((records->>$3)::bigint, 0) + $4::bigint)::text::jsonb)
      where organisation_id = $1 and access_request_id = $2`;
    await queryRows(client, { text, values: [organisationId, request, type, rowCount] }, 1);
  }
}

/** One that was cancelled meanwhile is not returned. */
export async function lockRunning(client: Client, organisationId: string): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ id: string }>({
    name: 'lock running access requests',
    text: `
      select access_request_id as id from access_requests
      where organisation_id = $1 and state = 'collecting' order by access_request_id for update`,
    values: [organisationId],
  });
  return new Set(rows.map(({ id }) => id));
}

/**
 * An earlier step may have stored some of the records, because an Idempotency-Key can occur in several tables, and a
 * user in interactions of several steps.
 */
async function beginAgainUnlessStored(
  client: Client,
  organisationId: string,
  request: string,
  type: string,
  ids: readonly string[],
): Promise<void> {
  const { count } = await queryRow<{ count: number }>(client, {
    text: `
      select count(*)::integer as count from access_request_records
      where organisation_id = $1 and access_request_id = $2 and type = $3 and id = any ($4::text[])`,
    values: [organisationId, request, type, ids],
  });
  beginAgainUnless(count === ids.length, 'records of an access request were not stored');
}
