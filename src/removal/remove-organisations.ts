import type { Config } from '../config.ts';
import { type JobKind, jobKind, type Next, type Place } from '../jobs/job.ts';
import { type Fence, passFence } from '../jobs/pass-fence.ts';
import type { Pool } from '../postgres/pool.ts';
import { queryRow, retryConflicts } from '../postgres/transactions.ts';
import { removalLimits } from './limits.ts';
import { nextPart, type Progress, partsToRemove } from './parts-to-remove.ts';

type RemovalStep = 'begin' | 'fence' | 'rows' | 'finish';

interface Stage {
  readonly isDerived: boolean;
}

/**
 * The owner's functions save the progress with each statement, in a table that outlives the jobs. So a step that is
 * interrupted or repeated neither loses nor repeats anything.
 */
export function removeOrganisations({
  deletedOrganisationsKeptDays: daysKept,
}: Pick<Config, 'deletedOrganisationsKeptDays'>): JobKind {
  return jobKind<RemovalStep>({
    name: 'removals',
    first: 'begin',
    pauseFactor: removalLimits.pauseFactor,
    async find(pool) {
      const { rows } = await pool.query<{ organisation_id: string }>(
        `select organisation_id from organisations
         where deleted_at is not null
           and (removal_started_at is not null or deleted_at < now() - make_interval(days => $1))`,
        [daysKept],
      );
      return rows.map(({ organisation_id }) => organisation_id);
    },
    steps: {
      begin: { call: (pool, place) => begin(pool, place, daysKept) },
      fence: { wait: waitForWriters },
      rows: { call: removeRows },
      finish: { call: finish },
    },
  });
}

/** Ends the job if the organisation was restored in the meantime. */
async function begin(pool: Pool, { organisationId }: Place, daysKept: number): Promise<Next<RemovalStep>> {
  if (!(await progressOf(pool, organisationId))) {
    const { is_begun } = await retryConflicts(() =>
      queryRow<{ is_begun: boolean }>(pool, {
        text: 'select begin_removal($1, $2) as is_begun',
        values: [organisationId, daysKept],
      }),
    );
    if (!is_begun) return 'ended';
  }
  return { step: 'fence', position: { isDerived: false } satisfies Stage };
}

/** Transactions that started before a stage may still write to its tables. */
async function waitForWriters(pool: Pool, { position }: Place): Promise<Next<RemovalStep> | undefined> {
  const at = position as Fence<Stage>;
  const next = await passFence(pool, at);
  return next === 'passed' ? { step: 'rows', position: { isDerived: at.isDerived } satisfies Stage } : next;
}

/** Parts without rows are passed in the same step. */
async function removeRows(
  pool: Pool,
  { organisationId, position }: Place,
  stopping?: AbortSignal,
): Promise<Next<RemovalStep>> {
  const stage = position as Stage;
  const parts = await partsToRemove(pool);
  let removed: string | null = '0';
  while (removed === '0' && !stopping?.aborted) {
    const progress = await progressOf(pool, organisationId);
    if (!progress) return 'ended';
    const next = nextPart(parts, progress);
    if (!next) return { step: 'finish' };
    // `intake-server lake` deletes this row when no files are left. Until then, the removal is taken up again and again.
    if (next.table === 'lake_progress' && (await hasLakeFiles(pool, organisationId))) return 'ended';
    if (next.isDerived && !stage.isDerived)
      return { step: 'fence', position: { isDerived: true } satisfies Stage };
    // Null means that another process has done this step, or that the partition was dropped.
    ({ removed } = await retryConflicts(() =>
      queryRow<{ removed: string | null }>(pool, {
        text: 'select remove_rows($1, $2, $3, $4) as removed',
        values: [organisationId, progress.step, next.part, removalLimits.rowsPerStep],
      }),
    ));
  }
  return { step: 'rows', position: stage };
}

async function progressOf(pool: Pool, organisationId: string): Promise<Progress | undefined> {
  const { rows } = await pool.query<Progress>(
    `select step, table_name as table, part, after is not null as has_more,
       array(select jsonb_object_keys(rows)) as tables
     from removals where organisation_id = $1`,
    [organisationId],
  );
  return rows[0];
}

async function hasLakeFiles(pool: Pool, organisationId: string): Promise<boolean> {
  const { rows } = await pool.query('select from lake_progress where organisation_id = $1 limit 1', [
    organisationId,
  ]);
  return rows.length > 0;
}

/**
 * Unlinks audit entries and deletes keys, some in each call, and finally the organisation itself. Then the job ends.
 */
async function finish(pool: Pool, { organisationId }: Place): Promise<Next<RemovalStep>> {
  const { is_gone } = await retryConflicts(() =>
    queryRow<{ is_gone: boolean }>(pool, {
      text: 'select finish_removal($1) as is_gone',
      values: [organisationId],
    }),
  );
  return is_gone ? 'ended' : { step: 'finish' };
}
