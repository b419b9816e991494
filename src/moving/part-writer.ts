import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import type { UploadType } from '../registry/upload-types.ts';
import { type Part, partName } from './manifest.ts';

const newline = 0x0a;

export class PartWriter {
  rows = 0;
  /** The size of the lines before compression. */
  lineBytes = 0;
  readonly #type: UploadType;
  readonly #file: string;
  readonly #compressor = createZstdCompress();
  readonly #hash = createHash('sha256');
  readonly #written: Promise<void>;
  #bytes = 0;
  #drained: Promise<unknown> | undefined;
  #lastLine: Buffer = Buffer.alloc(0);

  constructor(folder: string, type: UploadType, number: number) {
    this.#type = type;
    this.#file = partName(type, number);
    // The file is flushed to disk before it counts as written. Only its owner may read it, because it contains personal
    // data.
    const target = createWriteStream(join(folder, this.#file), { flags: 'wx', mode: 0o600, flush: true });
    this.#written = pipeline(this.#compressor, (source) => this.#hashed(source), target);
    // `write` and `finish` report the error.
    this.#written.catch(() => {});
  }

  /** Compresses a chunk while the next one is being read. */
  async write(lines: Buffer): Promise<void> {
    if (this.#drained) await Promise.race([this.#drained, this.#written]);
    this.#drained = this.#compressor.write(lines) ? undefined : once(this.#compressor, 'drain');
    this.#drained?.catch(() => {});
    for (let at = lines.indexOf(newline); at >= 0; at = lines.indexOf(newline, at + 1)) this.rows++;
    this.lineBytes += lines.length;
    this.#lastLine = lines.subarray(lines.lastIndexOf(newline, lines.length - 2) + 1);
  }

  last(field: string): string {
    return JSON.parse(this.#lastLine.toString())[field];
  }

  async finish(): Promise<Part> {
    this.#compressor.end();
    await this.#written;
    return {
      type: this.#type,
      file: this.#file,
      rows: this.rows,
      bytes: this.#bytes,
      sha256: this.#hash.digest('hex'),
    };
  }

  abort(): void {
    this.#compressor.destroy();
  }

  async *#hashed(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      this.#hash.update(chunk);
      this.#bytes += chunk.length;
      yield chunk;
    }
  }
}
