// lake/ending/: removes erased people from the files, and deletes lakes that were switched off or whose organisation was
// removed.

import type { Pool } from '../../postgres/pool.ts';
import { inTransaction } from '../../postgres/transactions.ts';
import { LakeTaken } from '../lake-progress.ts';
import { lakeLimits } from '../limits.ts';

/** The organisations whose files must be searched for erased people or deleted. */
export interface Endings {
  /** Organisations whose files may contain erased people. */
  readonly erasing: ReadonlySet<string>;
  /** Organisations whose files must all be deleted. */
  readonly removing: ReadonlySet<string>;
}

/**
 * Finds these organisations, with one query for each of the two kinds. A deleted organisation keeps its files as long as
 * it can be restored, but people are still erased from these files.
 */
export async function findEndings(pool: Pool): Promise<Endings> {
  const idsOf = async (text: string) => {
    const { rows } = await pool.query<{ organisation_id: string }>(text);
    return new Set(rows.map(({ organisation_id }) => organisation_id));
  };
  const erasing = await idsOf(
    `select distinct organisation_id from erasures where lake_state in ('pending', 'running')`,
  );
  // `offset 0` makes a cluster run the subquery separately and join its result with the coordinator's table.
  const removing = await idsOf(
    `select p.organisation_id from (select organisation_id, removing_since from lake_progress offset 0) as p
     left join organisations o on o.organisation_id = p.organisation_id
     where p.removing_since is not null or o.organisation_id is null or o.removal_started_at is not null
       or (o.deleted_at is null and not o.lake)`,
  );
  return { erasing: erasing.difference(removing), removing };
}

/** A pass over all of an organisation's files that looks for the people covered by these erasures. */
export interface Pass {
  readonly erasureIds: readonly string[];
  /** The last table and file that were processed. */
  readonly after: string | null;
}

/** Returns the pass in progress, or starts one for all pending erasures. Returns undefined if nothing is pending. */
export async function currentPass(pool: Pool, organisationId: string): Promise<Pass | undefined> {
  interface Found {
    readonly erasure_id: string;
    readonly lake_after: string | null;
  }
  const { rows } = await pool.query<Found>(
    `select erasure_id, lake_after from erasures where organisation_id = $1 and lake_state = 'running'`,
    [organisationId],
  );
  const { rows: found } =
    rows.length > 0
      ? { rows }
      : await pool.query<Found>(
          `update erasures set lake_state = 'running', lake_after = null
           where organisation_id = $1 and lake_state = 'pending' returning erasure_id, lake_after`,
          [organisationId],
        );
  const [first] = found;
  return first && { erasureIds: found.map(({ erasure_id }) => erasure_id), after: first.lake_after };
}

/** Saves the progress of a pass. If `after` is null, the pass is done. */
export async function notePass(
  pool: Pool,
  organisationId: string,
  { erasureIds }: Pass,
  after: string | null,
): Promise<void> {
  const { rowCount } = await pool.query(
    `update erasures set lake_after = $3::text, lake_state = case when $3::text is null then 'done' else 'running' end,
       lake_done_at = case when $3::text is null then $4::timestamptz end
     where organisation_id = $1 and erasure_id = any ($2::uuid[]) and lake_state = 'running'`,
    [organisationId, erasureIds, after, new Date()],
  );
  if (rowCount !== erasureIds.length) throw new LakeTaken();
}

/** Schedules all erasures again, because an older copy of a table may contain people who were erased after it was made. */
export async function lookAgain(pool: Pool, organisationId: string): Promise<void> {
  await pool.query(
    `update erasures set lake_state = 'pending', lake_after = null, lake_done_at = null
     where organisation_id = $1 and lake_state is not null`,
    [organisationId],
  );
}

/** Returns whether the organisation may have files. */
export async function hasLake(pool: Pool, organisationId: string): Promise<boolean> {
  const { rows } = await pool.query('select from lake_progress where organisation_id = $1 limit 1', [
    organisationId,
  ]);
  return rows.length > 0;
}

/** Stops all writes to the lake. Returns whether they were stopped more than `removingMs` ago. */
export async function beginRemoving(pool: Pool, organisationId: string): Promise<boolean> {
  const { rows } = await pool.query<{ is_over: boolean }>(
    `update lake_progress set removing_since = coalesce(removing_since, $2) where organisation_id = $1
     returning removing_since < $3::timestamptz as is_over`,
    [organisationId, new Date(), new Date(Date.now() - lakeLimits.removingMs)],
  );
  return rows.every(({ is_over }) => is_over);
}

/** Completes the removal after all files were deleted. This also completes the pending erasures. */
export function endRemoving(pool: Pool, organisationId: string): Promise<void> {
  return inTransaction(pool, async (client) => {
    await client.query(
      `update erasures set lake_state = 'done', lake_after = null, lake_done_at = $2
       where organisation_id = $1 and lake_state in ('pending', 'running')`,
      [organisationId, new Date()],
    );
    await client.query('delete from lake_progress where organisation_id = $1', [organisationId]);
  });
}
