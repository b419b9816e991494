import type { LakeStore, StoredFile } from '../store/lake-store.ts';
import { unfinished } from '../store/store-paths.ts';
import { tableLimits } from './limits.ts';

interface Known {
  readonly files: ReadonlyMap<string, unknown>;
  readonly removed: ReadonlyMap<string, number>;
  /** Whether a pending commit may still add this file. False for files that are not data files. */
  readonly canBeAdded: (path: string) => boolean;
  readonly checkpointVersion: number;
}

/** Deletes files that were removed from the table, files that were never added to it, and old log entries. */
export async function vacuum(store: LakeStore, folder: string, known: Known, olderThan: Date): Promise<void> {
  await removeFrom(store, folder, (stored) => {
    const path = stored.path.slice(folder.length + 1);
    const isLog = path.startsWith(log);
    return isLog ? isOldEntry(path, stored, known) : isUnused(path, stored, known, olderThan);
  });
}

/**
 * Also deletes files that are still being stored, in which case their writer fails and starts over. The log is kept,
 * because it contains no row data.
 */
export async function purge(
  store: LakeStore,
  table: string,
  folder: string,
  isGone: (path: string) => boolean,
): Promise<void> {
  await removeFrom(store, folder, (stored) => {
    const path = stored.path.slice(table.length + 1);
    if (path.startsWith(log)) return false;
    return path.split('/').at(-1)?.startsWith(unfinished) || isGone(path);
  });
}

const log = '_delta_log/';

async function removeFrom(
  store: LakeStore,
  folder: string,
  isRemoved: (stored: StoredFile) => boolean,
): Promise<void> {
  for await (const stored of store.list(folder)) if (isRemoved(stored)) await store.remove(stored.path);
}

function isUnused(path: string, { modifiedAt }: StoredFile, known: Known, olderThan: Date): boolean {
  if (known.files.has(path)) return false;
  const removedMs = known.removed.get(path);
  if (removedMs !== undefined) return removedMs < olderThan.getTime();
  // The file was abandoned, is still being written, or was removed so long ago that the log no longer lists it.
  if (path.includes(unfinished)) return modifiedAt.getTime() < Date.now() - tableLimits.orphansKeptMs;
  return !known.canBeAdded(path);
}

const entry = /^_delta_log\/(\d{20})\.(json|checkpoint\.parquet)$/;

/** Entries are no longer needed once a checkpoint contains them. */
function isOldEntry(path: string, { modifiedAt }: StoredFile, { checkpointVersion }: Known): boolean {
  if (path === '_delta_log/_last_checkpoint') return false;
  const version = entry.exec(path)?.[1];
  if (version === undefined) return modifiedAt.getTime() < Date.now() - tableLimits.orphansKeptMs;
  return Number(version) < checkpointVersion && modifiedAt.getTime() < Date.now() - tableLimits.logKeptMs;
}
