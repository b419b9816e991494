import { isoTime } from '../../postgres/iso-time.ts';
import type { Pool } from '../../postgres/pool.ts';
import type { Versions } from '../lake-progress.ts';

/** The state of an organisation's lake as its own clients see it. */
export interface PublicLakeState {
  readonly state: 'off' | 'copying' | 'following';
  /** The tables contain everything that was stored before this time. */
  readonly asOf: string | null;
  /** The version that each table has at least. */
  readonly versions: Versions;
}

/**
 * Returns the state of an organisation's lake. Runs two statements, because in a cluster the `organisations` table is on
 * the coordinator.
 */
export async function lakeState(pool: Pool, organisationId: string): Promise<PublicLakeState> {
  if (!(await hasLake(pool, organisationId))) return { state: 'off', asOf: null, versions: {} };
  // Once removed files are gone, everything is copied again.
  const { rows } = await pool.query<{ is_copied: boolean; as_of: string | null; positions: Versions }>(
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
