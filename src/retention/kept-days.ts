import type { Client, Pool } from '../postgres/pool.ts';
import { firstUuid, uuidFloor } from '../registry/uuid-v7.ts';

export const keptTypes = ['interactions', 'receipts', 'rejections'] as const;
export type KeptType = (typeof keptTypes)[number];

const dayMs = 86_400_000;

/** In UTC. A retention of one day keeps data for 24 to 48 hours, because days expire as a whole. */
export function expiredBefore(days: number, at: Date): Date {
  return new Date(Math.floor(at.getTime() / dayMs - days) * dayMs);
}

export function expiredBelow(days: number, at: Date): string {
  return uuidFloor(expiredBefore(days, at).getTime());
}

/** Null if this is not set. */
export async function keptDaysOf(pool: Pool, organisationId: string, type: KeptType): Promise<number | null> {
  const { rows } = await pool.query<{ days: number | null }>(
    `select ${type}_kept_days as days from organisations where organisation_id = $1`,
    [organisationId],
  );
  return rows[0]?.days ?? null;
}

/**
 * Returns the organisations with a setting of their own, by its number of days. Fails in a restored database until
 * after-restore has replayed the settings.
 */
export async function rejectionsKept(pool: Pool): Promise<Map<number, string[]>> {
  const { rows } = await pool.query<{ organisation_id: string; days: number }>(
    `select organisation_id, rejections_kept_days as days from organisations
     where rejections_kept_days is not null and keys_can_be_trusted()`,
  );
  const byDays = Map.groupBy(rows, ({ days }) => days);
  return new Map(
    [...byDays].map(([days, ofDays]) => [days, ofDays.map(({ organisation_id }) => organisation_id)]),
  );
}

/** Null if this is not set. Fails like `rejectionsKept`. */
export async function trustedRejectionDays(client: Client, organisationId: string): Promise<number | null> {
  const { rows } = await client.query<{ days: number }>(
    `select rejections_kept_days as days from organisations
     where organisation_id = $1 and rejections_kept_days is not null and keys_can_be_trusted()`,
    [organisationId],
  );
  return rows[0]?.days ?? null;
}

export async function goneBelow(client: Client, organisationId: string): Promise<string> {
  const { rows } = await client.query<{ below: string }>(
    `select greatest(deleted_below, expired_below) as below from retention_progress
     where organisation_id = $1 and type = 'interactions'`,
    [organisationId],
  );
  return rows[0]?.below ?? firstUuid;
}
