import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.ts';
import { selectCluster } from '../postgres/cluster/extension.ts';
import type { Pool } from '../postgres/pool.ts';

/**
 * Waits until the other processes know about newly suppressed people. In a cluster, a process may keep storing single
 * interactions under the last suppression version it read for a short time. After this wait, only transactions that
 * have already started can still use that version. Never fails, because the people are already suppressed: if the
 * database cannot tell whether this is a cluster, it waits as in a cluster.
 */
export async function waitForVersions(pool: Pool): Promise<void> {
  const isCluster = await pool.query(selectCluster).then(
    ({ rows }) => rows.length > 0,
    () => true,
  );
  if (isCluster) await sleep(limits.versionSeenMs + 50);
}
