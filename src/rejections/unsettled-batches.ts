import { randomUUIDv7 } from 'node:crypto';
import { storeInTransaction } from '../bookkeeping/store.ts';
import { limits } from '../limits.ts';
import type { EncodedRows } from '../postgres/binary/encoded-rows.ts';
import { insertsInParts, type Write } from '../postgres/pipelined-insert.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { queryRows } from '../postgres/transactions.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { deleteSettled, type EarlierRejection, lockFound } from './rejections.ts';

/**
 * A batch of a type with many rejections does not look for those of its records: finding an id among a million costs half as
 * much as storing a record. It leaves a row with the ids, and the rejections are removed by maintenance, or by whatever needs
 * them first: a request that reads rejections, a batch in which one of the records fails, or a replay of one of them. So no
 * clock decides whether a record failed before or after it was stored.
 */
export function noteUnsettled(
  organisationId: string,
  type: UploadType,
  { count, arrays }: EncodedRows,
): readonly Write[] {
  if (count === 0) return [];
  const columns = ['organisation_id', 'type', 'batch_id', 'record_ids', 'updated'];
  return insertsInParts('unsettled_batches', columns, [[organisationId, type, randomUUIDv7(), ...arrays]]);
}

/** Settles what the committed uploads of an organisation have left, so that its rejections can be read. */
export async function settleOrganisation(pool: Pool, organisationId: string): Promise<void> {
  const { rows } = await pool.query<{ type: UploadType }>({
    name: 'unsettled types',
    text: 'select distinct type from unsettled_batches where organisation_id = $1',
    values: [organisationId],
  });
  for (const { type } of rows) while (await settleOldest(pool, organisationId, type));
}

/**
 * Settles all organisations in turn, a few batches of each at a time: none waits until another has none left. Ends at a time
 * limit, because other chores wait.
 */
export async function settleAll(pool: Pool, stopping?: AbortSignal): Promise<void> {
  const { rows } = await pool.query<{ organisation_id: string; type: UploadType }>(
    'select distinct organisation_id, type from unsettled_batches',
  );
  const deadlineMs = performance.now() + limits.settleRejectionsMs;
  for (const one of rows) {
    if (stopping?.aborted || performance.now() > deadlineMs) return;
    // The array grows while it is gone through: those that have more come again after all others.
    if (await settleOldest(pool, one.organisation_id, one.type)) rows.push(one);
  }
}

/** Settles the oldest batches of a type; returns whether there may be more. */
function settleOldest(pool: Pool, organisationId: string, type: UploadType): Promise<boolean> {
  return storeInTransaction(pool, async (client) => {
    const rejected = new Map<string, number>();
    const batchIds = await lockOldest(client, organisationId, type);
    await settle(client, organisationId, type, batchIds, rejected);
    return {
      result: batchIds.length === limits.batchesPerSettling,
      done: [{ organisationId, stored: null, rejected, receipt: null }],
    };
  });
}

/**
 * Settles the batches that stored one of the given records. Has to come after the locks on records and before those on
 * rejections, to avoid deadlocks.
 */
export async function settleBatchesOf(
  client: Client,
  organisationId: string,
  type: UploadType,
  recordIds: readonly string[],
  changes: Map<string, number>,
): Promise<void> {
  if (recordIds.length === 0) return;
  const { rows } = await client.query<{ batch_id: string }>({
    // With `is true`, PostgreSQL looks ids up in a hash table. It would compare all with all otherwise: 5,000 that failed with
    // 200,000 that are stored took more than a minute, and take 45 ms.
    name: 'lock unsettled batches of records',
    text: `
      select batch_id from unsettled_batches
      where organisation_id = $1 and type = $2
        and exists (select from unnest(record_ids) as r(id) where (r.id in (select unnest($3::uuid[]))) is true)
      order by batch_id for update`,
    values: [organisationId, type, recordIds],
  });
  const batchIds = rows.map(({ batch_id }) => batch_id);
  await settle(client, organisationId, type, batchIds, changes);
}

/** Waits for other transactions that settle the same batches: when it returns, theirs are committed. */
async function lockOldest(client: Client, organisationId: string, type: UploadType): Promise<string[]> {
  const { rows } = await client.query<{ batch_id: string }>({
    name: 'lock unsettled batches',
    text: `
      select batch_id from unsettled_batches where organisation_id = $1 and type = $2
      order by batch_id limit ${limits.batchesPerSettling} for update`,
    values: [organisationId, type],
  });
  return rows.map(({ batch_id }) => batch_id);
}

/** Deletes the rejections of records that locked batches have stored, unless of a newer version, and then the batches. */
async function settle(
  client: Client,
  organisationId: string,
  type: UploadType,
  batchIds: readonly string[],
  changes: Map<string, number>,
): Promise<void> {
  if (batchIds.length === 0) return;
  const find = () => findRejections(client, organisationId, type, batchIds);
  await deleteSettled(client, organisationId, await lockFound(client, organisationId, find), changes);
  const statement = {
    name: 'delete settled batches',
    text: 'delete from unsettled_batches where organisation_id = $1 and type = $2 and batch_id = any($3::uuid[])',
    values: [organisationId, type, batchIds],
  };
  await queryRows(client, statement, batchIds.length);
}

async function findRejections(
  client: Client,
  organisationId: string,
  type: UploadType,
  batchIds: readonly string[],
): Promise<EarlierRejection[]> {
  const { rows } = await client.query<EarlierRejection>({
    // Sorted, so that neighbours are found in the same page of the index. For `offset 0` see `findRejectionsOf`.
    text: `
      select x.rejection_id, s.id as record_id, (x.updated > s.updated) is not true as is_settled
      from (
        select r.id, r.updated
        from unsettled_batches b cross join lateral unnest(b.record_ids, b.updated) as r(id, updated)
        where b.organisation_id = $1 and b.type = $2 and b.batch_id = any($3::uuid[])
        order by r.id) as s
      cross join lateral (
        select rejection_id, updated from rejections
        where organisation_id = $1 and type = $2 and record_id = s.id offset 0) as x`,
    values: [organisationId, type, batchIds],
  });
  return rows;
}
