// maintenance/: all background work, which runs in one elected process.

import { collectForAll } from '../access/collect.ts';
import { expireCollected } from '../access/expire-collected.ts';
import { accessLimits } from '../access/limits.ts';
import { dropOldChanges, numberForAll } from '../changes/change-retention.ts';
import type { Config } from '../config.ts';
import { finishErasures } from '../erasure/finish-erasures.ts';
import { sweepErasures } from '../erasure/sweep/sweep.ts';
import { purgeIdempotencyKeys } from '../interactions/idempotency-keys.ts';
import { daysAhead, indexPartitions } from '../interactions/interaction-partitions.ts';
import { countExpiringKeys } from '../keys/api-keys.ts';
import { lakeLag } from '../lake/lake-progress.ts';
import { limits } from '../limits.ts';
import type { Counted } from '../metrics/metrics.ts';
import type { Pool } from '../postgres/pool.ts';
import { dropPartitions, makePartitions } from '../postgres/time-partitions.ts';
import { quotaLimits } from '../quotas/limits.ts';
import { countNearQuota, UsageKeeper } from '../quotas/measure-usage.ts';
import { receiptPartitions } from '../receipts/receipts.ts';
import { rollUpCounts } from '../records/record-counts.ts';
import { purgeKinds, purgeRejections } from '../rejections/purge-rejections.ts';
import { countAllRejections } from '../rejections/rejection-kinds.ts';
import { settleAll } from '../rejections/unsettled-batches.ts';
import { removalLimits } from '../removal/limits.ts';
import { OrganisationRemover } from '../removal/remove-organisations.ts';
import { ReportKeeper } from '../reports/keep-report.ts';
import { reportLagMs } from '../reports/report-lag.ts';
import { expireRows } from '../retention/expire-rows.ts';
import { expiredBefore, rejectionsKept } from '../retention/kept-days.ts';
import { Suppressions } from '../suppression/suppressions.ts';
import type { Chore } from './maintenance.ts';
import { waitingWork } from './waiting-work.ts';

/** Returns the chores that count all organisations for the leader's metrics. */
export function counting(
  pool: Pool,
  config: Pick<Config, 'changesKeptDays' | 'deletedOrganisationsKeptDays'>,
  report: (state: Counted) => void,
): Chore[] {
  return [
    {
      name: 'count rejections',
      // This chore reads a few rows per organisation.
      everyMs: limits.maintenanceIntervalMs,
      run: async () => report({ rejectionsOpen: await countAllRejections(pool) }),
    },
    {
      name: 'count partitions ahead',
      // This chore reads one row, and the alert should end soon after the partitions have been created.
      everyMs: limits.maintenanceRetryMs,
      run: async () => report({ partitionsAheadDays: await daysAhead(pool) }),
    },
    {
      name: 'count expiring keys',
      // This chore reads each key once, and the alert should end soon after a client has switched to another key.
      everyMs: limits.maintenanceRetryMs,
      run: async () => report({ keysExpiring: await countExpiringKeys(pool) }),
    },
    {
      name: 'count waiting work',
      // This chore reads only the unfinished work.
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
      // This chore runs one query for all organisations with a lake.
      everyMs: limits.reportIntervalMs,
      run: async () => report({ lake: await lakeLag(pool) }),
    },
  ];
}

/**
 * The maintenance settings, which are the statement timeout and how long receipts, changes and deleted organisations
 * are kept.
 */
export type MaintenanceConfig = Pick<
  Config,
  | 'receiptsKeptDays'
  | 'changesKeptDays'
  | 'deletedOrganisationsKeptDays'
  | 'databaseTimeoutMs'
  | 'erasureKeys'
>;

/** Creates the partitions for the coming days and weeks. */
export async function makeAllPartitions(pool: Pool): Promise<void> {
  await makePartitions(pool, 'ensure_interaction_partitions', limits.interactionDaysAhead);
  await makePartitions(pool, 'ensure_weekly_partitions', limits.weeklyPartitionsAhead);
  await makePartitions(pool, 'ensure_change_partitions', limits.changeDaysAhead);
}

/** Returns the maintenance chores. `counting` returns the chores that count for metrics. */
export function choresOf(pool: Pool, config: MaintenanceConfig): Chore[] {
  const { receiptsKeptDays: daysKept, changesKeptDays } = config;
  const hourly = limits.maintenanceIntervalMs;
  const reportKeeper = new ReportKeeper(pool, config);
  const usageKeeper = new UsageKeeper(pool);
  const suppressions = new Suppressions(config.erasureKeys);
  const forgottenBefore = () => new Date(Date.now() - limits.idempotencyKeyLifeMs);
  return [
    {
      name: 'roll up counts',
      everyMs: limits.rollUpIntervalMs,
      run: () => rollUpCounts(pool),
    },
    {
      name: 'measure quotas',
      everyMs: quotaLimits.intervalMs,
      run: (stopping) => usageKeeper.run(stopping),
    },
    {
      name: 'number changes',
      everyMs: limits.numberChangesIntervalMs,
      loop: 'changes',
      run: (stopping) => numberForAll(pool, stopping),
    },
    {
      name: 'settle rejections',
      everyMs: limits.settleRejectionsIntervalMs,
      run: (stopping) => settleAll(pool, stopping),
    },
    {
      name: 'erase people',
      everyMs: limits.erasureIntervalMs,
      loop: 'people',
      run: (stopping) => sweepErasures(pool, suppressions, stopping),
    },
    {
      name: 'collect for access requests',
      everyMs: limits.erasureIntervalMs,
      loop: 'people',
      run: (stopping) => collectForAll(pool, suppressions, stopping),
    },
    {
      name: 'count for the report',
      everyMs: limits.reportIntervalMs,
      loop: 'report',
      run: (stopping) => reportKeeper.run(stopping),
    },
    {
      name: 'make partitions',
      everyMs: hourly,
      run: () => makeAllPartitions(pool),
    },
    ...withOldData(pool, config),
    {
      name: 'drop old receipts',
      everyMs: hourly,
      run: (stopping) => dropPartitions(pool, receiptPartitions, daysKept, stopping),
    },
    {
      name: 'drop old changes',
      everyMs: hourly,
      async run(stopping) {
        await dropOldChanges(pool, changesKeptDays, stopping);
        await finishErasures(pool);
      },
    },
    {
      name: 'remove old rejections',
      everyMs: hourly,
      async run(stopping) {
        await purgeRejections(pool, new Date(Date.now() - daysKept * 24 * 3_600_000), stopping);
        for (const [days, organisationIds] of await rejectionsKept(pool))
          await purgeRejections(pool, expiredBefore(days, new Date()), stopping, organisationIds);
        await purgeKinds(pool, new Date(Date.now() - limits.rejectionKindLifeMs), stopping);
      },
    },
    {
      name: 'forget idempotency keys',
      everyMs: hourly,
      async run(stopping) {
        await purgeIdempotencyKeys(pool, 'interaction', forgottenBefore(), stopping);
        await purgeIdempotencyKeys(pool, 'upload', forgottenBefore(), stopping);
      },
    },
  ];
}

/** Returns the chores that can take a long time if there is a lot of data. */
function withOldData(pool: Pool, config: MaintenanceConfig): Chore[] {
  const loop = 'old data';
  const everyMs = limits.maintenanceIntervalMs;
  const remover = new OrganisationRemover(pool, config);
  return [
    {
      name: 'index days that are over',
      everyMs,
      loop,
      run: (stopping) => indexPartitions(pool, stopping),
    },
    {
      name: 'remove what has expired',
      everyMs,
      loop,
      run: (stopping) => expireRows(pool, stopping),
    },
    {
      name: 'delete what was collected for access requests',
      everyMs,
      loop,
      run: (stopping) => expireCollected(pool, new Date(Date.now() - accessLimits.recordsKeptMs), stopping),
    },
    {
      name: 'remove organisations',
      everyMs: removalLimits.intervalMs,
      loop,
      run: (stopping) => remover.run(stopping),
    },
  ];
}
