import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.ts';
import { selectCluster } from '../postgres/cluster/extension.ts';
import type { Pool } from '../postgres/pool.ts';

/**
 * Waits until the other processes know about newly suppressed people. In a cluster, a process may keep storing single
 * interactions under the last suppression version it read for a short time. After this wait, only transactions that have
 * already started can still use that version.
 */
export async function waitForVersions(pool: Pool): Promise<void> {
  const { rows } = await pool.query(selectCluster);
  if (rows.length > 0) await sleep(limits.versionSeenMs + 50);
}
