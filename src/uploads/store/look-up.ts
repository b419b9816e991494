import { limits } from '../../limits.ts';
import { queryRow } from '../../postgres/transactions.ts';
import { exists } from '../../records/tables.ts';
import { perType, referencesOf } from '../../registry/resources.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import type { Target } from './compare.ts';

interface LookedUp {
  readonly missing: readonly ReadonlySet<string>[];
  /** According to a sample. */
  readonly manyStored: boolean;
  readonly rejectedIds: RejectedIds;
  readonly suppressionsVersion: number;
}

export type RejectedIds = ReadonlySet<string> | 'many';

/**
 * One statement for missing references, a sample of stored ids, rejected records, and erasures. Looking up every id
 * would cost a third of the throughput for new records, because PostgreSQL looks them up again when it inserts them.
 * Returns a row only if the organisation exists.
 */
const statement = perType((type) => {
  const references = referencesOf(type);
  const missing = references.map(
    (reference, at) => `
      (select string_agg(i.id::text, ',') from unnest($${at + 3}::uuid[]) as i(id)
       where not ${exists(reference.type, 'i.id')}) as missing_${at},`,
  );
  return {
    name: `look-up ${type}`,
    text: `
      select ${missing.join('')}
      4 * (select count(*) from unnest($2::uuid[]) as i(id) where ${exists(type, 'i.id')})
        > cardinality($2::uuid[]) as many_stored,
      (select string_agg(r.record_id::text, ',') from (
         select r.record_id from rejections r
         where r.organisation_id = $1 and r.type = '${type}' and r.record_id is not null
         limit ${limits.fewRejectionsMax + 1}) as r) as rejected,
      o.suppressions_version
      from tenants o where o.organisation_id = $1`,
  };
});

export async function lookUp(
  { client, organisationId, type }: Target,
  { sample, referenced }: CheckedBatch,
): Promise<LookedUp> {
  const values = [organisationId, sample, ...referenced];
  const row = await queryRow<Record<string, unknown>>(client, { ...statement(type), values });
  const rejectedIds = setOf(row.rejected);
  return {
    missing: referenced.map((_, at) => setOf(row[`missing_${at}`])),
    manyStored: row.many_stored === true,
    rejectedIds: rejectedIds.size > limits.fewRejectionsMax ? 'many' : rejectedIds,
    suppressionsVersion: row.suppressions_version as number,
  };
}

function setOf(listed: unknown): ReadonlySet<string> {
  return new Set(typeof listed === 'string' ? listed.split(',') : []);
}
