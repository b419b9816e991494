import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import { firstUuid } from '../registry/uuid-v7.ts';
import { moveLimits } from './limits.ts';
import { hasChanged, MoveRefused, type Part } from './manifest.ts';

/** The lines of a part that are stored together, like an upload's body. */
export interface RequestLines {
  /** Within its part, counted from 1. */
  readonly number: number;
  readonly body: Buffer;
  readonly rows: number;
}

const newline = 0x0a;

/** An exported interaction starts with its id. The id is not imported, because the interaction gets a new one. */
const interactionStart = Buffer.from('{"interaction_id":"');
const interactionIdEnd = interactionStart.length + firstUuid.length + '",'.length;

/** The result depends only on the part's bytes, so an import that continues gets the same requests. */
export async function* requestsOf(folder: string, part: Part): AsyncGenerator<RequestLines> {
  const hash = createHash('sha256');
  const cutter = new RequestCutter(part);
  const source = createReadStream(join(folder, part.file), { highWaterMark: moveLimits.readBytes });
  const decompressor = createZstdDecompress({ chunkSize: moveLimits.readBytes });
  const fed = pipeline(
    source,
    async function* hashed(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    },
    decompressor,
  );
  // The error is reported when reading from the decompressor.
  fed.catch(() => {});
  let [rows, bytes] = [0, 0];
  for await (const chunk of decompressor as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > moveLimits.partBytesMax)
      throw new MoveRefused(`${part.file} is larger than any file of an export; export again`);
    for (const request of cutter.add(chunk)) {
      rows += request.rows;
      // A few bytes can decompress to a huge number of rows.
      if (rows > part.rows) throw otherRows(part, `more than ${part.rows}`);
      yield request;
    }
  }
  for (const request of cutter.end()) {
    rows += request.rows;
    if (rows > part.rows) throw otherRows(part, String(rows));
    yield request;
  }
  // The file was verified before the import started, so it differs only if it has been replaced since then.
  if (hash.digest('hex') !== part.sha256) throw hasChanged(part, folder);
  if (rows !== part.rows) throw otherRows(part, String(rows));
}

function otherRows({ file, rows }: Part, found: string): MoveRefused {
  return new MoveRefused(`${file} has ${found} rows, but its manifest states ${rows}; export again`);
}

/** Each request has its own buffer, which is transferred to a worker thread. */
class RequestCutter {
  readonly #part: Part;
  #number = 0;
  #rows = 0;
  #bytes = 0;
  #lines: Buffer[] = [];
  /** The start of a line whose end has not been read yet. */
  #rest: Buffer = Buffer.alloc(0);

  constructor(part: Part) {
    this.#part = part;
  }

  *add(chunk: Buffer): Generator<RequestLines> {
    let from = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      const line = chunk.subarray(from, end + 1);
      from = end + 1;
      this.#take(this.#rest.length > 0 ? Buffer.concat([this.#rest, line]) : line);
      this.#rest = empty;
      if (this.#rows === moveLimits.requestRows || this.#bytes >= moveLimits.requestBytes) yield this.#cut();
    }
    if (from < chunk.length) this.#rest = Buffer.concat([this.#rest, chunk.subarray(from)]);
    if (this.#rest.length > moveLimits.lineBytesMax)
      throw new MoveRefused(`${this.#part.file} has a line that is too long; export again`);
  }

  *end(): Generator<RequestLines> {
    if (this.#rest.length > 0)
      throw new MoveRefused(`${this.#part.file} ends in the middle of a row; export again`);
    if (this.#rows > 0) yield this.#cut();
  }

  #take(line: Buffer): void {
    const kept = this.#part.type === 'interactions' ? this.#withoutId(line) : [line];
    this.#lines.push(...kept);
    this.#bytes += line.length;
    this.#rows++;
  }

  #withoutId(line: Buffer): Buffer[] {
    if (!line.subarray(0, interactionStart.length).equals(interactionStart))
      throw new MoveRefused(`${this.#part.file} has a row without its interaction_id; export again`);
    return [openBrace, line.subarray(interactionIdEnd)];
  }

  #cut(): RequestLines {
    const length = this.#lines.reduce((sum, line) => sum + line.length, 0);
    const body = Buffer.allocUnsafeSlow(length);
    let at = 0;
    for (const line of this.#lines) at += line.copy(body, at);
    const request = { number: ++this.#number, body, rows: this.#rows };
    this.#lines = [];
    this.#rows = 0;
    this.#bytes = 0;
    return request;
  }
}

const empty = Buffer.alloc(0);
const openBrace = Buffer.from('{');
