import { randomUUID } from 'node:crypto';
import type pg from 'pg';

export interface OldWeek {
  /** The request id of the week's only receipt. */
  readonly requestId: string;
  /** The suffix of the week's tables, as in `receipts_2026_01_05`. */
  readonly name: string;
}

/** Creates the tables for a past week, with one receipt as an upload would have stored it. */
export async function addOldWeek(
  client: Pick<pg.Client, 'query'>,
  organisationId: string,
  weeksAgo: number,
): Promise<OldWeek> {
  const { rows } = await client.query<{ name: string; first: string; next: string }>(
    `select to_char(monday at time zone 'UTC', 'YYYY_MM_DD') as name, uuid_floor(monday) as first,
       uuid_floor(monday + interval '7 days') as next
     from (select date_trunc('week', now(), 'UTC') - make_interval(days => 7 * $1::integer) as monday) as week`,
    [weeksAgo],
  );
  const { name, first, next } = rows[0] as { name: string; first: string; next: string };
  for (const parent of ['receipts', 'receipt_batches']) {
    await client.query(
      `create table ${parent}_${name} partition of ${parent} for values from ('${first}') to ('${next}')`,
    );
  }
  const requestId = first.slice(0, 23) + randomUUID().slice(23);
  await client.query(
    `insert into receipts (organisation_id, request_id, type, operation, status, key_id, body_bytes, duration_ms,
       batch_count, batches, received, created, updated, unchanged, stale, failed)
     values ($1, $2, 'shops', 'upload', 400, 'k', 1, 1, 1, '{1}', 1, 0, 0, 0, 0, 1)`,
    [organisationId, requestId],
  );
  await client.query(`insert into receipt_batches values ($1, $2, 1, '{"batch": 1}')`, [
    organisationId,
    requestId,
  ]);
  return { requestId, name };
}
