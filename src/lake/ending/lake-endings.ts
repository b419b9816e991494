// lake/ending/: removes erased people from the files, and deletes lakes that were switched off or whose organisation was
// removed.

import type { Client, Pool } from '../../postgres/pool.ts';
import { databaseTime, inTransaction } from '../../postgres/transactions.ts';
import type { UploadType } from '../../registry/upload-types.ts';
import { liftAgain } from '../../suppression/lift-suppressions.ts';
import { LakeTaken } from '../lake-progress.ts';
import { lakeLimits } from '../limits.ts';
import type { LakePlace } from '../store/lake-place.ts';
import type { LakeStore } from '../store/lake-store.ts';

export interface Endings {
  /** Organisations whose files may contain erased people. The others' files must all be deleted. */
  readonly erasing: ReadonlyMap<string, { readonly isStarted: boolean }>;
  readonly removing: ReadonlySet<string>;
}

/** A deleted organisation keeps its files while it can be restored, but people are still erased from them. */
export async function findEndings(pool: Pool): Promise<Endings> {
  const { rows: searched } = await pool.query<{ organisation_id: string; is_started: boolean }>(
    `select organisation_id, bool_or(lake_state = 'running') as is_started
     from erasures where lake_state in ('pending', 'running') group by organisation_id`,
  );
  // `offset 0` makes a cluster run the subquery separately and join its result with the coordinator's table.
  const { rows: removed } = await pool.query<{ organisation_id: string }>(
    `select p.organisation_id from (select organisation_id, removing_since from lake_progress offset 0) as p
     left join organisations o on o.organisation_id = p.organisation_id
     where p.removing_since is not null or o.organisation_id is null or o.removal_started_at is not null
       or (o.deleted_at is null and not o.lake)`,
  );
  const removing = new Set(removed.map(({ organisation_id }) => organisation_id));
  const erasing = searched.filter(({ organisation_id }) => !removing.has(organisation_id));
  return {
    erasing: new Map(
      erasing.map(({ organisation_id, is_started: isStarted }) => [organisation_id, { isStarted }]),
    ),
    removing,
  };
}

/** A pass over all of an organisation's files that looks for the people covered by these erasures. */
interface Pass {
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
  if (!first) return undefined;
  // A process that stalled may have started a pass of its own while this one was running. Then all files are read again.
  const isOnePass = found.every(({ lake_after }) => lake_after === first.lake_after);
  return {
    erasureIds: found.map(({ erasure_id }) => erasure_id),
    after: isOnePass ? first.lake_after : null,
  };
}

/** If `after` is null, the pass is done. */
export function savePass(
  pool: Pool,
  organisationId: string,
  { erasureIds }: Pass,
  after: string | null,
): Promise<void> {
  return inTransaction(pool, async (client) => {
    // A cluster refuses `now()` within `case`.
    const doneAt = after === null ? await databaseTime(client) : null;
    const { rowCount } = await client.query(
      `update erasures set lake_after = $3::text, lake_state = case when $3::text is null then 'done' else 'running' end,
         lake_done_at = $4::timestamptz
       where organisation_id = $1 and erasure_id = any ($2::uuid[]) and lake_state = 'running'`,
      [organisationId, erasureIds, after, doneAt],
    );
    if (rowCount !== erasureIds.length) throw new LakeTaken();
    if (after === null) await liftAgain(client, organisationId, erasureIds);
  });
}

/** This version contains no erased people. An older one may still contain them. */
export async function saveVersion(
  pool: Pool,
  organisationId: string,
  type: UploadType,
  version: number,
): Promise<void> {
  await pool.query('update lake_progress set positions = positions || $2::jsonb where organisation_id = $1', [
    organisationId,
    JSON.stringify({ [type]: version }),
  ]);
}

/**
 * No further step starts or saves its progress until the files are removed. A step in progress may still store files, so
 * `removeLake` waits for `removingMs`.
 */
export async function beginRemoving(client: Pick<Client, 'query'>, organisationId: string): Promise<void> {
  await client.query(
    'update lake_progress set removing_since = now() where organisation_id = $1 and removing_since is null',
    [organisationId],
  );
}

async function areWritesOver(pool: Pool, organisationId: string): Promise<boolean> {
  const { rows } = await pool.query<{ is_over: boolean }>(
    `select removing_since < now() - make_interval(secs => $2) as is_over from lake_progress where organisation_id = $1`,
    [organisationId, lakeLimits.removingMs / 1_000],
  );
  return rows.every(({ is_over }) => is_over);
}

/** Also completes the pending erasures. */
function endRemoving(pool: Pool, organisationId: string): Promise<void> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ erasure_id: string }>(
      `update erasures set lake_state = 'done', lake_after = null, lake_done_at = now()
       where organisation_id = $1 and lake_state in ('pending', 'running') returning erasure_id`,
      [organisationId],
    );
    const erasureIds = rows.map(({ erasure_id }) => erasure_id);
    await liftAgain(client, organisationId, erasureIds);
    await client.query('delete from lake_progress where organisation_id = $1', [organisationId]);
  });
}

interface RemoverParts {
  readonly pool: Pool;
  readonly store: LakeStore;
  readonly place: Pick<LakePlace, 'claim'> | undefined;
}

/**
 * The removal ends when no files are left, but no earlier than `removingMs` after its start, because the process that
 * previously held the slot may still be storing a file. If the lake is switched on, a new copy starts after that.
 */
export async function removeLake(
  { pool, store, place }: RemoverParts,
  organisationId: string,
): Promise<void> {
  await beginRemoving(pool, organisationId);
  const areOver = await areWritesOver(pool, organisationId);
  let left: number = lakeLimits.filesPerRemoval;
  for await (const { path } of store.list(organisationId)) {
    if (left-- === 0) return;
    await store.remove(path);
  }
  if (!areOver) return;
  // If the folder was unmounted meanwhile, files that are still in it are not listed.
  await place?.claim();
  await endRemoving(pool, organisationId);
}
