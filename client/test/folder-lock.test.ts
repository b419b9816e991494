import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openDisk } from '../src/lake/disk.ts';
import { lockFolder } from '../src/lake/folder-lock.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'intake-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const disk = openDisk();
const stale = `.intake-pull-999999999-${crypto.randomUUID()}`;

it('recognises a folder by any of its paths', async () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'lake'));
  symlinkSync('lake', join(folder, 'link'));
  const unlock = await lockFolder(disk, `${folder}/lake`);
  for (const other of [`${folder}/./lake`, `${folder}/lake/`, `${folder}/link`])
    await expect(lockFolder(disk, other)).rejects.toThrow(`Another pull writes to ${other}, as process`);
  await unlock();
  await (await lockFolder(disk, `${folder}/link`))();
  expect(readdirSync(join(folder, 'lake'))).toEqual([]);
});

it('two pulls that find the lock of a killed process never both continue', async () => {
  const folder = newFolder();
  writeFileSync(join(folder, stale), '');
  // The second process is about to delete the old lock while the first one starts and ends its attempt.
  let first: PromiseSettledResult<unknown> | undefined;
  const second = {
    ...disk,
    pid: process.ppid,
    async rm(path: string, options: { force: boolean }) {
      [first] = first ? [first] : await Promise.allSettled([lockFolder(disk, folder)]);
      await disk.rm(path, options);
    },
  };
  const [other] = await Promise.allSettled([lockFolder(second, folder)]);
  expect([first?.status, other.status].toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(readdirSync(folder)).toHaveLength(1);
});
