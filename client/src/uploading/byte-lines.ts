const encoder = new TextEncoder();
// `ignoreBOM` keeps a byte order mark in the text, because it is part of the record.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Strings in one buffer, with a separator byte between them. When thousands of separate strings were kept, garbage
 * collection cost more CPU time than the rest of the upload.
 */
export class ByteLines {
  readonly #separator: number;
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;
  readonly #starts: number[] = [];

  constructor(separator: string, bytesExpected = 65_536) {
    this.#separator = separator.charCodeAt(0);
    this.#bytes = new Uint8Array(bytesExpected);
  }

  get count(): number {
    return this.#starts.length;
  }

  get byteLength(): number {
    return this.#length;
  }

  add(text: string): void {
    // A UTF-16 unit takes up to three bytes.
    const needed = this.#length + 1 + text.length * 3;
    if (needed > this.#bytes.length) this.#grow(needed);
    if (this.#starts.length > 0) this.#bytes[this.#length++] = this.#separator;
    this.#starts.push(this.#length);
    this.#length += encoder.encodeInto(text, this.#bytes.subarray(this.#length)).written;
  }

  get(index: number): string {
    return decoder.decode(this.between(index, index + 1));
  }

  /** Returns the strings from `from` up to but not including `to`, with separators between them. */
  between(from: number, to: number): Uint8Array<ArrayBuffer> {
    const end = to < this.#starts.length ? (this.#starts[to] as number) - 1 : this.#length;
    return this.#bytes.subarray(this.#starts[from], end);
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
