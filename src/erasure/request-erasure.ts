import { randomUUIDv7 } from 'node:crypto';
import { inBothCases } from '../people/both-cases.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction, queryRow, queryRows, retryConflicts } from '../postgres/transactions.ts';
import type { IdHasher } from '../suppression/suppression-key.ts';
import { waitForVersions } from './wait-for-versions.ts';

export const erasureModes = ['anonymise', 'delete'] as const;
export type ErasureMode = (typeof erasureModes)[number];

export interface ErasureRequest {
  readonly organisationId: string;
  readonly keyId: string;
  readonly mode: ErasureMode;
  readonly customerIds: readonly string[];
  readonly userIds: readonly string[];
}

export interface Requested {
  readonly erasureId: string;
  /** The requested customers that are not stored. Their ids are suppressed anyway. */
  readonly unknown: readonly string[];
}

/**
 * Starts an erasure. Once this has committed, these people are invisible: their ids hide their rows from every reader, and
 * the new suppression version makes every writer check for them. Maintenance deletes the rows later.
 */
export async function requestErasure(
  pool: Pool,
  request: ErasureRequest,
  hasher: IdHasher,
): Promise<Requested> {
  const requested = await storeRequest(pool, request, hasher);
  await waitForVersions(pool);
  return requested;
}

function storeRequest(pool: Pool, request: ErasureRequest, hasher: IdHasher): Promise<Requested> {
  const erasureId = randomUUIDv7();
  const { organisationId, keyId, mode, customerIds, userIds } = request;
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      // This must be the first statement, because it locks out the organisation's other requests until the transaction
      // ends.
      const version = await nextVersion(client, organisationId);
      const { rows: customers } = await client.query<{ customer_id: string; user_id: string }>({
        name: 'customers to erase',
        text: `
          select customer_id, user_id from customers
          where organisation_id = $1 and customer_id = any ($2::uuid[])`,
        values: [organisationId, customerIds],
      });
      const ids = new Set([...customerIds, ...userIds, ...customers.map(({ user_id }) => user_id)]);
      const statement = {
        name: 'add erasure',
        text: `
          insert into erasures (organisation_id, erasure_id, mode, key_id, people, known)
          values ($1, $2, $3, $4, $5, $6)`,
        values: [
          organisationId,
          erasureId,
          mode,
          keyId,
          customerIds.length + userIds.length,
          customers.length,
        ],
      };
      await queryRows(client, statement, 1);
      await addIds(client, { organisationId, erasureId, version }, [...ids], hasher);
      const known = new Set(customers.map(({ customer_id }) => customer_id));
      return { erasureId, unknown: customerIds.filter((id) => !known.has(id)) };
    }),
  );
}

export async function nextVersion(client: Client, organisationId: string): Promise<number> {
  const { version } = await queryRow<{ version: number }>(client, {
    name: 'next version of suppressions',
    text: `
      update tenants set suppressions_version = suppressions_version + 1 where organisation_id = $1
      returning suppressions_version as version`,
    values: [organisationId],
  });
  return version;
}

/** Hides the rows that contain these ids, and suppresses the ids from the given version on. */
export async function addIds(
  client: Client,
  { organisationId, erasureId, version }: { organisationId: string; erasureId: string; version: number },
  ids: readonly string[],
  hasher: IdHasher,
): Promise<void> {
  const hashes = ids.map((id) => hasher.hashesOf(id));
  await client.query({
    name: 'add ids of erasure',
    text: `
      insert into erasure_ids (organisation_id, erasure_id, id)
      select o.organisation_id, $2::uuid, i.id from tenants o cross join unnest($3::text[]) as i(id)
      where o.organisation_id = $1 on conflict do nothing`,
    values: [organisationId, erasureId, ids.flatMap(inBothCases)],
  });
  await client.query({
    name: 'add suppressions',
    text: `
      insert into suppressions (organisation_id, hash, filter, erasure_id, version)
      select o.organisation_id, i.hash, i.filter, $2::uuid, $3::integer
      from tenants o cross join unnest($4::bytea[], $5::bigint[]) as i(hash, filter)
      where o.organisation_id = $1 order by i.hash on conflict do nothing`,
    values: [
      organisationId,
      erasureId,
      version,
      hashes.map(({ hash }) => hash),
      hashes.map(({ filter }) => filter.toString()),
    ],
  });
}
