import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { firstUuid, msOfUuidV7 } from '../registry/uuid-v7.ts';
import type { LastChange } from './last-change.ts';
import { lakeLimits } from './limits.ts';

/** All tables contain the last change and everything before it. */
export interface LakeProgress extends LastChange {
  readonly versions: Versions;
  /** Null when the copy of stored data is complete. `after` is the last id of the type that is in the table. */
  readonly copying: Copying | null;
}

export type Versions = Readonly<Partial<Record<UploadType, number>>>;

export interface Copying {
  readonly type: UploadType;
  readonly after: string;
}

export class LakeTaken extends Error {
  constructor() {
    super('another process writes the same lake');
  }
}

/** Returns undefined if there is no lake. Throws if the lake's files are being removed. */
export async function readProgress(pool: Pool, organisationId: string): Promise<LakeProgress | undefined> {
  const { rows } = await pool.query<{
    number: string;
    epoch: string;
    positions: Versions;
    copied_type: UploadType | null;
    copied_after: string | null;
    is_removing: boolean;
  }>(
    `select number, epoch, positions, copied_type, copied_after, removing_since is not null as is_removing
     from lake_progress where organisation_id = $1`,
    [organisationId],
  );
  const [row] = rows;
  if (!row) return undefined;
  const { number, epoch, positions: versions, copied_type: type, copied_after: after } = row;
  if (row.is_removing) throw new LakeTaken();
  return {
    number: Number(number),
    epoch,
    versions,
    copying: type !== null && after !== null ? { type, after } : null,
  };
}

/** Throws if the stored progress is no longer `before`, or if the organisation or its lake is being removed. */
export async function saveProgress(
  client: Pick<Client, 'query'>,
  organisationId: string,
  before: LakeProgress | undefined,
  now: LakeProgress,
  asOf: Date | null,
): Promise<void> {
  const { number, epoch, versions, copying } = now;
  const values = [
    organisationId,
    number,
    epoch,
    JSON.stringify(versions),
    copying?.type ?? null,
    copying?.after ?? null,
    asOf,
  ];
  const { rowCount } = before
    ? await client.query(
        `update lake_progress set number = $2, epoch = $3, positions = $4, copied_type = $5, copied_after = $6,
           as_of = coalesce($7, as_of)
         where organisation_id = $1 and number = $8 and epoch = $9
           and copied_type is not distinct from $10 and copied_after is not distinct from $11
           and removing_since is null`,
        [...values, before.number, before.epoch, before.copying?.type ?? null, before.copying?.after ?? null],
      )
    : await client.query(
        `insert into lake_progress (organisation_id, number, epoch, positions, copied_type, copied_after, as_of)
         select organisation_id, $2::bigint, $3, $4::jsonb, $5, $6::uuid, $7::timestamptz from tenants where organisation_id = $1
         on conflict do nothing`,
        values,
      );
  if (rowCount !== 1) throw new LakeTaken();
}

/** Returns the id below which all interactions have expired and were deleted. */
export async function expiredInteractions(pool: Pool, organisationId: string): Promise<string> {
  const { rows } = await pool.query<{ deleted_below: string }>(
    `select deleted_below from retention_progress where organisation_id = $1 and type = 'interactions'`,
    [organisationId],
  );
  return rows[0]?.deleted_below ?? firstUuid;
}

/** A separate statement, because in a cluster the `organisations` table is on the coordinator. */
export async function organisationsWithLake(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    'select organisation_id from organisations where lake and deleted_at is null',
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

/** An organisation whose lake is behind the database, or was not written for a day. */
export interface Waiting {
  readonly organisationId: string;
  readonly isCopying: boolean;
  /** The last change that is in the lake. */
  readonly number: number;
}

/**
 * A single query covers all organisations, so idle ones cause no queries. It does not see changes that have no number
 * yet, but maintenance assigns numbers within seconds.
 */
export async function organisationsWaiting(
  pool: Pool,
  organisationIds: readonly string[],
): Promise<Waiting[]> {
  if (organisationIds.length === 0) return [];
  const { rows } = await pool.query<{ organisation_id: string; is_copying: boolean; number: string }>(
    `select t.organisation_id, p.organisation_id is null or p.copied_after is not null as is_copying,
       coalesce(p.number, 0) as number
     from tenants t
     left join lake_progress p on p.organisation_id = t.organisation_id
     left join change_counters c on c.organisation_id = t.organisation_id
     where t.organisation_id = any ($1::uuid[])
       and (p.organisation_id is null or p.copied_after is not null or p.number < c.last_number
         or p.as_of < now() - make_interval(secs => $2))`,
    [organisationIds, lakeLimits.idleCheckMs / 1_000],
  );
  return rows.map(({ organisation_id, is_copying, number }) => ({
    organisationId: organisation_id,
    isCopying: is_copying,
    number: Number(number),
  }));
}

/** Returns when each lake's first missing change was written, except where the log no longer contains that change. */
export async function oldestChanges(
  pool: Pool,
  organisationIds: readonly string[],
): Promise<Map<string, number>> {
  if (organisationIds.length === 0) return new Map();
  const { rows } = await pool.query<{ organisation_id: string; oldest: string }>(
    `select p.organisation_id, u.change_id as oldest
     from lake_progress p
     join change_counters c on c.organisation_id = p.organisation_id
     join changes u on u.organisation_id = p.organisation_id
       and u.number = greatest(p.number, c.forgotten_number) + 1
     where p.organisation_id = any ($1::uuid[])`,
    [organisationIds],
  );
  return new Map(rows.map(({ organisation_id, oldest }) => [organisation_id, msOfUuidV7(oldest)]));
}

export async function lakeLagSeconds(pool: Pool): Promise<number> {
  const waiting = await organisationsWaiting(pool, await organisationsWithLake(pool));
  const followed = waiting.filter(({ isCopying }) => !isCopying);
  const oldest = await oldestChanges(
    pool,
    followed.map(({ organisationId }) => organisationId),
  );
  const nowMs = Date.now();
  const oldestMs = [...oldest.values()].reduce((least, ms) => Math.min(least, ms), nowMs);
  return (nowMs - oldestMs) / 1_000;
}

export async function countWaitingRows(
  pool: Pool,
  organisationId: string,
  number: number,
  changesMax: number,
): Promise<number> {
  const { rows } = await pool.query<{ rows: string }>(
    `select coalesce(sum(size), 0) as rows from changes
     where organisation_id = $1 and number > ${Math.trunc(number)} and number <= ${Math.trunc(number + changesMax)}`,
    [organisationId],
  );
  return Number(rows[0]?.rows ?? 0);
}

interface PublicLakeState {
  readonly state: 'off' | 'copying' | 'following';
  /** The tables contain everything that was stored before this time. */
  readonly asOf: string | null;
  /** Each table has at least this version. */
  readonly versions: Versions;
}

/** Runs two statements, because in a cluster the `organisations` table is on the coordinator. */
export async function lakeState(pool: Pool, organisationId: string): Promise<PublicLakeState> {
  if (!(await hasLake(pool, organisationId))) return { state: 'off', asOf: null, versions: {} };
  const { rows } = await pool.query<{ is_copied: boolean; as_of: string | null; positions: Versions }>(
    // Once removed files are gone, everything is copied again.
    `select copied_after is null and removing_since is null as is_copied, ${isoTime('as_of')} as as_of, positions
     from lake_progress where organisation_id = $1`,
    [organisationId],
  );
  const [row] = rows;
  if (!row?.is_copied) return { state: 'copying', asOf: null, versions: {} };
  return { state: 'following', asOf: row.as_of, versions: row.positions };
}

async function hasLake(pool: Pool, organisationId: string): Promise<boolean> {
  const { rows } = await pool.query<{ lake: boolean }>(
    'select lake from organisations where organisation_id = $1',
    [organisationId],
  );
  return rows[0]?.lake ?? false;
}
