import type { QueryResultRow } from 'pg';
import type { Scalar } from '../registry/fields.ts';
import type { Instant } from '../registry/times.ts';
import { firstIdFrom } from '../registry/uuid-v7.ts';
import type { Pool } from './pool.ts';

/** A table whose ids are UUIDv7, so they sort by the time of receipt. */
export interface TimedTable {
  readonly name: string;
  readonly id: string;
  readonly columns: string;
}

/** Instants are times of receipt. */
export interface AskedPage {
  readonly from?: Instant | undefined;
  readonly to?: Instant | undefined;
  /** The last id of the previous page. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface Page<R> {
  readonly rows: readonly R[];
  /** Null on the last page. */
  readonly next: string | null;
}

/** `found` contains one row more than the page if there is a next page. */
export function pageOf<R>(found: readonly R[], limit: number, cursorOf: (row: R) => string): Page<R> {
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return { rows, next: found.length > limit && last !== undefined ? cursorOf(last) : null };
}

export async function newestFirst<R extends QueryResultRow>(
  pool: Pick<Pool, 'query'>,
  { name, id, columns }: TimedTable,
  organisationId: string,
  filter: Readonly<Record<string, Scalar | readonly string[] | undefined>>,
  { from, to, cursor, limit }: AskedPage,
): Promise<Page<R>> {
  const values: unknown[] = [organisationId];
  const conditions = ['organisation_id = $1'];
  const add = (condition: string, value: unknown) => {
    if (value !== undefined) conditions.push(`${condition} $${values.push(value)}`);
  };
  // A list matches if it contains the value.
  for (const [field, value] of Object.entries(filter))
    if (Array.isArray(value)) conditions.push(`${field} = any ($${values.push(value)})`);
    else add(`${field} =`, value);
  add(`${id} >=`, from === undefined ? undefined : firstIdFrom(from));
  add(`${id} <`, to === undefined ? undefined : firstIdFrom(to));
  add(`${id} <`, cursor);
  // The limit is a literal, for the reasons given at `listApiKeys`.
  const { rows } = await pool.query<R>(
    `select ${columns} from ${name} where ${conditions.join(' and ')} order by ${id} desc limit ${Math.trunc(limit) + 1}`,
    values,
  );
  return pageOf(rows, limit, (row) => row[id]);
}
