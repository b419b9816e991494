import { nearShare } from '../admission/quota.ts';
import { Round } from '../jobs/round.ts';
import type { Pool } from '../postgres/pool.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { quotaLimits } from './limits.ts';
import { collectedType, sampleRowBytes } from './row-bytes.ts';

/** The average size of the organisation's rows by type, and the time of the last upload before they were measured. */
type RowSizes = Readonly<Record<string, { readonly bytes: number; readonly upload: number | null }>>;

interface Measured {
  readonly organisation_id: string;
  readonly records: number | null;
  readonly bytes: number | null;
  readonly row_sizes: RowSizes;
}

interface Measurable {
  readonly organisation_id: string;
  readonly has_bytes: boolean;
}

interface WithQuota extends Measured, Measurable {}

interface Count {
  readonly organisation_id: string;
  /** Null for all types, because only the size in bytes depends on the type. */
  readonly type: string | null;
  readonly records: number;
  /** In seconds since 1970. */
  readonly last_upload: number | null;
}

/**
 * Bytes are each type's record count times the average size of the organisation's own rows. With an average over all
 * organisations, one organisation's large rows could use up another's quota. Sizes are measured again after an upload,
 * for a limited time per run, and the next run continues.
 */
export class UsageKeeper {
  readonly #pool: Pool;
  /** In this run or the previous one. */
  #sampledUpTo = firstUuid;
  #measuredUpTo = firstUuid;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async run(round = new Round()): Promise<'more' | 'all'> {
    await forgetOthers(this.#pool);
    const sampling = new Round(quotaLimits.samplingMs, round.stopping);
    const from = this.#sampledUpTo;
    let isLate = false;
    const left = await round.repeat(async () => {
      const page = await withQuota(this.#pool, this.#measuredUpTo);
      const counted = [
        ...(await countsOf(this.#pool, page, false)),
        ...(await countsOf(this.#pool, page, true)),
        ...(await collectedOf(this.#pool, page)),
      ];
      const counts = Map.groupBy(counted, ({ organisation_id }) => organisation_id);
      const changed: Measured[] = [];
      for (const one of page) {
        const maySample = !isLate && one.organisation_id > from;
        const now = await this.#measure(one, counts.get(one.organisation_id) ?? [], maySample);
        if (now.records !== one.records || now.bytes !== one.bytes || now.row_sizes !== one.row_sizes)
          changed.push(now);
        if (maySample) this.#sampledUpTo = one.organisation_id;
        isLate ||= sampling.isOver;
      }
      if (changed.length > 0) await note(this.#pool, changed);
      const isLast = page.length < quotaLimits.quotasPerRead;
      this.#measuredUpTo = isLast ? firstUuid : (page.at(-1)?.organisation_id as string);
      return !isLast;
    });
    if (left === 'all' && !isLate) this.#sampledUpTo = firstUuid;
    return left;
  }

  async #measure(one: WithQuota, counts: readonly Count[], maySample: boolean): Promise<Measured> {
    const { organisation_id } = one;
    const records = counts.reduce((sum, count) => sum + count.records, 0);
    if (!one.has_bytes) return { organisation_id, records, bytes: null, row_sizes: one.row_sizes };
    let row_sizes = one.row_sizes;
    let bytes = 0;
    for (const { type, records: ofType, last_upload: upload } of counts) {
      if (type === null || ofType === 0) continue;
      const isOld = row_sizes[type] === undefined || row_sizes[type].upload !== upload;
      if (maySample && isOld) {
        const average = await sampleRowBytes(this.#pool, organisation_id, type, ofType);
        row_sizes = { ...row_sizes, [type]: { bytes: average, upload } };
      }
      bytes += ofType * (row_sizes[type]?.bytes ?? 0);
    }
    return { organisation_id, records, bytes: Math.round(bytes), row_sizes };
  }
}

/** A quota that is set later must not be compared with an old measurement. */
async function forgetOthers(pool: Pool): Promise<void> {
  await pool.query(`
    delete from quota_usage u where not exists (
      select from organisations o where o.organisation_id = u.organisation_id
        and (o.records_stored_max is not null or o.bytes_stored_max is not null))`);
}

/** Read separately, because in a cluster `organisations` is on the coordinator and the counts are on other nodes. */
async function withQuota(pool: Pool, after: string): Promise<WithQuota[]> {
  const { rows } = await pool.query<WithQuota>(
    `select o.organisation_id, o.bytes_stored_max is not null as has_bytes, u.records::float8 as records,
       u.bytes::float8 as bytes, coalesce(u.row_sizes, '{}') as row_sizes
     from organisations o left join quota_usage u using (organisation_id)
     where (o.records_stored_max is not null or o.bytes_stored_max is not null) and o.organisation_id > $1
     order by o.organisation_id limit ${quotaLimits.quotasPerRead}`,
    [after],
  );
  return rows;
}

/**
 * Counts the records of the organisations with a byte quota, or of those without. Includes differences that have not
 * been rolled up yet.
 */
async function countsOf(pool: Pool, page: readonly Measurable[], hasBytes: boolean): Promise<Count[]> {
  const ids = page.flatMap(({ organisation_id, has_bytes }) =>
    has_bytes === hasBytes ? organisation_id : [],
  );
  if (ids.length === 0) return [];
  const { rows } = await pool.query<Count>(
    `select organisation_id, ${hasBytes ? 'type' : 'null as type'}, sum(records)::float8 as records,
       extract(epoch from max(last_upload))::float8 as last_upload
     from (
       select organisation_id, type, records, last_upload from record_counts where organisation_id = any ($1)
       union all
       select organisation_id, type, records, last_upload from record_count_changes
       where organisation_id = any ($1)) as known
     group by organisation_id${hasBytes ? ', type' : ''}`,
    [ids],
  );
  return rows;
}

/** What access requests have collected is a type of its own. It counts until it is deleted. */
async function collectedOf(pool: Pool, page: readonly Measurable[]): Promise<Count[]> {
  const { rows } = await pool.query<Omit<Count, 'type'>>(
    `select a.organisation_id, sum(r.value::bigint)::float8 as records,
       extract(epoch from max(greatest(a.started_at, a.done_at)))::float8 as last_upload
     from access_requests a cross join lateral jsonb_each_text(a.records) as r(type, value)
     where a.organisation_id = any ($1) and a.state <> 'expired'
     group by a.organisation_id`,
    [page.map(({ organisation_id }) => organisation_id)],
  );
  return rows.map((row) => ({ ...row, type: collectedType }));
}

async function note(pool: Pool, measured: readonly Measured[]): Promise<void> {
  await pool.query('select note_quota_usage($1, $2, $3, $4)', [
    measured.map(({ organisation_id }) => organisation_id),
    measured.map(({ records }) => records),
    measured.map(({ bytes }) => bytes),
    measured.map(({ row_sizes }) => JSON.stringify(row_sizes)),
  ]);
}

interface StoredOfType {
  readonly type: string;
  readonly records: number;
  readonly bytes: number;
}

/** Measures an organisation's records by type, whether or not it has a quota. */
export async function measureStored(pool: Pool, organisationId: string): Promise<StoredOfType[]> {
  const page = [{ organisation_id: organisationId, has_bytes: true }];
  const stored: StoredOfType[] = [];
  for (const { type, records } of [...(await countsOf(pool, page, true)), ...(await collectedOf(pool, page))])
    if (type !== null && records > 0) {
      const average = await sampleRowBytes(pool, organisationId, type, records);
      stored.push({ type, records, bytes: Math.round(records * average) });
    }
  return stored.sort((one, other) => other.bytes - one.bytes);
}

/** Organisations that have used most of a quota, and those that have used all of it. */
export async function countNearQuota(pool: Pool): Promise<{ near: number; full: number }> {
  const used = (share: number) =>
    `u.records >= ${share} * o.records_stored_max or u.bytes >= ${share} * o.bytes_stored_max`;
  const { rows } = await pool.query<{ near: number; full: number }>(
    `select count(*)::integer as near, count(*) filter (where ${used(1)})::integer as full
     from quota_usage u join organisations o using (organisation_id)
     where o.deleted_at is null and (${used(nearShare)})`,
  );
  return rows[0] ?? { near: 0, full: 0 };
}
