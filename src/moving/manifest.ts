import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { organisationName, slugProblem } from '../operator/rules.ts';
import { isUuid } from '../registry/fields.ts';
import { readDateTime } from '../registry/times.ts';
import { type UploadType, uploadTypes } from '../registry/upload-types.ts';
import type { FileClaim } from '../runs/move-file-claims.ts';
import { moveLimits } from './limits.ts';

/** Thrown if a move cannot be done as requested. The message is for the operator. */
export class MoveRefused extends Error {}

/** The manifest is written last, so a folder without it is not a finished export. */
export const manifestName = 'manifest.json';

export const format = 'intake-organisation';
export const formatVersion = 1;

/** Contains rows of one type as NDJSON, compressed with Zstandard. */
export interface Part {
  readonly type: UploadType;
  readonly file: string;
  readonly rows: number;
  /** The size of the compressed file. */
  readonly bytes: number;
  readonly sha256: string;
}

export interface Manifest {
  readonly format: typeof format;
  readonly format_version: typeof formatVersion;
  readonly service_version: string;
  readonly organisation: { readonly slug: string; readonly name: string; readonly created_at: string };
  /** When the export started. */
  readonly created_at: string;
  /** Created before the first row was read. The old service's change feed continues from it. */
  readonly changes_cursor: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly files: readonly Part[];
  /** Absent in exports of earlier versions. */
  readonly file_claims?: readonly FileClaim[];
}

export const partName = (type: UploadType, number: number) =>
  `${type}-${String(number).padStart(6, '0')}.ndjson.zst`;

/** Only files with such names are read, so a manifest cannot point outside its folder. */
export const partPattern = /^[a-z-]+-\d{6}\.ndjson\.zst$/;

export function countsOf(parts: readonly Part[]): Record<string, number> {
  return Object.fromEntries(
    uploadTypes.map((type) => [
      type,
      parts.filter((part) => part.type === type).reduce((sum, { rows }) => sum + rows, 0),
    ]),
  );
}

/** The hash of the manifest identifies the export. */
export async function readManifest(folder: string): Promise<{ manifest: Manifest; sha256: string }> {
  const text = await readBounded(folder);
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    throw new MoveRefused(`${manifestName} in ${folder} is not JSON; export again`);
  }
  const manifest = checkManifest(read, folder);
  return { manifest, sha256: createHash('sha256').update(text).digest('hex') };
}

async function readBounded(folder: string): Promise<string> {
  await using file = await open(join(folder, manifestName)).catch((error: NodeJS.ErrnoException) => {
    throw new MoveRefused(
      error.code === 'ENOENT'
        ? `${folder} has no ${manifestName}, so it is not a finished export`
        : `${manifestName} in ${folder} cannot be read (${error.code})`,
    );
  });
  const found = await file.stat();
  // A device file has no size, and reading it may never end.
  if (!found.isFile() || found.size > moveLimits.manifestBytesMax)
    throw new MoveRefused(`${manifestName} in ${folder} is too large, or not a file`);
  return await file.readFile('utf8');
}

function checkManifest(read: unknown, folder: string): Manifest {
  const manifest = (read ?? {}) as Manifest;
  if (manifest.format !== format)
    throw new MoveRefused(
      `${manifestName} in ${folder} does not describe an organisation that Intake exported`,
    );
  if (manifest.format_version !== formatVersion)
    throw new MoveRefused(
      `the export in ${folder} has the format version ${shown(manifest.format_version)}, and this program reads ` +
        `version ${formatVersion}; import it with the version of intake-server that wrote it (${shown(manifest.service_version)})`,
    );
  const { files, counts, organisation } = manifest;
  const isWhole =
    Array.isArray(files) &&
    files.every(isPart) &&
    new Set(files.map(({ file }) => file)).size === files.length &&
    typeof organisation?.name === 'string' &&
    typeof organisation.slug === 'string' &&
    slugProblem(organisation.slug) === undefined &&
    typeof organisationName.read(organisation.name) === 'string' &&
    (manifest.file_claims === undefined ||
      (Array.isArray(manifest.file_claims) && manifest.file_claims.every(isClaim))) &&
    Object.entries(countsOf(files)).every(([type, count]) => counts?.[type] === count);
  if (!isWhole)
    throw new MoveRefused(`${manifestName} in ${folder} was not written by an export; export again`);
  return manifest;
}

/** Returns the value if it is safe to print on a terminal, and `unknown` otherwise. */
function shown(read: unknown): string {
  return /^[\w.+-]{1,50}$/.test(String(read)) ? String(read) : 'unknown';
}

function isPart(part: Part): boolean {
  return (
    uploadTypes.includes(part?.type) &&
    typeof part.file === 'string' &&
    partPattern.test(part.file) &&
    Number.isSafeInteger(part.rows) &&
    part.rows > 0 &&
    Number.isSafeInteger(part.bytes) &&
    part.bytes > 0 &&
    /^[0-9a-f]{64}$/.test(part.sha256)
  );
}

function isClaim(claim: FileClaim): boolean {
  return (
    /^[0-9a-f]{64}$/.test(claim?.sha256) &&
    isUuid(claim.run_id) &&
    typeof claim.claimed_at === 'string' &&
    readDateTime(claim.claimed_at) !== undefined
  );
}

export async function verifyParts(
  folder: string,
  { files }: Manifest,
  report: (file: string) => void,
): Promise<void> {
  for (const part of files) {
    report(part.file);
    const path = join(folder, part.file);
    const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
      throw new MoveRefused(
        error.code === 'ENOENT'
          ? `${part.file} is missing in ${folder}; copy it there, or export again`
          : `${part.file} in ${folder} cannot be read (${error.code})`,
      );
    });
    if (!found.isFile() || found.size !== part.bytes || (await hashOf(path)) !== part.sha256)
      throw hasChanged(part, folder);
  }
}

export function hasChanged({ file }: Part, folder: string): MoveRefused {
  return new MoveRefused(
    `${file} in ${folder} is not the file that was exported: its size or its SHA-256 differs from ${manifestName}; ` +
      'copy it again, or export again',
  );
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: moveLimits.readBytes }))
    hash.update(chunk);
  return hash.digest('hex');
}
