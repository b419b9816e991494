import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A small file system of the test's own that can be filled. */
export interface Disk {
  fill(): void;
  empty(): void;
  remove(): void;
}

/** Undefined where nothing can be mounted: without root, or in a container that may not. */
export function mountDisk(): Disk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'intake-disk-'));
  const [image, mounted] = [join(folder, 'image'), join(folder, 'mounted')];
  mkdirSync(mounted);
  execFileSync('truncate', ['--size', '16M', image]);
  const made = spawnSync('mkfs.ext4', ['-q', image]).status === 0;
  if (!made || spawnSync('mount', ['-o', 'loop', image, mounted]).status !== 0) {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const file = join(mounted, 'write-ahead-log');
  return {
    fill() {
      const { bavail, bsize } = statfsSync(mounted);
      writeFileSync(file, Buffer.alloc(Math.floor(bavail * bsize * 0.96)));
    },
    empty: () => rmSync(file),
    remove() {
      execFileSync('umount', [mounted]);
      rmSync(folder, { recursive: true });
    },
  };
}
