import { randomUUIDv7 } from 'node:crypto';
import { type Done, storeInTransaction } from '../bookkeeping/store.ts';
import { type JobKind, jobKind } from '../jobs/job.ts';
import { limits } from '../limits.ts';
import { ArrayWriter, arrayHeaderBytes, uuidArrayStride } from '../postgres/binary/array-writer.ts';
import type { EncodedRows } from '../postgres/binary/encoded-rows.ts';
import { insertsInParts, type Write } from '../postgres/pipelined-insert.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { queryRows } from '../postgres/transactions.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { lastUuid } from '../registry/uuid-v7.ts';
import { deleteSettled, type EarlierRejection, lockFound } from './rejections.ts';

/**
 * A batch of a type with many rejections does not look for the rejections of its records, because finding an id among a
 * million costs half as much as storing a record. Instead it adds a row with the ids. Maintenance removes the
 * rejections later. They are removed earlier if a request reads rejections, if one of the records fails in another
 * batch, or if one of them is replayed. This way, no clock is needed to tell whether a record failed before or after it
 * was stored.
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

/** Afterwards, the rejections can be read. */
export async function settleOrganisation(pool: Pool, organisationId: string): Promise<void> {
  const newest = await newestUnsettled(pool, organisationId);
  if (newest === undefined) return;
  const settleSome = () =>
    storeInTransaction(pool, async (client) => {
      const { done, isSettled } = await settleUpTo(client, organisationId, newest);
      return { result: isSettled, done };
    });
  while (!(await settleSome()));
}

export async function newestUnsettled(
  client: Pick<Pool, 'query'>,
  organisationId: string,
): Promise<string | undefined> {
  const { rows } = await client.query<{ batch_id: string }>({
    name: 'newest unsettled batch',
    text: 'select batch_id from unsettled_batches where organisation_id = $1 order by batch_id desc limit 1',
    values: [organisationId],
  });
  return rows[0]?.batch_id;
}

/** Settles some of the batches up to this one. */
export async function settleUpTo(
  client: Client,
  organisationId: string,
  batchId: string,
): Promise<{ readonly done: readonly Done[]; readonly isSettled: boolean }> {
  const { rows } = await client.query<{ type: UploadType }>({
    name: 'next type to settle',
    text: 'select type from unsettled_batches where organisation_id = $1 and batch_id <= $2 order by type limit 1',
    values: [organisationId, batchId],
  });
  const [next] = rows;
  if (!next) return { done: [], isSettled: true };
  const rejected = new Map<string, number>();
  const batchIds = await lockOldest(client, organisationId, next.type);
  await settle(client, organisationId, next.type, batchIds, rejected);
  return { done: [{ organisationId, stored: null, rejected, receipt: null }], isSettled: false };
}

export const settling: JobKind = jobKind<'settle'>({
  name: 'settling',
  first: 'settle',
  async find(pool) {
    // An organisation that is being removed no longer has a row in `tenants`.
    const { rows } = await pool.query<{ organisation_id: string }>(
      `select distinct b.organisation_id from unsettled_batches b
       join tenants o on o.organisation_id = b.organisation_id`,
    );
    return rows.map(({ organisation_id }) => organisation_id);
  },
  steps: {
    settle: {
      async work(client, { organisationId }) {
        const { done, isSettled } = await settleUpTo(client, organisationId, lastUuid);
        return { next: isSettled ? 'ended' : { step: 'settle' }, done };
      },
    },
  },
});

/** Must run after records are locked and before rejections are locked, to avoid deadlocks. */
export async function settleBatchesOf(
  client: Client,
  organisationId: string,
  type: UploadType,
  recordIds: readonly string[],
  changes: Map<string, number>,
): Promise<void> {
  if (recordIds.length === 0) return;
  const { rows } = await client.query<{ batch_id: string }>({
    // With `is true`, PostgreSQL looks up ids in a hash table. Without it, PostgreSQL would compare each failed id with
    // each stored id: with 5,000 failed and 200,000 stored ids, that took more than a minute instead of 45 ms.
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

/** Waits until other transactions that are settling the same batches have committed. */
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

/** Keeps a rejection if the rejected version is newer. */
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
    // The ids are sorted, so that neighbouring ids are on the same index page. A comment in `findRejectionsOf` explains
    // the `offset 0`.
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

const slotCount = 2 ** Math.ceil(Math.log2(limits.recordsPerBatch * 2));

/** Distinct UUIDs in their original order. A `Set` would need strings, but bodies are read without creating strings. */
export class UuidSet {
  readonly #ids = new ArrayWriter('uuid');
  /** A hash table with linear probing. Each slot contains the position of an id plus one, or 0 if the slot is empty. */
  readonly #slots = new Int16Array(slotCount);

  add(view: DataView, at: number): void {
    const a = view.getInt32(at);
    const b = view.getInt32(at + 4);
    const c = view.getInt32(at + 8);
    const d = view.getInt32(at + 12);
    const slots = this.#slots;
    const ids = this.#ids.view;
    let slot = hash(a, b, c, d) & (slotCount - 1);
    for (; slots[slot] !== 0; slot = (slot + 1) & (slotCount - 1)) {
      const id = arrayHeaderBytes + ((slots[slot] as number) - 1) * uuidArrayStride + 4;
      if (
        ids.getInt32(id) === a &&
        ids.getInt32(id + 4) === b &&
        ids.getInt32(id + 8) === c &&
        ids.getInt32(id + 12) === d
      )
        return;
    }
    this.#ids.appendWords(a, b, c, d);
    slots[slot] = this.#ids.count;
  }

  get size(): number {
    return this.#ids.count;
  }

  clear(): void {
    this.#ids.clear();
    this.#slots.fill(0);
  }

  /** Valid until the next id is added. */
  finish(): Buffer {
    return this.#ids.finish();
  }
}

function hash(a: number, b: number, c: number, d: number): number {
  const mixed =
    Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b) ^ Math.imul(c, 0xc2b2ae35) ^ Math.imul(d, 0x27d4eb2f);
  return mixed ^ (mixed >>> 15);
}
