import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createZstdDecompress } from 'node:zlib';
import type { LakeStore } from '../../src/lake/store/lake-store.ts';

const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** Returns the files in a store's folder that contain any of the strings. */
export async function tracesInStore(
  store: LakeStore,
  folder: string,
  texts: readonly string[],
): Promise<string[]> {
  const found: string[] = [];
  for await (const { path } of store.list(folder)) {
    const bytes = await store.read(path);
    if (bytes && (await hasTrace(bytes, texts))) found.push(path);
  }
  return found;
}

/** Returns the files in a local folder that contain any of the strings. */
export async function tracesInFolder(folder: string, texts: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const { path, bytes } of filesIn(folder)) if (await hasTrace(bytes, texts)) found.push(path);
  return found;
}

/** Leaves out files that vanish meanwhile. A process that writes the lake renames or deletes its temporary files. */
function* filesIn(folder: string): Generator<{ path: string; bytes: Buffer }> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const bytes = entry.isFile() ? unlessGone(path) : undefined;
    if (bytes) yield { path, bytes };
  }
}

function unlessGone(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

/** Returns the contents of every file in a local folder, each followed by its decompressed parts. */
export async function* bytesInFolder(folder: string): AsyncGenerator<{ path: string; parts: Buffer[] }> {
  for (const { path, bytes } of filesIn(folder)) yield { path, parts: await partsOf(bytes) };
}

/** Like `bytesInFolder`, for a folder in a store. */
export async function* bytesInStore(
  store: LakeStore,
  folder: string,
): AsyncGenerator<{ path: string; parts: Buffer[] }> {
  for await (const { path } of store.list(folder)) {
    const bytes = await store.read(path);
    if (bytes) yield { path, parts: await partsOf(bytes) };
  }
}

async function partsOf(bytes: Buffer): Promise<Buffer[]> {
  const parts: Buffer[] = [bytes];
  for await (const frame of framesIn(bytes)) parts.push(frame);
  return parts;
}

async function* framesIn(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = bytes.indexOf(zstdMagic); at >= 0; at = bytes.indexOf(zstdMagic, at + 1))
    yield await firstFrame(bytes.subarray(at));
}

/** Searches the raw bytes, which include the statistics, and the compressed parts: pages and dictionaries. */
async function hasTrace(bytes: Buffer, texts: readonly string[]): Promise<boolean> {
  const wanted = texts.flatMap((text) => {
    const hex = text.replaceAll('-', '');
    return [Buffer.from(text), ...(/^[0-9a-f]{32}$/i.test(hex) ? [Buffer.from(hex, 'hex')] : [])];
  });
  const has = (part: Buffer) => wanted.some((one) => part.includes(one));
  if (has(bytes)) return true;
  for await (const frame of framesIn(bytes)) if (has(frame)) return true;
  return false;
}

/**
 * Decompresses the first frame. Tolerates errors, because the magic bytes can occur by chance, and other data follows
 * each frame.
 */
async function firstFrame(bytes: Buffer): Promise<Buffer> {
  const parts: Buffer[] = [];
  const decompress = createZstdDecompress();
  decompress.end(bytes);
  try {
    for await (const part of decompress) parts.push(part);
  } catch {}
  return Buffer.concat(parts);
}
