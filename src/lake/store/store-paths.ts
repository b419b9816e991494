import { randomUUID } from 'node:crypto';

/** Prefix of files that are being written. Table readers ignore them, and vacuum removes leftovers of a crash. */
export const unfinished = '_unfinished-';

const segment = /^[A-Za-z0-9_=-][A-Za-z0-9._=-]*$/;

/** Throws if the path could point outside its root folder or bucket prefix. */
export function checkedPath(path: string): string {
  if (path.length > 512 || !path.split('/').every((part) => segment.test(part)))
    throw new Error('not a valid path in a lake');
  return path;
}

interface Probed {
  read(path: string): Promise<Buffer | undefined>;
  create(path: string, bytes: Buffer): Promise<boolean>;
  remove(path: string): Promise<void>;
}

/**
 * Checks before the first write that `create` never replaces a file. A store that ignores `If-None-Match` would report
 * success, and two writers would then overwrite each other's commits.
 */
export async function probeCreate(store: Probed): Promise<void> {
  const path = `_probe-${randomUUID()}`;
  const first = Buffer.from('first');
  try {
    if (!(await store.create(path, first))) throw new Error('the probe file already exists in the lake');
    const isReplaced = await store.create(path, Buffer.from('second'));
    const kept = await store.read(path);
    if (isReplaced || !kept?.equals(first))
      throw new Error('the store of the lake replaces files that exist; it must support If-None-Match: *');
  } finally {
    await store.remove(path);
  }
}
