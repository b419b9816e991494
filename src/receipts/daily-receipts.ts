import { counted } from '../bookkeeping/store.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { uuidFloor } from '../registry/uuid-v7.ts';
import type { Counts } from './batch-answer.ts';

/** Days are in UTC. */
interface DayOfUploads {
  readonly day: string;
  readonly uploads: { readonly complete: number; readonly partial: number; readonly failed: number };
  readonly records: Counts;
}

const dayMs = 86_400_000;

/** Newest first, including days without uploads. */
export async function dailyReceipts(
  pool: Pool,
  organisationId: string,
  days: number = limits.receiptDaysDefault,
): Promise<DayOfUploads[]> {
  const today = Math.floor(Date.now() / dayMs);
  const starts = Array.from({ length: days }, (_, at) => uuidFloor((today - days + 1 + at) * dayMs));
  const { rows } = await pool.query<{ day: number } & Record<string, number>>({
    name: 'daily receipts',
    // Calculating the day from each id's bits takes 160 ms for 70,000 receipts instead of 65 ms.
    text: `
      select width_bucket(request_id, $2::uuid[]) as day,
        count(*) filter (where status = 200)::integer as complete,
        count(*) filter (where status = 207)::integer as partial,
        count(*) filter (where status not in (200, 207))::integer as refused,
        ${counted.map((column) => `sum(${column})::float8 as ${column}`).join(', ')}
      from receipts where organisation_id = $1 and request_id >= ($2::uuid[])[1]
      group by 1`,
    values: [organisationId, starts],
  });
  const found = new Map(rows.map((row) => [row.day, row]));
  return Array.from({ length: days }, (_, ago) => {
    const row = found.get(days - ago);
    const count = (column: string) => row?.[column] ?? 0;
    return {
      day: new Date((today - ago) * dayMs).toISOString().slice(0, 10),
      uploads: { complete: count('complete'), partial: count('partial'), failed: count('refused') },
      records: Object.fromEntries(counted.map((column) => [column, count(column)])) as unknown as Counts,
    };
  });
}
