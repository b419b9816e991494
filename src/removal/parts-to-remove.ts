import type { Pool } from '../postgres/pool.ts';

/** A table with organisations' rows, or one of its partitions. */
interface Part {
  readonly table: string;
  /** The table itself if it is not partitioned. */
  readonly part: string;
  readonly isDerived: boolean;
}

export interface Progress {
  readonly step: string;
  readonly table: string | null;
  readonly part: string | null;
  /** Whether `part` may have more rows. */
  readonly has_more: boolean;
  readonly tables: readonly string[];
}

/**
 * Rows are removed once their source tables are empty and every transaction that has read a source has ended, so that
 * nothing is added afterwards. Each table comes after its sources.
 */
const derived = [
  'rejection_count_changes',
  'rejection_kinds',
  'record_count_changes',
  'record_counts',
  'change_counters',
  'report_interactions',
  'report_transactions',
  'report_visits',
  'report_sums',
  'report_progress',
  'lake_progress',
];

/** In the order of removal. Read from the catalogue, so that a new table cannot be forgotten. */
export async function partsToRemove(pool: Pool): Promise<Part[]> {
  const { rows } = await pool.query<{ table: string; part: string }>(
    `select t.name as table, coalesce(c.relname, t.name) as part
     from organisation_tables() as t(name)
     left join pg_inherits i on i.inhparent = format('public.%I', t.name)::regclass
     left join pg_class c on c.oid = i.inhrelid`,
  );
  return rows
    .map(({ table, part }) => ({ table, part, isDerived: derived.includes(table) }))
    .toSorted(inOrder);
}

type Place = Pick<Part, 'table' | 'part'>;

function inOrder(one: Place, other: Place): number {
  return (
    derived.indexOf(one.table) - derived.indexOf(other.table) ||
    compare(one.table, other.table) ||
    compare(one.part, other.part)
  );
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** Includes tables that a migration has added in the meantime. */
export function nextPart(parts: readonly Part[], progress: Progress): Part | undefined {
  const { table, part, has_more, tables } = progress;
  if (table === null || part === null) return parts[0];
  const here = { table, part };
  const isNext = (one: Part) => inOrder(one, here) > 0 || (has_more && one.part === part);
  return parts.find(isNext) ?? parts.find((one) => !tables.includes(one.table));
}
