import { RequestError } from '../errors.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import {
  databaseTime,
  inTransaction,
  queryRow,
  queryRows,
  retryConflicts,
} from '../postgres/transactions.ts';
import { isVisible } from '../records/tables.ts';
import { uuidV7At } from '../registry/uuid-v7.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import { type AccessRequest, findAccessRequest } from './find-access-requests.ts';
import { accessLimits } from './limits.ts';

interface AccessAsked {
  readonly organisationId: string;
  readonly keyId: string;
  readonly customerIds: readonly string[];
  readonly userIds: readonly string[];
}

/** Maintenance collects the records later. */
export function requestAccess(
  pool: Pool,
  asked: AccessAsked,
  suppressions: Suppressions,
): Promise<AccessRequest> {
  const { organisationId, keyId, customerIds, userIds } = asked;
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      // Runs of `rewriting` compare it with their own times.
      const id = uuidV7At(await databaseTime(client));
      const { rows: customers } = await client.query<{ user_id: string }>({
        name: 'users of customers',
        text: `
          select user_id from customers t
          where organisation_id = $1 and customer_id = any ($2::uuid[]) and ${isVisible('customers')}`,
        values: [organisationId, customerIds],
      });
      const ids = new Set([...customerIds, ...userIds, ...customers.map(({ user_id }) => user_id)]);
      // Ids are hashed before the organisation's row is locked.
      const unerased = await withoutErased(client, organisationId, ids, suppressions);
      await refuseTooMany(client, organisationId);
      const statement = {
        name: 'add access request',
        text: `
          insert into access_requests (organisation_id, access_request_id, key_id, people)
          select organisation_id, $2, $3, $4 from tenants where organisation_id = $1`,
        values: [organisationId, id, keyId, customerIds.length + userIds.length],
      };
      await queryRows(client, statement, 1);
      // A cluster does not format times in `returning`.
      const request = await findAccessRequest(client, organisationId, id);
      if (!request) throw new Error('the access request that was just added is missing');
      await addIds(client, organisationId, id, unerased);
      return request;
    }),
  );
}

/**
 * A request can be cancelled while its records are collected or can be downloaded. Maintenance deletes the records. A
 * part that is being collected ends first, because it holds the lock on the request. Returns the request, unchanged if
 * it has expired or was cancelled before.
 */
export function cancelAccess(
  pool: Pool,
  organisationId: string,
  id: string,
): Promise<AccessRequest | undefined> {
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      await client.query({
        name: 'cancel access request',
        text: `
          update access_requests set state = 'done', after = null, done_at = null, cancelled_at = $3
          where organisation_id = $1 and access_request_id = $2 and state <> 'expired' and cancelled_at is null`,
        values: [organisationId, id, new Date()],
      });
      const request = await findAccessRequest(client, organisationId, id);
      await client.query(
        'delete from access_request_ids where organisation_id = $1 and access_request_id = $2',
        [organisationId, id],
      );
      return request;
    }),
  );
}

/** Locks the organisation's row first, so that concurrent calls cannot exceed the limit together. */
async function refuseTooMany(client: Client, organisationId: string): Promise<void> {
  const lock = {
    name: 'lock tenant',
    text: 'select from tenants where organisation_id = $1 for no key update',
    values: [organisationId],
  };
  await queryRows(client, lock, 1);
  const { open, requests, records } = await countKept(client, organisationId);
  const { requestsOpenMax, requestsKeptMax, recordsKeptMax } = accessLimits;
  if (open >= requestsOpenMax || requests >= requestsKeptMax || records >= recordsKeptMax)
    throw new RequestError('too_many_access_requests');
}

/** Counts unfinished requests, unexpired requests, and the records collected for them. */
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
 * Ids of erased people must not be stored anywhere. An erasure that commits during this transaction waits for the
 * transaction to end and then deletes its people's ids.
 */
async function withoutErased(
  client: Client,
  organisationId: string,
  ids: ReadonlySet<string>,
  suppressions: Suppressions,
): Promise<string[]> {
  const erased = await suppressions.erasedAmong(client, organisationId, ids);
  return [...ids].filter((id) => !erased.has(id));
}

export async function addIds(
  client: Client,
  organisationId: string,
  request: string,
  ids: readonly string[],
): Promise<void> {
  await client.query({
    name: 'add ids of access request',
    text: `
      insert into access_request_ids (organisation_id, access_request_id, id, is_inferred)
      select o.organisation_id, $2::uuid, i.id, false from tenants o cross join unnest($3::text[]) as i(id)
      where o.organisation_id = $1 on conflict do nothing`,
    values: [organisationId, request, ids],
  });
}
