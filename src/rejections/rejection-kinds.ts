import { createHash } from 'node:crypto';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { queryRows } from '../postgres/transactions.ts';

/** A field is empty if its error is about the record as a whole. */
export interface Reasons {
  readonly fields: readonly string[];
  readonly codes: readonly string[];
  readonly messages: readonly string[];
}

export interface RejectionKind extends Reasons {
  readonly kind_id: string;
}

/** The id is a hash of the errors, so every process creates the same kind for them. */
export function kindOf(type: string, reasons: Reasons): RejectionKind {
  const { fields, codes, messages } = reasons;
  const hash = createHash('sha256')
    .update(JSON.stringify([type, fields, codes, messages]))
    .digest('hex');
  const kindId = hash.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5');
  return { kind_id: kindId, fields, codes, messages };
}

/**
 * Known kinds are skipped first: `on conflict` locks every existing row, so uploads that fail for the same reason would
 * queue, and could deadlock with the roll-up. The remaining kinds are inserted in id order, because other uploads may
 * be storing the same kinds.
 */
export async function storeKinds(
  client: Client,
  organisationId: string,
  type: string,
  kinds: readonly RejectionKind[],
): Promise<void> {
  const now = new Date();
  const { rows } = await client.query<{ kind_id: string }>({
    name: 'known rejection kinds',
    text: `
      select kind_id from rejection_kinds
      where organisation_id = $1 and kind_id = any($2::uuid[]) and used_at > $3`,
    values: [organisationId, kinds.map(({ kind_id }) => kind_id), new Date(now.getTime() - 3_600_000)],
  });
  const known = new Set(rows.map(({ kind_id }) => kind_id));
  const unknown = kinds.filter(({ kind_id }) => !known.has(kind_id));
  if (unknown.length === 0) return;
  const store = {
    name: 'store rejection kinds',
    text: `
      insert into rejection_kinds as t (organisation_id, kind_id, type, fields, codes, messages, used_at)
      select o.organisation_id, k.kind_id, $2, k.fields, k.codes, k.messages, $4::timestamptz
      from tenants o
      cross join json_to_recordset($3::json) as k(kind_id uuid, fields text[], codes text[], messages text[])
      where o.organisation_id = $1
      order by k.kind_id
      on conflict (organisation_id, kind_id) do update set used_at = greatest(t.used_at, excluded.used_at)`,
    values: [organisationId, type, JSON.stringify(unknown), now],
  };
  await queryRows(client, store, unknown.length);
}

export async function hasAllKinds(client: Client, organisationId: string): Promise<boolean> {
  const { rows } = await client.query<{ has_all: boolean }>({
    name: 'has all rejection kinds',
    text: `
      select count(*) = ${limits.rejectionKindsMax} as has_all from (
        select from rejection_kinds where organisation_id = $1 limit ${limits.rejectionKindsMax}) as kinds`,
    values: [organisationId],
  });
  return rows[0]?.has_all === true;
}

export function countChange(changes: Map<string, number>, kindId: string, difference: number): void {
  changes.set(kindId, (changes.get(kindId) ?? 0) + difference);
}

export interface KindFilter {
  readonly type?: string;
  readonly code?: string;
  readonly field?: string;
}

export async function listKinds(
  pool: Pool,
  organisationId: string,
  { type, code, field }: KindFilter,
): Promise<(RejectionKind & { readonly type: string; readonly count: number })[]> {
  const { rows } = await pool.query<RejectionKind & { type: string; count: string }>({
    name: 'list rejection kinds',
    text: `
      select k.kind_id, k.type, k.fields, k.codes, k.messages, k.rejections + coalesce(c.rejections, 0) as count
      from rejection_kinds k
      left join (
        select kind_id, sum(rejections) as rejections from rejection_count_changes
        where organisation_id = $1 group by kind_id) c on c.kind_id = k.kind_id
      where k.organisation_id = $1 and k.rejections + coalesce(c.rejections, 0) > 0
        and ($2::text is null or k.type = $2)
        -- If both a code and a field are given, they must match the same error.
        and (($3::text is null and $4::text is null) or exists (
          select from unnest(k.codes, k.fields) as bad(code, field)
          where bad.code = coalesce($3, bad.code) and bad.field = coalesce($4, bad.field)))
      order by count desc, k.kind_id`,
    values: [organisationId, type ?? null, code ?? null, field ?? null],
  });
  return rows.map(({ count, ...kind }) => ({ ...kind, count: Number(count) }));
}

export async function countAllRejections(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(
    `select (select coalesce(sum(rejections), 0) from rejection_kinds)
       + (select coalesce(sum(rejections), 0) from rejection_count_changes) as count`,
  );
  return Number(rows[0]?.count ?? 0);
}
