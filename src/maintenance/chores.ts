// maintenance/: everything that runs in the background, by one elected process.

import { dropOldChanges, numberForAll } from '../changes/change-retention.ts';
import type { Config } from '../config.ts';
import { finishErasures } from '../erasure/finish-erasures.ts';
import { sweepErasures } from '../erasure/sweep/sweep.ts';
import { purgeIdempotencyKeys } from '../interactions/idempotency-keys.ts';
import { daysAhead, indexPartitions } from '../interactions/interaction-partitions.ts';
import { countExpiringKeys } from '../keys/api-keys.ts';
import { limits } from '../limits.ts';
import type { Counted } from '../metrics/metrics.ts';
import type { Pool } from '../postgres/pool.ts';
import { dropPartitions, makePartitions } from '../postgres/time-partitions.ts';
import { receiptPartitions } from '../receipts/receipts.ts';
import { rollUpCounts } from '../records/record-counts.ts';
import { purgeKinds, purgeRejections } from '../rejections/purge-rejections.ts';
import { countAllRejections } from '../rejections/rejection-kinds.ts';
import { settleAll } from '../rejections/unsettled-batches.ts';
import { ReportKeeper } from '../reports/keep-report.ts';
import { reportLagMs } from '../reports/report-lag.ts';
import { Suppressions } from '../suppression/suppressions.ts';
import type { Chore } from './maintenance.ts';

/** Counts for the leader's metrics, over all organisations. */
export function counting(
  pool: Pool,
  config: Pick<Config, 'changesKeptDays'>,
  report: (state: Counted) => void,
): Chore[] {
  return [
    {
      name: 'count rejections',
      // It reads a few rows per organisation.
      everyMs: limits.maintenanceIntervalMs,
      run: async () => report({ rejectionsOpen: await countAllRejections(pool) }),
    },
    {
      name: 'count partitions ahead',
      // It reads one row, and an alert must not last an hour after the partitions were made.
      everyMs: limits.maintenanceRetryMs,
      run: async () => report({ partitionsAheadDays: await daysAhead(pool) }),
    },
    {
      name: 'count expiring keys',
      // It reads each key once, and the alert should end soon after a client has changed to another key.
      everyMs: limits.maintenanceRetryMs,
      run: async () => report({ keysExpiring: await countExpiringKeys(pool) }),
    },
    {
      name: 'measure the report',
      everyMs: limits.reportIntervalMs,
      run: async () => report({ reportLagSeconds: (await reportLagMs(pool, config)) / 1_000 }),
    },
  ];
}

/** The settings that maintenance needs: how long receipts and changes are kept, and a statement may take. */
export type MaintenanceConfig = Pick<
  Config,
  'receiptsKeptDays' | 'changesKeptDays' | 'databaseTimeoutMs' | 'erasureKeys'
>;

/** Everything that runs in the background. */
export function choresOf(pool: Pool, config: MaintenanceConfig): Chore[] {
  const { receiptsKeptDays: daysKept, changesKeptDays } = config;
  const hourly = limits.maintenanceIntervalMs;
  const reportKeeper = new ReportKeeper(pool, config);
  const suppressions = new Suppressions(config.erasureKeys);
  const forgottenBefore = () => new Date(Date.now() - limits.idempotencyKeyLifeMs);
  return [
    {
      name: 'roll up counts',
      everyMs: limits.rollUpIntervalMs,
      run: () => rollUpCounts(pool),
    },
    {
      name: 'number changes',
      everyMs: limits.numberChangesIntervalMs,
      isLong: true,
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
      isLong: true,
      run: (stopping) => sweepErasures(pool, suppressions, stopping),
    },
    {
      name: 'count for the report',
      everyMs: limits.reportIntervalMs,
      isLong: true,
      run: (stopping) => reportKeeper.run(stopping),
    },
    {
      name: 'make partitions',
      everyMs: hourly,
      async run() {
        await makePartitions(pool, 'ensure_interaction_partitions', limits.interactionDaysAhead);
        await makePartitions(pool, 'ensure_weekly_partitions', limits.weeklyPartitionsAhead);
        await makePartitions(pool, 'ensure_change_partitions', limits.changeDaysAhead);
      },
    },
    {
      name: 'index days that are over',
      everyMs: hourly,
      isLong: true,
      run: (stopping) => indexPartitions(pool, stopping),
    },
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
