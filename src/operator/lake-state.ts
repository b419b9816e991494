import { oldestChanges } from '../lake/lake-progress.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Pool } from '../postgres/pool.ts';
import type { Organisation } from './organisations.ts';

export interface LakeState {
  /** `waiting` means that the lake is on, but no process has started to write it. */
  readonly state: 'off' | 'waiting' | 'copying' | 'following';
  /** Everything that was stored before this time is in the lake. Null until the initial copy is complete. */
  readonly as_of: string | null;
  /** The age of the oldest change that the lake lacks. Null until the initial copy is complete. */
  readonly lag_seconds: number | null;
}

export async function lakeStateOf(
  pool: Pool,
  { organisation_id, lake }: Pick<Organisation, 'organisation_id' | 'lake'>,
): Promise<LakeState> {
  if (!lake) return { state: 'off', as_of: null, lag_seconds: null };
  const { rows } = await pool.query<{ is_copying: boolean; as_of: string | null }>(
    `select bool_or(copied_after is not null or removing_since is not null) as is_copying, ${isoTime('min(as_of)')} as as_of
     from lake_progress where organisation_id = $1 group by organisation_id`,
    [organisation_id],
  );
  const [found] = rows;
  if (!found) return { state: 'waiting', as_of: null, lag_seconds: null };
  if (found.is_copying) return { state: 'copying', as_of: null, lag_seconds: null };
  const oldestMs = (await oldestChanges(pool, [organisation_id])).get(organisation_id) ?? Date.now();
  const lag_seconds = Math.max(0, Math.round((Date.now() - oldestMs) / 1_000));
  return { state: 'following', as_of: found.as_of, lag_seconds };
}
