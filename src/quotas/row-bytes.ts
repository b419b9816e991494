import type { Pool } from '../postgres/pool.ts';
import { tableOf } from '../records/tables.ts';
import type { ResourceType } from '../registry/resources.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { quotaLimits } from './limits.ts';

export const collectedType = 'access-requests';

const otherTables: Readonly<Record<string, { readonly name: string; readonly id: string }>> = {
  interactions: { name: 'interactions', id: 'interaction_id' },
  [collectedType]: { name: 'access_request_records', id: 'access_request_id' },
};

/** With the row header but without indexes. Of more than 1,000 rows, 250 are sampled after each of four random ids. */
export async function sampleRowBytes(
  pool: Pool,
  organisationId: string,
  type: string,
  records: number,
): Promise<number> {
  const { name, id } = otherTables[type] ?? tableOf(type as ResourceType);
  const isSmall = records <= quotaLimits.rowsSampled;
  const starts = isSmall ? [firstUuid] : await randomIds(pool, organisationId, name, id);
  let [rows, bytes] = [0, 0];
  for (const start of starts) {
    // The limit is a literal, because PostgreSQL assumes that an unknown limit returns a tenth of all rows.
    const { rows: found } = await pool.query<{ rows: number; bytes: number }>(
      `select count(*)::integer as rows, coalesce(sum(pg_column_size(r)), 0)::float8 as bytes
       from (
         select * from ${name} where organisation_id = $1 and ${id} >= $2 order by ${id}
         limit ${Math.ceil(quotaLimits.rowsSampled / starts.length)}) as r`,
      [organisationId, start],
    );
    rows += found[0]?.rows ?? 0;
    bytes += found[0]?.bytes ?? 0;
  }
  return rows === 0 ? 0 : bytes / rows;
}

/** Ids may be random, or may be based on time and therefore close together. */
async function randomIds(pool: Pool, organisationId: string, name: string, id: string): Promise<string[]> {
  const ends: bigint[] = [];
  for (const order of ['', 'desc']) {
    const { rows } = await pool.query<{ id: string }>(
      `select ${id} as id from ${name} where organisation_id = $1 order by ${id} ${order} limit 1`,
      [organisationId],
    );
    ends.push(BigInt(`0x${(rows[0]?.id ?? firstUuid).replaceAll('-', '')}`));
  }
  const [smallest = 0n, largest = 0n] = ends;
  const parts = 2n ** 32n;
  return Array.from({ length: quotaLimits.samplePlaces }, () => {
    const part = BigInt(Math.floor(Math.random() * Number(parts)));
    return uuidOf(smallest + ((largest - smallest) * part) / parts);
  });
}

function uuidOf(number: bigint): string {
  return number
    .toString(16)
    .padStart(32, '0')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
