import type { Place } from '../../jobs/job.ts';
import { mapInTurns } from '../../json/map-in-turns.ts';
import { limits } from '../../limits.ts';
import { type Search, wantedAmong, wantedIds } from '../../people/people.ts';
import { type CollectedCopy, type CopyPlace, readCopies, withoutMentioned } from '../../people/read-texts.ts';
import type { Client } from '../../postgres/pool.ts';
import { queryRows } from '../../postgres/transactions.ts';
import { countErased } from './sweep-rows.ts';
import type { Swept } from './sweep-step.ts';

interface Counted {
  readonly access_request_id: string;
  readonly records: Readonly<Record<string, number>>;
}

/** Once the fences have been passed, access requests skip everyone who is suppressed or hidden. */
export async function sweepAccess(client: Client, { organisationId, position }: Place): Promise<Swept> {
  const search: Search = { organisationId, for: 'erasures' };
  const from = position as CopyPlace | null;
  if (from === null) {
    const isWanted = `exists (select from ${wantedIds(search)} and i.id = q.id offset 0)`;
    const { rowCount } = await client.query(
      `delete from access_request_ids q where q.organisation_id = $1 and ${isWanted} and q.id <= (
         select max(part.id) from (
           select q.id from access_request_ids q where q.organisation_id = $1 and ${isWanted}
           order by q.id limit ${limits.purgeRowsMax}) as part)`,
      [organisationId],
    );
    // An id can belong to several requests, so there may be more than the limit.
    if ((rowCount ?? 0) >= limits.purgeRowsMax) return { next: { step: 'access requests' } };
  }
  const { copies, next } = await readCopies(client, organisationId, from);
  const wanted = await wantedAmong(
    client,
    search,
    copies.flatMap(({ people }) => people),
  );
  const found = copies.filter(({ people }) => people.some((id) => wanted.has(id)));
  const kept = (await mapInTurns(found, (one) => withoutMentioned(one.type, one, wanted) ?? [])).flat();
  const left = new Set(kept.map(keyOf));
  const forgotten = found.filter((one) => !left.has(keyOf(one)));
  if (forgotten.length > 0) await forget(client, organisationId, forgotten);
  for (const { access_request_id, type, id, people, record } of kept) {
    const text = `update access_request_records set people = $5, record = $6
      where organisation_id = $1 and access_request_id = $2 and type = $3 and id = $4`;
    const values = [organisationId, access_request_id, type, id, JSON.stringify(people), record];
    await queryRows(client, { text, values }, 1);
  }
  const erasures = found.flatMap(
    ({ people }) => people.flatMap((id) => wanted.get(id) ?? [])[0]?.request ?? [],
  );
  await countErased(client, organisationId, 'access_requests', erasures);
  return { next: next === null ? { step: 'changes' } : { step: 'access requests', position: next } };
}

const keyOf = ({ access_request_id, type, id }: CollectedCopy) => `${access_request_id} ${type} ${id}`;

async function forget(
  client: Client,
  organisationId: string,
  found: readonly CollectedCopy[],
): Promise<void> {
  const requests = [...new Set(found.map(({ access_request_id }) => access_request_id))];
  const lock = {
    text: `
      select access_request_id, records from access_requests
      where organisation_id = $1 and access_request_id = any ($2::uuid[])
      order by access_request_id for update`,
    values: [organisationId, requests],
  };
  // In the same order as during collection, to avoid deadlocks.
  const locked = await queryRows<Counted>(client, lock, requests.length);
  const remove = {
    text: `
      delete from access_request_records r using unnest($2::uuid[], $3::text[], $4::text[]) as f(request, type, id)
      where r.organisation_id = $1 and r.access_request_id = f.request and r.type = f.type and r.id = f.id`,
    values: [
      organisationId,
      found.map(({ access_request_id }) => access_request_id),
      found.map(({ type }) => type),
      found.map(({ id }) => id),
    ],
  };
  await queryRows(client, remove, found.length);
  // A request can have millions of records, but a step deletes only a few, so they are subtracted.
  const deleted = Map.groupBy(found, (one) => `${one.access_request_id} ${one.type}`);
  for (const { access_request_id, records } of locked) {
    const left = Object.entries(records)
      .map(
        ([type, count]) =>
          [type, count - (deleted.get(`${access_request_id} ${type}`)?.length ?? 0)] as const,
      )
      .filter(([, count]) => count > 0);
    const subtract = {
      text: 'update access_requests set records = $3 where organisation_id = $1 and access_request_id = $2',
      values: [organisationId, access_request_id, Object.fromEntries(left)],
    };
    await queryRows(client, subtract, 1);
  }
}
