import { randomUUIDv7 } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { inBothCases } from '../people/both-cases.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction, queryRow, queryRows, retryConflicts } from '../postgres/transactions.ts';
import { isVisible } from '../records/tables.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import type { Wanted } from './collection.ts';
import { accessLimits } from './limits.ts';

export interface AccessAsked {
  readonly organisationId: string;
  readonly keyId: string;
  readonly customerIds: readonly string[];
  readonly userIds: readonly string[];
}

/** Creates an access request and returns its id. Maintenance collects the records later. */
export function requestAccess(pool: Pool, asked: AccessAsked, suppressions: Suppressions): Promise<string> {
  const { organisationId, keyId, customerIds, userIds } = asked;
  const id = randomUUIDv7();
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      await refuseTooMany(client, organisationId);
      const { rows: customers } = await client.query<{ user_id: string }>({
        name: 'users of customers',
        text: `
          select user_id from customers t
          where organisation_id = $1 and customer_id = any ($2::uuid[]) and ${isVisible('customers')}`,
        values: [organisationId, customerIds],
      });
      const statement = {
        name: 'add access request',
        text: `
          insert into access_requests (organisation_id, access_request_id, key_id, people)
          select organisation_id, $2, $3, $4 from tenants where organisation_id = $1`,
        values: [organisationId, id, keyId, customerIds.length + userIds.length],
      };
      await queryRows(client, statement, 1);
      const ids = new Set([...customerIds, ...userIds, ...customers.map(({ user_id }) => user_id)]);
      await addIds(client, { organisationId, request: id, isInferred: false }, ids, suppressions);
      return id;
    }),
  );
}

/**
 * Throws if the organisation has too many access requests. Locks the organisation's row first, so that concurrent calls
 * cannot exceed the limit together.
 */
async function refuseTooMany(client: Client, organisationId: string): Promise<void> {
  await queryRows(
    client,
    {
      name: 'lock tenant',
      text: 'select from tenants where organisation_id = $1 for no key update',
      values: [organisationId],
    },
    1,
  );
  const { open, requests, records } = await countKept(client, organisationId);
  const { requestsOpenMax, requestsKeptMax, recordsKeptMax } = accessLimits;
  if (open >= requestsOpenMax || requests >= requestsKeptMax || records >= recordsKeptMax)
    throw new RequestError('too_many_access_requests');
}

/** Counts an organisation's unfinished requests, its unexpired requests, and the records collected for them. */
export async function countKept(
  client: Pick<Client, 'query'>,
  organisationId: string,
): Promise<{ readonly open: number; readonly requests: number; readonly records: number }> {
  return queryRow(client, {
    name: 'count access requests',
    text: `
      select count(*) filter (where state <> 'done')::integer as open, count(*)::integer as requests,
        coalesce(sum((select sum(r.value::bigint) from jsonb_each_text(a.records) r)), 0)::float8 as records
      from access_requests a where organisation_id = $1 and state <> 'expired'`,
    values: [organisationId],
  });
}

/**
 * Stores the ids to look for. Skips the ids of erased people, which must not be stored anywhere. An erasure that commits
 * during this transaction waits for the transaction to end and then deletes its people's ids.
 */
export async function addIds(
  client: Client,
  { organisationId, request, isInferred }: { readonly organisationId: string } & Wanted,
  ids: ReadonlySet<string>,
  suppressions: Suppressions,
): Promise<void> {
  const erased = await suppressions.erasuresOf(client, organisationId, ids);
  const stored = [...ids].filter((id) => !erased.has(id)).flatMap(inBothCases);
  await client.query({
    name: 'add ids of access request',
    text: `
      insert into access_request_ids (organisation_id, access_request_id, id, is_inferred)
      select o.organisation_id, $2::uuid, i.id, $4::boolean from tenants o cross join unnest($3::text[]) as i(id)
      where o.organisation_id = $1 on conflict do nothing`,
    values: [organisationId, request, stored, isInferred],
  });
}
