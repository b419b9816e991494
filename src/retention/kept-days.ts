import type { Client, Pool } from '../postgres/pool.ts';
import { firstUuid, uuidFloor } from '../registry/uuid-v7.ts';

/** What can be kept for fewer days than the service would. */
export const keptTypes = ['interactions', 'receipts', 'rejections'] as const;
export type KeptType = (typeof keptTypes)[number];

const dayMs = 86_400_000;

/** The start of the first day that is kept, in UTC. What is kept for a day is kept for 24 to 48 hours: days expire as a whole. */
export function expiredBefore(days: number, at: Date): Date {
  return new Date(Math.floor(at.getTime() / dayMs - days) * dayMs);
}

/** The smallest id that is kept. */
export function expiredBelow(days: number, at: Date): string {
  return uuidFloor(expiredBefore(days, at).getTime());
}

/** For how many days an organisation keeps a type; null if it has no setting. */
export async function keptDaysOf(pool: Pool, organisationId: string, type: KeptType): Promise<number | null> {
  const { rows } = await pool.query<{ days: number | null }>(
    `select ${type}_kept_days as days from organisations where organisation_id = $1`,
    [organisationId],
  );
  return rows[0]?.days ?? null;
}

/**
 * The organisations with a setting for rejections, by the days that they keep them. An error in a database that was restored, until
 * after-restore has repeated the settings.
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

/** An interaction of an organisation that is not stored and has a smaller id than this has expired. */
export async function goneBelow(client: Client, organisationId: string): Promise<string> {
  const { rows } = await client.query<{ below: string }>(
    `select greatest(deleted_below, expired_below) as below from retention_progress
     where organisation_id = $1 and type = 'interactions'`,
    [organisationId],
  );
  return rows[0]?.below ?? firstUuid;
}
