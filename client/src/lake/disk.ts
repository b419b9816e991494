/**
 * The parts of Node that a pull uses. They are not imported statically, because browser bundlers would fail to resolve them.
 */
export interface Disk extends Files {
  readonly createHash: (algorithm: string) => Hash;
  /** Opens a file for reading and writing, and creates it if necessary. Rejects symbolic links. */
  openOwn(path: string): Promise<Handle>;
  /** Creates a folder unless it exists. Rejects symbolic links. */
  ownFolder(path: string): Promise<void>;
  /** Returns a file's size, or undefined if the file does not exist. */
  sizeOf(path: string): Promise<number | undefined>;
  /** Returns the names of a folder's entries. The list is empty if the folder does not exist or is a symbolic link. */
  namesIn(path: string): Promise<string[]>;
  isRunning(pid: number): boolean;
  /** Returns when a process was started, in the system's own form, or undefined if the system does not show it. */
  startOf(pid: number): Promise<string | undefined>;
  /** Returns the host's name, and an id that two processes share only if they see each other's pids. */
  machine(): Promise<{ readonly host: string; readonly machine: string }>;
  touch(path: string): Promise<void>;
  /** Returns when a file was last touched, or undefined if it does not exist. Opens the file, so that a file server is asked. */
  touchedMs(path: string): Promise<number | undefined>;
  readonly pid: number;
}

interface Files {
  mkdir(path: string, options: { recursive: boolean; mode: number }): Promise<unknown>;
  lstat(path: string): Promise<Stats>;
  open(path: string, flags: string | number, mode?: number): Promise<Handle>;
  readdir(path: string): Promise<string[]>;
  readFile(path: string, encoding: 'utf8'): Promise<string>;
  readlink(path: string): Promise<string>;
  rename(from: string, to: string): Promise<void>;
  rm(path: string, options: { force: boolean; recursive?: boolean }): Promise<void>;
  rmdir(path: string): Promise<void>;
  utimes(path: string, accessed: Date, modified: Date): Promise<void>;
  writeFile(path: string, text: string, options: { mode: number; flag: string }): Promise<void>;
}

interface Stats {
  readonly size: number;
  readonly mtimeMs: number;
  isDirectory(): boolean;
  isFile(): boolean;
}

export interface Handle {
  stat(): Promise<Stats>;
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  write(
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ bytesWritten: number }>;
  truncate(length: number): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface Hash {
  update(bytes: Uint8Array): unknown;
  digest(encoding: 'hex'): string;
}

interface Process {
  readonly pid: number;
  kill(pid: number, signal: number): void;
  getBuiltinModule?(name: string): unknown;
}

/** Thrown if a pull or an upload cannot or must not write to a folder. */
export class PullFolderError extends Error {
  override readonly name = 'PullFolderError';
}

export function openDisk(): Disk {
  const { process } = globalThis as { process?: Process };
  const get = process?.getBuiltinModule?.bind(process);
  if (!process || !get)
    throw new PullFolderError('A pull needs a file system: it runs in Node, Bun or Deno, not in a browser.');
  const files = get('node:fs/promises') as Files;
  const { constants } = get('node:fs') as { constants: Record<string, number> };
  const { hostname } = get('node:os') as { hostname(): string };
  const { createHash } = get('node:crypto') as Pick<Disk, 'createHash'>;
  const { O_RDWR = 0, O_CREAT = 0, O_NOFOLLOW = 0 } = constants;
  const found = (path: string) => files.lstat(path).catch(unlessMissing);
  return {
    ...files,
    createHash,
    pid: process.pid,
    openOwn: (path) => files.open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600),
    async ownFolder(path) {
      await files.mkdir(path, { recursive: false, mode: 0o700 }).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error;
      });
      if (!(await files.lstat(path)).isDirectory())
        throw new PullFolderError(`${path} is not a folder. Remove it, or pull into another folder.`);
    },
    async sizeOf(path) {
      const stats = await found(path);
      return stats?.isFile() ? stats.size : undefined;
    },
    namesIn: async (path) => ((await found(path))?.isDirectory() ? files.readdir(path) : []),
    async startOf(pid) {
      const status = await files.readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
      // The program's name, which is in parentheses, may contain spaces. The start is the 20th field after it.
      return status?.slice(status.lastIndexOf(')') + 2).split(' ')[19];
    },
    async machine() {
      const boot = await files.readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '');
      const container = await files.readlink('/proc/self/ns/pid').catch(() => '');
      return { host: hostname(), machine: [hostname(), boot.trim(), container].join(' ') };
    },
    touch: (path) => files.utimes(path, new Date(), new Date()),
    async touchedMs(path) {
      const handle = await files.open(path, 'r').catch(unlessMissing);
      try {
        return (await handle?.stat())?.mtimeMs;
      } finally {
        await handle?.close();
      }
    },
    isRunning(pid) {
      try {
        process.kill(pid, 0);
        return true;
      } catch (error) {
        return codeOf(error) === 'EPERM';
      }
    },
  };
}

export function codeOf(error: unknown): string | undefined {
  return (error as { code?: string }).code;
}

function unlessMissing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error;
}
