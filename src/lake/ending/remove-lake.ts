import type { Pool } from '../../postgres/pool.ts';
import { LakeTaken } from '../lake-progress.ts';
import { lakeLimits } from '../limits.ts';
import type { LakeStore } from '../store/lake-store.ts';
import { beginRemoving, endRemoving } from './lake-endings.ts';

interface RemoverParts {
  readonly pool: Pool;
  readonly store: LakeStore;
  readonly isHeld: (organisationId: string) => boolean;
}

/**
 * Deletes the lake's next files. The removal ends when no files are left, but no earlier than `removingMs` after its
 * start, because the process that previously held the slot may still be storing a file.
 */
export async function removeLake(parts: RemoverParts, organisationId: string): Promise<void> {
  const { pool, store, isHeld } = parts;
  const isOver = await beginRemoving(pool, organisationId);
  let left: number = lakeLimits.filesPerRemoval;
  for await (const { path } of store.list(organisationId)) {
    if (!isHeld(organisationId)) throw new LakeTaken();
    if (left-- === 0) return;
    await store.remove(path);
  }
  if (isOver) await endRemoving(pool, organisationId);
}
