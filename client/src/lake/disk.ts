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
  readonly pid: number;
}

interface Files {
  mkdir(path: string, options: { recursive: boolean; mode: number }): Promise<unknown>;
  lstat(path: string): Promise<Stats>;
  open(path: string, flags: string | number, mode?: number): Promise<Handle>;
  readdir(path: string): Promise<string[]>;
  readFile(path: string, encoding: 'utf8'): Promise<string>;
  rename(from: string, to: string): Promise<void>;
  rm(path: string, options: { force: boolean; recursive?: boolean }): Promise<void>;
  rmdir(path: string): Promise<void>;
}

interface Stats {
  readonly size: number;
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

/** Thrown if a pull cannot or must not write to a folder. */
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
