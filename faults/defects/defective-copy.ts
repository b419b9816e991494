import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Defect } from './defects.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A copy of the built program with a defect. */
export interface DefectiveCopy {
  readonly main: string;
  remove(): void;
}

export function makeDefectiveCopy({ name, edits }: Defect): DefectiveCopy {
  const folder = mkdtempSync(join(tmpdir(), 'intake-defect-'));
  for (const path of ['dist', 'migrations', 'package.json', 'openapi.json', 'admin-openapi.json'])
    cpSync(join(root, path), join(folder, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, text, by } of edits) {
    const path = join(folder, 'dist', file);
    const parts = readFileSync(path, 'utf8').split(text);
    if (parts.length !== 2)
      throw new Error(`${name}: dist/${file} contains ${parts.length - 1} times, not once: ${text}`);
    writeFileSync(path, parts.join(by));
  }
  return {
    main: join(folder, 'dist/main.js'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
