import { basename, dirname } from 'node:path';
import { realPathOf } from '../../files/find-files.ts';
import { notWritten } from '../../files/write-whole.ts';
import { openDisk, PullFolderError } from '../../lake/disk.ts';
import { lockFolder } from '../../lake/folder-lock.ts';
import { UsageError } from '../options/command.ts';

/** Locks the files, so that no other run uploads them at the same time. Returns a function that releases them. */
export async function lockFiles(files: readonly { readonly path: string }[]): Promise<() => Promise<void>> {
  const disk = openDisk();
  const namesIn = new Map<string, string[]>();
  for (const { path } of files) {
    if (path === '-') continue;
    const file = realPathOf(path);
    namesIn.set(dirname(file), [...(namesIn.get(dirname(file)) ?? []), basename(file)]);
  }
  const unlocks: (() => Promise<void>)[] = [];
  const unlock = async () => {
    for (const one of unlocks) await one();
  };
  try {
    for (const [folder, names] of namesIn)
      unlocks.push(await lockFolder(disk, folder, { job: 'upload', names }));
  } catch (error) {
    await unlock();
    if (error instanceof PullFolderError) throw new UsageError(error.message);
    throw notWritten((error as NodeJS.ErrnoException).path ?? 'The lock', error);
  }
  return unlock;
}
