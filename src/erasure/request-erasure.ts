import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import {
  beginAgainUnless,
  currentDatabaseTime,
  inTransaction,
  queryRow,
  retryConflicts,
} from '../postgres/transactions.ts';
import { uuidV7At } from '../registry/uuid-v7.ts';
import type { IdHasher } from '../suppression/suppression-key.ts';
import { addIds, hashSlowly, nextVersion, waitForVersions } from './add-ids.ts';
import { type Erasure, type ErasureMode, findErasure } from './find-erasures.ts';

export interface ErasureRequest {
  readonly organisationId: string;
  readonly keyId: string;
  readonly mode: ErasureMode;
  readonly customerIds: readonly string[];
  readonly userIds: readonly string[];
}

interface Requested {
  readonly erasure: Erasure;
  /** Customers that are not stored. Their ids are suppressed anyway. */
  readonly unknown: readonly string[];
}

/**
 * Once this has committed, the ids hide these people's rows from every reader, and the new suppression version makes
 * every writer check for them. Maintenance deletes the rows later.
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

interface Customer {
  readonly customer_id: string;
  readonly user_id: string;
}

function storeRequest(pool: Pool, request: ErasureRequest, hasher: IdHasher): Promise<Requested> {
  const { organisationId, keyId, mode, customerIds, userIds } = request;
  return retryConflicts(async () => {
    // Hashing takes time, and the transaction locks out the organisation's other requests.
    const expected = await namedCustomers(pool, request);
    const ids = new Set([...customerIds, ...userIds, ...expected.map(({ user_id }) => user_id)]);
    const hashes = await hashSlowly(
      hasher,
      [...ids].map((id) => ({ id })),
    );
    return inTransaction(pool, async (client) => {
      const version = await nextVersion(client, organisationId);
      // Not earlier: a run of `rewriting` that begins in the meantime could miss user ids that are stored until now.
      const erasureId = uuidV7At(await currentDatabaseTime(client));
      const hashed = hashes.map((one) => ({ ...one, erasureId }));
      const customers = await namedCustomers(client, request);
      beginAgainUnless(
        JSON.stringify(customers) === JSON.stringify(expected),
        'customers were changed while their ids were hashed',
      );
      await refuseTooMany(client, organisationId, ids.size);
      await client.query({
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
      });
      // A cluster does not format times in `returning`.
      const erasure = await findErasure(client, organisationId, erasureId);
      if (!erasure) throw new Error('the erasure that was just added is missing');
      await addIds(client, organisationId, version, hashed);
      const known = new Set(customers.map(({ customer_id }) => customer_id));
      return { erasure, unknown: customerIds.filter((id) => !known.has(id)) };
    });
  });
}

async function namedCustomers(
  db: Pick<Pool, 'query'>,
  { organisationId, customerIds }: ErasureRequest,
): Promise<Customer[]> {
  const { rows } = await db.query<Customer>({
    name: 'customers to erase',
    text: `
      select customer_id, user_id from customers
      where organisation_id = $1 and customer_id = any ($2::uuid[]) order by customer_id`,
    values: [organisationId, customerIds],
  });
  return rows;
}

/** Everything that is read has to be compared with the people who are waiting to be erased. */
async function refuseTooMany(client: Client, organisationId: string, added: number): Promise<void> {
  const { open } = await queryRow<{ open: number }>(client, {
    name: 'count open ids',
    text: `
      select count(*)::integer as open from (
        select from erasure_ids where organisation_id = $1 limit ${limits.openErasureIdsMax}) as i`,
    values: [organisationId],
  });
  if (open + added > limits.openErasureIdsMax) throw new RequestError('too_many_erasures');
}
