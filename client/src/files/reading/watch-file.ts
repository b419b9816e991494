import { stat } from 'node:fs/promises';
import { FileError } from '../../parsing/file-error.ts';

const checkedEveryMs = 500;

export async function sizeOf(path: string): Promise<number> {
  return (await statsOf(path)).size;
}

async function statsOf(path: string) {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new FileError('there is no such file; check its name and folder');
    throw new FileError(`it cannot be read (${error.code}); check that you may read it`);
  });
  if (stats.isDirectory()) throw new FileError('it is a folder; specify the files in it');
  return stats;
}

/** Notices that a file changes while it is read. Otherwise, a part of it could be taken for the whole file. */
export async function watchFile(path: string) {
  const before = await statsOf(path);
  let checkedMs = performance.now();
  return {
    bytes: before.size,
    /** Throws if the file has changed. Must be called before the end of the file is used. */
    async check(isEnd: boolean): Promise<void> {
      if (!isEnd && performance.now() - checkedMs < checkedEveryMs) return;
      checkedMs = performance.now();
      const now = await statsOf(path);
      if (now.size !== before.size || now.mtimeMs !== before.mtimeMs || now.ino !== before.ino)
        throw new FileError('it changed while it was read; wait until it is written completely');
    },
  };
}
