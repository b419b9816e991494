// maintenance/: all background work, which runs in one elected process.

import { collectRecords } from '../access/collect-records.ts';
import { expireCollected } from '../access/expire-collected.ts';
import { dropOldChanges, numberForAll } from '../changes/change-retention.ts';
import type { Config } from '../config.ts';
import { erasePeople, finishErasures } from '../erasure/sweep/erase-people.ts';
import { rewriting } from '../erasure/sweep/rewrite-user-ids.ts';
import { purgeIdempotencyKeys } from '../interactions/idempotency-keys.ts';
import { indexPartitions, partitionDaysAhead } from '../interactions/interaction-partitions.ts';
import { runJobs } from '../jobs/run-jobs.ts';
import { dropPartitions } from '../jobs/time-partitions.ts';
import { countExpiringKeys } from '../keys/api-keys.ts';
import { lakeLagSeconds } from '../lake/lake-progress.ts';
import { limits } from '../limits.ts';
import type { Counted } from '../metrics/metrics.ts';
import type { Pool } from '../postgres/pool.ts';
import { quotaLimits } from '../quotas/limits.ts';
import { countNearQuota, UsageKeeper } from '../quotas/measure-usage.ts';
import { receiptPartitions } from '../receipts/receipts.ts';
import { rollUpCounts } from '../records/record-counts.ts';
import { countAllRejections } from '../rejections/rejection-kinds.ts';
import { settling } from '../rejections/unsettled-batches.ts';
import { removalLimits } from '../removal/limits.ts';
import { removeOrganisations } from '../removal/remove-organisations.ts';
import { ReportKeeper, reportLagMs } from '../reports/keep-report.ts';
import { dropExpiredDays, expireRows } from '../retention/expire-rows.ts';
import { purgeKinds, purgeRejections } from '../retention/purge-rejections.ts';
import { purgeFileClaims, purgeRuns } from '../runs/purge-runs.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import type { Chore } from './maintenance.ts';
import { waitingWork } from './waiting-work.ts';

export function counting(
  pool: Pool,
  config: Pick<Config, 'changesKeptDays' | 'deletedOrganisationsKeptDays'>,
  report: (state: Counted) => void,
): Chore[] {
  return [
    {
      name: 'count rejections',
      everyMs: limits.maintenanceIntervalMs,
      run: async () => report({ rejectionsOpen: await countAllRejections(pool) }),
    },
    {
      name: 'count partitions ahead',
      // The query reads one small table, and the alert should end soon after the partitions have been created.
      everyMs: limits.maintenanceRetryMs,
      run: async () => report({ partitionsAheadDays: await partitionDaysAhead(pool) }),
    },
    {
      name: 'count expiring keys',
      // The query reads each key once, and the alert should end soon after a client has switched to another key.
      everyMs: limits.maintenanceRetryMs,
      run: async () => report({ keysExpiring: await countExpiringKeys(pool) }),
    },
    {
      name: 'measure the backup of the log',
      everyMs: limits.maintenanceRetryMs,
      run: async () => report({ logBackupAgeSeconds: await logBackupAge(pool) }),
    },
    {
      name: 'count waiting work',
      everyMs: limits.maintenanceRetryMs,
      run: async () => report({ work: await waitingWork(pool, config) }),
    },
    {
      name: 'count quotas',
      everyMs: quotaLimits.intervalMs,
      run: async () => report({ quotas: await countNearQuota(pool) }),
    },
    {
      name: 'measure the report',
      everyMs: limits.reportIntervalMs,
      run: async () => report({ reportLagSeconds: (await reportLagMs(pool, config)) / 1_000 }),
    },
    {
      name: 'measure the lake',
      everyMs: limits.reportIntervalMs,
      run: async () => report({ lakeLagSeconds: await lakeLagSeconds(pool) }),
    },
  ];
}

type MaintenanceConfig = Pick<
  Config,
  'receiptsKeptDays' | 'changesKeptDays' | 'deletedOrganisationsKeptDays' | 'databaseTimeoutMs'
>;

export async function makeAllPartitions(pool: Pool): Promise<void> {
  await pool.query('select ensure_interaction_partitions($1)', [limits.interactionDaysAhead]);
  await pool.query('select ensure_weekly_partitions($1)', [limits.weeklyPartitionsAhead]);
  await pool.query('select ensure_change_partitions($1)', [limits.changeDaysAhead]);
}

/** `suppressions` are those of the requests, which forget them when another database server responds. */
export function choresOf(pool: Pool, config: MaintenanceConfig, suppressions: Suppressions): Chore[] {
  const { changesKeptDays } = config;
  const reportKeeper = new ReportKeeper(pool, config);
  const usageKeeper = new UsageKeeper(pool);
  const people = [rewriting, erasePeople(suppressions), collectRecords(suppressions), expireCollected];
  return [
    {
      name: 'roll up counts',
      everyMs: limits.rollUpIntervalMs,
      run: () => rollUpCounts(pool),
    },
    {
      name: 'measure quotas',
      everyMs: quotaLimits.intervalMs,
      run: (round) => usageKeeper.run(round),
    },
    {
      name: 'number changes',
      everyMs: limits.numberChangesIntervalMs,
      loop: 'changes',
      run: (round) => numberForAll(pool, round),
    },
    {
      name: 'settle rejections',
      everyMs: limits.settleRejectionsIntervalMs,
      roundMs: limits.settleRejectionsMs,
      run: (round) => runJobs(pool, [settling], round),
    },
    {
      name: 'erase people',
      everyMs: limits.erasureIntervalMs,
      loop: 'people',
      run: (round) => runJobs(pool, people, round),
    },
    {
      // Nothing else would let keys work if people were hidden while after-restore was noting that they are not.
      name: 'let keys work after a restore',
      everyMs: limits.maintenanceRetryMs,
      run: () => pool.query('select people_are_hidden()'),
    },
    {
      name: 'count for the report',
      everyMs: limits.reportIntervalMs,
      loop: 'report',
      run: (round) => reportKeeper.run(round?.stopping),
    },
    {
      name: 'drop old changes',
      everyMs: limits.maintenanceIntervalMs,
      loop: 'changes',
      async run(round) {
        const left = await dropOldChanges(pool, changesKeptDays, round);
        await finishErasures(pool);
        return left;
      },
    },
    ...withPartitions(pool, config),
    ...withOldData(pool, config),
  ];
}

type HourlyChore = Pick<Chore, 'name' | 'run'> & Partial<Chore>;

function hourly(loop: string, chores: readonly HourlyChore[]): Chore[] {
  return chores.map((chore) => ({ everyMs: limits.maintenanceIntervalMs, loop, ...chore }));
}

/** One of their statements may take an hour. */
function withPartitions(pool: Pool, config: MaintenanceConfig): Chore[] {
  return hourly('partitions', [
    { name: 'make partitions', run: () => makeAllPartitions(pool) },
    {
      name: 'drop old receipts',
      run: (round) => dropPartitions(pool, receiptPartitions, config.receiptsKeptDays, round),
    },
    { name: 'index days that are over', run: (round) => indexPartitions(pool, round) },
    { name: 'remove what has expired', run: expiry(pool) },
  ]);
}

/** Each round is short, but there can be many. */
function withOldData(pool: Pool, config: MaintenanceConfig): Chore[] {
  const rejections = [purgeRejections(config.receiptsKeptDays)];
  const removal = [removeOrganisations(config)];
  return hourly('old data', [
    {
      name: 'remove old rejections',
      async run(round) {
        const left = await runJobs(pool, rejections, round);
        const kinds = await purgeKinds(pool, limits.rejectionKindLifeMs, round);
        return left === 'all' ? kinds : left;
      },
    },
    {
      name: 'remove old runs',
      async run(round) {
        const left = await purgeRuns(pool, config.receiptsKeptDays, round);
        const claims = await purgeFileClaims(pool, round);
        return left === 'all' ? claims : left;
      },
    },
    {
      name: 'forget idempotency keys',
      async run(round) {
        const left = await purgeIdempotencyKeys(pool, 'interaction', round);
        const ofUploads = await purgeIdempotencyKeys(pool, 'upload', round);
        return left === 'all' ? ofUploads : left;
      },
    },
    {
      name: 'remove organisations',
      everyMs: removalLimits.intervalMs,
      run: (round) => runJobs(pool, removal, round),
    },
  ]);
}

/**
 * Rows are deleted in many rounds. Days are dropped only once an hour, because that scans expired days, even those that
 * another organisation keeps.
 */
function expiry(pool: Pool): Chore['run'] {
  let dropMs = 0;
  return async (round) => {
    if (performance.now() >= dropMs) {
      await dropExpiredDays(pool, round?.stopping);
      dropMs = performance.now() + limits.maintenanceIntervalMs;
    }
    return runJobs(pool, [expireRows()], round);
  };
}

/** Since the audit log and the ledger were written to files, or since the table for that was created. */
async function logBackupAge(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ seconds: number }>(
    `select greatest(0, extract(epoch from now() - coalesce(written_at, created_at)))::float8 as seconds from log_backups`,
  );
  return rows[0]?.seconds ?? 0;
}
