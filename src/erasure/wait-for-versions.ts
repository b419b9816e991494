import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.ts';
import { selectCluster } from '../postgres/cluster/extension.ts';
import type { Pool } from '../postgres/pool.ts';

/**
 * To be awaited after people were suppressed. In a cluster, processes may go on storing single interactions for a moment by the
 * version that they read last; from then on none does, but for transactions that have begun.
 */
export async function waitForVersions(pool: Pool): Promise<void> {
  const { rows } = await pool.query(selectCluster);
  if (rows.length > 0) await sleep(limits.versionSeenMs + 50);
}
