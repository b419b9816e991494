import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { openFile } from '../../src/files/reading/read-file.ts';
import type { FileFailure, FileOptions, FileRecord } from '../../src/parsing/opened-file.ts';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Creates an empty folder, which is removed after the file's tests. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'intake-files-'));
  folders.push(folder);
  return folder;
}

/** Writes a file with this name into a new folder and returns its path. */
export function makeFile(name: string, content: string | Uint8Array): string {
  const path = join(makeFolder(), name);
  writeFileSync(path, content);
  return path;
}

/** Reads a file and returns all its records and failures. */
export async function readAll(path: string, options: FileOptions = {}) {
  const file = await openFile(path, options);
  const records: FileRecord[] = [];
  const failures: FileFailure[] = [];
  for await (const chunk of file.chunks()) {
    records.push(...chunk.records);
    failures.push(...chunk.failures);
  }
  return { file, records, failures, sent: records.map(({ record }) => record) };
}

export const ids = {
  shop: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
  transaction: 'e98e7d6c-5b43-4a21-8c09-5d86d5c4a312',
  customer: 'c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11',
  user: '7b0e4c52-95d1-4a3e-8f26-6c1d9e0b3a42',
};
