import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, mkdir, open, opendir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkedPath, probeCreate, unfinished } from './store-paths.ts';

/** A local folder. Written files survive a power failure, because a commit guarantees that its files can be read. */
export class FileStore {
  readonly #root: string;

  constructor(url: URL) {
    this.#root = resolve(fileURLToPath(url));
  }

  async read(path: string): Promise<Buffer | undefined> {
    return readFile(this.#at(path)).catch(unlessMissing);
  }

  async readRange(path: string, from: number, to: number): Promise<Buffer | undefined> {
    await using file = await open(this.#at(path)).catch(unlessMissing);
    if (!file) return undefined;
    const bytes = Buffer.alloc(to - from);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
    return bytes.subarray(0, bytesRead);
  }

  async create(path: string, bytes: Buffer): Promise<boolean> {
    const target = this.#at(path);
    const written = await this.#temporaryPath(target);
    try {
      await writeThrough(written, bytes);
      // A hard link never replaces an existing file, and the file is complete before it gets its name.
      await link(written, target);
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return bytes.equals(await readFile(target));
      throw error;
    } finally {
      await rm(written, { force: true });
    }
    await flushFolder(dirname(target));
    return true;
  }

  async putFile(path: string, localFile: string): Promise<void> {
    const target = this.#at(path);
    const written = await this.#temporaryPath(target);
    try {
      await copyFile(localFile, written, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
      await flush(written);
      await rename(written, target);
    } finally {
      await rm(written, { force: true });
    }
    await flushFolder(dirname(target));
  }

  async getFile(path: string, localFile: string): Promise<void> {
    const source = this.#at(path);
    await link(source, localFile).catch(async (error: unknown) => {
      if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'].includes(codeOf(error) ?? '')) throw error;
      await copyFile(source, localFile, constants.COPYFILE_EXCL);
    });
  }

  async *list(folder: string): AsyncGenerator<{ path: string; modifiedAt: Date }> {
    const entries = await namesIn(this.#at(folder));
    for (const { name, isFolder } of entries) {
      const path = `${folder}/${name}`;
      if (isFolder) yield* this.list(path);
      else {
        const found = await stat(join(this.#root, path)).catch(unlessMissing);
        if (found) yield { path, modifiedAt: found.mtime };
      }
    }
  }

  async folders(): Promise<string[]> {
    const entries = await namesIn(this.#root);
    return entries.filter(({ isFolder }) => isFolder).map(({ name }) => name);
  }

  async remove(path: string): Promise<void> {
    const target = this.#at(path);
    await rm(target, { force: true });
    // Remove empty folders as well, because their names contain the organisation and the day.
    let folder = dirname(target);
    while (folder !== this.#root && (await removeIfEmpty(folder))) folder = dirname(folder);
    // Without this flush, the file could reappear after a power failure.
    await flushFolder(folder).catch(unlessMissing);
  }

  probe(): Promise<void> {
    return probeCreate(this);
  }

  #at(path: string): string {
    return join(this.#root, checkedPath(path));
  }

  /** Also creates the folder if necessary. */
  async #temporaryPath(target: string): Promise<string> {
    const folder = dirname(target);
    const made = await mkdir(folder, { recursive: true, mode: 0o700 });
    if (made !== undefined)
      for (let at = folder; at.length >= made.length; at = dirname(at)) await flushFolder(dirname(at));
    return join(folder, `${unfinished}${randomUUID()}`);
  }
}

async function writeThrough(path: string, bytes: Buffer): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(bytes);
  await file.sync();
}

async function flush(path: string): Promise<void> {
  await using file = await open(path, 'r+');
  await file.chmod(0o600);
  await file.sync();
}

async function removeIfEmpty(folder: string): Promise<boolean> {
  return rmdir(folder).then(
    () => true,
    (error: unknown) => {
      const code = codeOf(error) ?? '';
      if (['ENOTEMPTY', 'EEXIST'].includes(code)) return false;
      if (code === 'ENOENT') return true;
      throw error;
    },
  );
}

/** Without this, a new directory entry could be lost in a power failure. */
async function flushFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

/** The order is that of S3, which sorts by full path. A folder is therefore sorted as if its name ended in a slash. */
async function namesIn(path: string): Promise<{ name: string; isFolder: boolean }[]> {
  const folder = await opendir(path).catch(unlessMissing);
  if (!folder) return [];
  const found: { name: string; isFolder: boolean }[] = [];
  for await (const entry of folder) found.push({ name: entry.name, isFolder: entry.isDirectory() });
  const key = ({ name, isFolder }: (typeof found)[number]) => (isFolder ? `${name}/` : name);
  return found.sort((one, other) => (key(one) < key(other) ? -1 : 1));
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

function unlessMissing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}
