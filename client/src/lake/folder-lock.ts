import { limits } from '../limits.ts';
import { wait } from '../wait.ts';
import { codeOf, type Disk, PullFolderError } from './disk.ts';

const lockName = /^\.intake-(pull|upload)-(\d+)-[0-9a-f-]{36}$/;

/** The names of the locks that this process holds. */
const held = new Set<string>();

/** Two uploads that start at the same moment see each other. Each steps back for a random time and tries again. */
const triesMax = 5;
const stepBackMs = 200;

/** Releases the lock. */
export interface Unlock {
  (): Promise<void>;
  /** Returns false once another run has removed the lock, as it does if this process was paused. Touches the lock. */
  isHeld(): Promise<boolean>;
}

/** The process that holds a lock. Locks of older versions are empty. */
interface Holder {
  /** Processes see each other only on the same machine, since the same boot, and in the same container. */
  readonly machine?: string;
  readonly host?: string;
  readonly pid: number;
  /** When the process was started. Another process may have its pid by now. */
  readonly started?: string | undefined;
  /** The names of the locked files in the folder, or undefined if the whole folder is locked. */
  readonly names?: readonly string[] | undefined;
}

export interface Locked {
  readonly job: 'pull' | 'upload';
  readonly names?: readonly string[];
}

/**
 * Locks a folder, or some of its files, because two runs must not write to the same files. Each run creates its own lock and
 * then looks for others. No name is used twice, so deleting the lock of a killed process cannot release another one. Never
 * two runs continue.
 */
export async function lockFolder(
  disk: Disk,
  folder: string,
  locked: Locked = { job: 'pull' },
): Promise<Unlock> {
  for (let tries = 1; ; tries++) {
    const unlock = await createLock(disk, folder, locked);
    try {
      const other = await findOther(disk, folder, unlock.lock, locked);
      if (other === undefined) return unlock;
      await unlock();
      if (tries === triesMax || locked.job === 'pull') throw inUse(disk, folder, other, locked);
    } catch (error) {
      await unlock();
      throw error;
    }
    await wait(Math.random() * stepBackMs);
  }
}

async function createLock(
  disk: Disk,
  folder: string,
  { job, names }: Locked,
): Promise<Unlock & { readonly lock: string }> {
  const lock = `.intake-${job}-${disk.pid}-${crypto.randomUUID()}`;
  const path = `${folder}/${lock}`;
  const { machine, host } = await disk.machine();
  const holder: Holder = { machine, host, pid: disk.pid, started: await disk.startOf(disk.pid), names };
  held.add(lock);
  const touch = setInterval(() => disk.touch(path).catch(() => {}), limits.lockTouchedEveryMs);
  (touch as { unref?: () => void }).unref?.();
  const unlock = async () => {
    clearInterval(touch);
    await disk.rm(path, { force: true });
    held.delete(lock);
  };
  try {
    // The lock appears under its name only when it is complete.
    await disk.writeFile(`${path}.new`, JSON.stringify(holder), { mode: 0o600, flag: 'wx' });
    await disk.rename(`${path}.new`, path);
  } catch (error) {
    await disk.rm(`${path}.new`, { force: true });
    await unlock();
    throw error;
  }
  const isHeld = () =>
    disk.touch(path).then(
      () => true,
      (error) => codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ESTALE',
    );
  return Object.assign(unlock, { lock, isHeld });
}

interface Found extends Holder {
  readonly lock: string;
}

/** Returns a live run that uses the same files. Deletes the locks of runs that have ended. */
async function findOther(
  disk: Disk,
  folder: string,
  own: string,
  locked: Locked,
): Promise<Found | undefined> {
  for (const lock of await disk.readdir(folder)) {
    const [, job, pid] = lockName.exec(lock) ?? [];
    if (job !== locked.job || lock === own) continue;
    const text = await disk.readFile(`${folder}/${lock}`, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const found = { ...(parsed(text) ?? { pid: Number(pid) }), lock };
    if (!overlaps(found.names, locked.names)) continue;
    if (await isAlive(disk, `${folder}/${lock}`, found)) return found;
    await disk.rm(`${folder}/${lock}`, { force: true });
  }
  return undefined;
}

function parsed(text: string): Holder | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function overlaps(some: readonly string[] | undefined, others: readonly string[] | undefined): boolean {
  return !some || !others || some.some((name) => others.includes(name));
}

async function isAlive(disk: Disk, path: string, { machine, pid, started, lock }: Found): Promise<boolean> {
  if (machine === undefined || machine === (await disk.machine()).machine) {
    if (pid === disk.pid) return held.has(lock);
    return disk.isRunning(pid) && (started === undefined || started === (await disk.startOf(pid)));
  }
  // The process runs on another machine or in another container, or it ran before this machine was restarted.
  const before = await disk.touchedMs(path);
  for (let waitedMs = 0; waitedMs < limits.lockWatchedForMs; waitedMs += limits.lockTouchedEveryMs) {
    await wait(limits.lockTouchedEveryMs);
    const now = await disk.touchedMs(path);
    if (now === undefined) return false;
    if (now !== before) return true;
  }
  return false;
}

function inUse(
  disk: Disk,
  folder: string,
  { pid, host, lock, names }: Found,
  locked: Locked,
): PullFolderError {
  const there = host === undefined || pid === disk.pid ? '' : ` on ${host}`;
  if (locked.job === 'pull')
    return new PullFolderError(
      `Another pull writes to ${folder}, as process ${pid}${there}. Wait until it has ended; if it is not running, delete ${folder}/${lock}.`,
    );
  const name = names?.find((one) => locked.names?.includes(one)) ?? '';
  return new PullFolderError(
    `Another intake upload is sending ${folder}/${name}, as process ${pid}${there}. Wait until it has ended. If it is not running, delete ${folder}/${lock} and run this command again with --resume.`,
  );
}
