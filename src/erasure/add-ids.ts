// erasure/: accepts requests to erase people, sweeps every table, and reports progress.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Fence, passFence } from '../jobs/pass-fence.ts';
import { limits } from '../limits.ts';
import { selectCluster } from '../postgres/cluster/extension.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { queryRow } from '../postgres/transactions.ts';
import { addSuppressions } from '../suppression/add-suppressions.ts';
import { type IdHasher, type IdHashes, inSlices } from '../suppression/suppression-key.ts';

export interface IdOfErasure {
  readonly id: string;
  readonly erasureId: string;
}

type Hashed = IdOfErasure & IdHashes;

/** Must not be called in a transaction that has locked rows, because it takes 40 microseconds an id. */
export function hashSlowly<T extends { readonly id: string }>(
  hasher: IdHasher,
  ids: readonly T[],
): Promise<(T & IdHashes)[]> {
  return inSlices(ids, (one) => ({ ...one, ...hasher.hashesOf(one.id) }));
}

/** Hides rows with these ids, and suppresses the ids from the given version on. */
export async function addIds(
  client: Client,
  organisationId: string,
  version: number,
  hashed: readonly Hashed[],
): Promise<void> {
  await client.query({
    name: 'add ids of erasures',
    text: `
      insert into erasure_ids (organisation_id, erasure_id, id)
      select o.organisation_id, i.erasure_id, i.id
      from tenants o cross join unnest($2::uuid[], $3::text[]) as i(erasure_id, id)
      where o.organisation_id = $1 on conflict do nothing`,
    values: [organisationId, hashed.map(({ erasureId }) => erasureId), hashed.map(({ id }) => id)],
  });
  await addSuppressions(client, { organisationId, version }, hashed);
}

/** Locks out the organisation's other requests until the transaction ends. */
export async function nextVersion(client: Client, organisationId: string): Promise<number> {
  const { version } = await queryRow<{ version: number }>(client, {
    name: 'next version of suppressions',
    text: `
      update tenants set suppressions_version = suppressions_version + 1 where organisation_id = $1
      returning suppressions_version as version`,
    values: [organisationId],
  });
  return version;
}

/**
 * In a cluster, a process may briefly keep storing single interactions under the last suppression version it read.
 * After this wait, only transactions that have already started can still use that version. Never fails, because the
 * people are already suppressed: if the database cannot tell whether this is a cluster, it waits as in a cluster.
 */
export async function waitForVersions(pool: Pool): Promise<void> {
  const isCluster = await pool.query(selectCluster).then(
    ({ rows }) => rows.length > 0,
    () => true,
  );
  if (isCluster) await sleep(limits.versionSeenMs + 50);
}

/** Passes when nothing is being stored any more that was compared with a suppression version from before the first call. */
export async function passWriters<T>(pool: Pool, position: Fence<T>): ReturnType<typeof passFence<T>> {
  if (!position.awaited) await waitForVersions(pool);
  return passFence(pool, position);
}
