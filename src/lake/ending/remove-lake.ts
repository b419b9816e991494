import type { Pool } from '../../postgres/pool.ts';
import { lakeLimits } from '../limits.ts';
import type { LakeStore } from '../store/lake-store.ts';
import { areWritesOver, beginRemoving, endRemoving } from './lake-endings.ts';

/**
 * Deletes the lake's next files. The removal ends when no files are left, but no earlier than `removingMs` after its
 * start, because the process that previously held the slot may still be storing a file. If the lake is switched on, a new
 * copy starts after that.
 */
export async function removeLake(pool: Pool, store: LakeStore, organisationId: string): Promise<void> {
  await beginRemoving(pool, organisationId);
  const areOver = await areWritesOver(pool, organisationId);
  let left: number = lakeLimits.filesPerRemoval;
  for await (const { path } of store.list(organisationId)) {
    if (left-- === 0) return;
    await store.remove(path);
  }
  if (areOver) await endRemoving(pool, organisationId);
}
