// records/: stored records: their tables, reading them back, exporting and counting them.

const firstBytes = 16 * 1024;
const newline = 0x0a;

/**
 * Buffers lines of an export as bytes. Lines that wait for a slow reader outlive the young generation, and as strings
 * they would grow the heap by 100 MB before V8 collects them; memory outside the heap makes it collect earlier.
 */
export class LineBuffer {
  #bytes: Buffer | undefined;
  #length = 0;
  /** Later buffers are sized by how full the previous one was, so that they need not grow. */
  #expected = firstBytes;

  add(line: string): void {
    // A UTF-16 unit takes at most three bytes.
    const needed = this.#length + line.length * 3 + 1;
    let bytes = this.#bytes ?? Buffer.allocUnsafeSlow(Math.max(this.#expected, needed));
    if (bytes.length < needed) {
      const grown = Buffer.allocUnsafeSlow(Math.max(bytes.length * 2, needed));
      bytes.copy(grown, 0, 0, this.#length);
      bytes = grown;
    }
    this.#bytes = bytes;
    this.#length += bytes.write(line, this.#length);
    bytes[this.#length++] = newline;
  }

  /** The lines added since the last call. */
  take(): Buffer {
    const taken = this.#bytes?.subarray(0, this.#length) ?? Buffer.alloc(0);
    if (this.#bytes) this.#expected = Math.max(firstBytes, Math.ceil(this.#length * 1.1));
    this.#bytes = undefined;
    this.#length = 0;
    return taken;
  }
}
