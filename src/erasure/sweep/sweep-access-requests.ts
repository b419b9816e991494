import { limits } from '../../limits.ts';
import type { Client } from '../../postgres/pool.ts';
import { queryRows } from '../../postgres/transactions.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import type { Step } from './sweep-step.ts';

interface Collected {
  readonly access_request_id: string;
  readonly type: string;
  readonly id: string;
  readonly people: readonly string[];
}

/** An access request, and the number of its records by type. */
interface Counted {
  readonly access_request_id: string;
  readonly records: Readonly<Record<string, number>>;
}

/**
 * Deletes the records that access requests have collected about the people being erased. No new records about them are
 * collected once the fences have been passed, because access requests skip everyone who is suppressed or hidden.
 */
export const forgetCollected: Step =
  async (_, { organisationId, ids }, from) =>
  async (client) => {
    if (from === null)
      await client.query(
        'delete from access_request_ids where organisation_id = $1 and id = any ($2::text[])',
        [organisationId, [...ids.keys()]],
      );
    const { rows } = await client.query<Collected>(
      `select access_request_id, type, id, people from access_request_records
       where organisation_id = $1 and (access_request_id, type, id) > ($2, $3, $4)
       order by access_request_id, type, id limit ${limits.erasureTextsPerStep}`,
      [organisationId, ...(from === null ? [firstUuid, '', ''] : JSON.parse(from))],
    );
    const found = rows.filter(({ people }) => people.some((id) => ids.has(id)));
    if (found.length > 0) await forget(client, organisationId, found);
    const last = rows.length === limits.erasureTextsPerStep ? rows.at(-1) : undefined;
    return {
      done: [],
      rows: found.map(({ people }) => ids.get(people.find((id) => ids.has(id)) ?? '') as string),
      after: last ? JSON.stringify([last.access_request_id, last.type, last.id]) : null,
    };
  };

async function forget(client: Client, organisationId: string, found: readonly Collected[]): Promise<void> {
  const requests = [...new Set(found.map(({ access_request_id }) => access_request_id))];
  const lock = {
    text: `
      select access_request_id, records from access_requests
      where organisation_id = $1 and access_request_id = any ($2::uuid[])
      order by access_request_id for update`,
    values: [organisationId, requests],
  };
  // The rows are locked first, and in the same order as during collection, to avoid deadlocks.
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
  // Subtract the deleted records instead of counting all records again. A request can have millions of records, but a
  // step deletes only a few.
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
