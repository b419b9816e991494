import { type Disk, PullFolderError } from './disk.ts';

const lockName = /^\.intake-pull-(\d+)-[0-9a-f-]{36}$/;

/** The names of the locks that this process holds. */
const held = new Set<string>();

/**
 * Locks the folder, because two pulls into the same folder would write to the same files. Each pull creates its own lock
 * and then looks for others. No name is used twice, so deleting the lock of a killed process cannot release another one.
 * If two pulls start at the same moment, both can fail, but they never both continue.
 */
export async function lockFolder(disk: Disk, folder: string): Promise<() => Promise<void>> {
  const name = `.intake-pull-${disk.pid}-${crypto.randomUUID()}`;
  const unlock = async () => {
    await disk.rm(`${folder}/${name}`, { force: true });
    held.delete(name);
  };
  held.add(name);
  try {
    await (await disk.open(`${folder}/${name}`, 'wx', 0o600)).close();
    for (const other of await disk.readdir(folder)) {
      const pid = Number(lockName.exec(other)?.[1] ?? 0);
      if (pid === 0 || other === name) continue;
      if (pid === disk.pid ? held.has(other) : disk.isRunning(pid))
        throw new PullFolderError(
          `Another pull writes to ${folder}, as process ${pid}. Wait until it has ended; if it is not running, delete ${folder}/${other}.`,
        );
      await disk.rm(`${folder}/${other}`, { force: true });
    }
  } catch (error) {
    await unlock();
    throw error;
  }
  return unlock;
}
