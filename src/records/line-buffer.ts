// records/: stored records: their tables, reading them back, exporting and counting them.

const firstBytes = 16 * 1024;
const newline = 0x0a;

/**
 * Lines on their way out, as bytes. What waits for a slow reader outlives the young generation, and as strings it would
 * fill the heap by 100 MB before V8 looks for what is dead; of bytes outside the heap it looks after earlier.
 */
export class LineBuffer {
  #bytes: Buffer | undefined;
  #length = 0;
  /** Buffers after the first are made as large as the one before was filled, so that they need not grow. */
  #expected = firstBytes;

  add(line: string): void {
    // No character takes more than three bytes for each of its units.
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

  /** What was added since the last time. */
  take(): Buffer {
    const taken = this.#bytes?.subarray(0, this.#length) ?? Buffer.alloc(0);
    if (this.#bytes) this.#expected = Math.max(firstBytes, Math.ceil(this.#length * 1.1));
    this.#bytes = undefined;
    this.#length = 0;
    return taken;
  }
}
