// records/: the stored records, with their tables and the code that reads, exports and counts them.

const firstBytes = 16 * 1024;
const newline = 0x0a;

/**
 * Lines that wait for a slow reader outlive V8's young generation. As strings, they would grow the heap by 100 MB
 * before V8 collects them. Off-heap memory makes V8 collect earlier.
 */
export class LineBuffer {
  #bytes: Buffer | undefined;
  #length = 0;
  /** Based on how full the previous buffer was, so that buffers rarely have to grow. */
  #expected = firstBytes;

  add(line: string): void {
    // A UTF-16 code unit takes at most three bytes.
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

  take(): Buffer {
    const taken = this.#bytes?.subarray(0, this.#length) ?? Buffer.alloc(0);
    if (this.#bytes) this.#expected = Math.max(firstBytes, Math.ceil(this.#length * 1.1));
    this.#bytes = undefined;
    this.#length = 0;
    return taken;
  }
}
