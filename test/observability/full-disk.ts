import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A small separate file system that can be filled. */
export interface Disk {
  readonly folder: string;
  /** Fills the disk, but leaves this share of the free space. */
  fill(left: number): void;
  empty(): void;
  remove(): void;
}

/** Mounts a disk. Returns undefined if that is not possible, for example without root or in a restricted container. */
export function mountDisk(megabytes: number): Disk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'intake-disk-'));
  // PostgreSQL runs as another account and needs access.
  chmodSync(folder, 0o755);
  const [image, mounted] = [join(folder, 'image'), join(folder, 'mounted')];
  mkdirSync(mounted);
  execFileSync('truncate', ['--size', `${megabytes}M`, image]);
  const made = spawnSync('mkfs.ext4', ['-q', '-m', '0', image]).status === 0;
  if (!made || spawnSync('mount', ['-o', 'loop', image, mounted]).status !== 0) {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const file = join(mounted, 'something-large');
  return {
    folder: mounted,
    fill(left) {
      const { bavail, bsize } = statfsSync(mounted);
      const chunk = Buffer.alloc(1024 * 1024);
      for (let bytes = bavail * bsize * (1 - left); bytes > 0; bytes -= chunk.length) {
        try {
          writeFileSync(file, chunk.subarray(0, Math.min(bytes, chunk.length)), { flag: 'a' });
        } catch (error) {
          if ((error as { code?: string }).code === 'ENOSPC') return;
          throw error;
        }
      }
    },
    empty: () => rmSync(file),
    remove() {
      // Unmount lazily, because this process keeps a PostgreSQL log on the disk open.
      execFileSync('umount', ['--lazy', mounted]);
      rmSync(folder, { recursive: true });
    },
  };
}
