import { basename, dirname } from 'node:path';
import { realPathOf } from '../../files/find-files.ts';
import { notWritten } from '../../files/write-whole.ts';
import { openDisk, PullFolderError } from '../../lake/disk.ts';
import { lockFolder, type Unlock } from '../../lake/folder-lock.ts';
import { UsageError } from '../options/command.ts';

/** Throws if another run may be sending the same files, because this one was paused and its lock was removed. */
export type Guard = () => Promise<void>;

/** Locks the files, so that no other run uploads them at the same time. */
export async function lockFiles(
  files: readonly { readonly path: string }[],
): Promise<{ unlock(): Promise<void>; readonly guard: Guard }> {
  const disk = openDisk();
  const namesIn = new Map<string, string[]>();
  for (const { path } of files) {
    if (path === '-') continue;
    const file = realPathOf(path);
    namesIn.set(dirname(file), [...(namesIn.get(dirname(file)) ?? []), basename(file)]);
  }
  const unlocks: Unlock[] = [];
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
  const guard = async () => {
    for (const { isHeld } of unlocks) if (!(await isHeld())) throw lockLost();
  };
  return { unlock, guard };
}

function lockLost(): UsageError {
  return new UsageError(
    'The lock of these files was removed while this run was paused, and another run may be sending them. This run has stopped.',
    'When no other run is sending them, run the same command again with --resume. If there is nothing to resume, see the result of the other run.',
  );
}
