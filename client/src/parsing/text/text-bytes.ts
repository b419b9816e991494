import { FileError } from '../file-error.ts';

/** What spreadsheet programs write in Western Europe and America if nobody asks for UTF-8. */
const fallback = 'windows-1252';

/** The bytes that mean nothing in windows-1252. */
const undefinedBytes = /[\u0081\u008d\u008f\u0090\u009d]/;

/**
 * Decodes the bytes of a file as they arrive. A file in an encoding that nobody named is UTF-8 or begins with a byte
 * order mark; if its first character beyond ASCII is neither, it is taken for windows-1252. In UTF-8 with some bad bytes
 * these become U+FFFD, and the rows that have them fail.
 */
export class TextBytes {
  /** The encoding, if it was detected and is not UTF-8. */
  detected: string | undefined;
  #decoder: TextDecoder;
  #isDecided: boolean;
  #isFirst = true;
  /** The start of a character that may be UTF-8 or not. */
  #held: Uint8Array = new Uint8Array(0);

  constructor(encoding?: string) {
    this.#decoder = decoderOf(encoding ?? 'utf-8');
    this.#isDecided = encoding !== undefined;
  }

  decode(bytes: Uint8Array): string {
    if (this.#isDecided) return this.#decoder.decode(bytes, { stream: true });
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    if (isFirst && bytes[0] === 0xff && bytes[1] === 0xfe) this.#use('utf-16le');
    else if (this.#held.length > 0 || !isAscii(bytes)) return this.#decide(concat(this.#held, bytes));
    return this.#decoder.decode(bytes, { stream: true });
  }

  end(): string {
    const rest = this.#held.length > 0 ? this.#decide(this.#held, true) : '';
    return rest + this.#decoder.decode();
  }

  /** Everything before was ASCII, so no decoder has begun a character. */
  #decide(bytes: Uint8Array, isLast = false): string {
    const found = encodingOf(bytes, isLast);
    // The only character beyond ASCII may be cut off at the end.
    const end = found === undefined ? bytes.findIndex((byte) => byte > 0x7f) : bytes.length;
    this.#held = bytes.subarray(end);
    if (found !== undefined) this.#use(found);
    return this.#decoder.decode(bytes.subarray(0, end), { stream: true });
  }

  #use(encoding: string): void {
    this.#isDecided = true;
    if (encoding === fallback) this.detected = fallback;
    if (encoding !== 'utf-8') this.#decoder = new TextDecoder(encoding);
  }
}

/** Four bytes at a time, as far as they are aligned: a file in plain ASCII is looked through to its end. */
function isAscii(bytes: Uint8Array): boolean {
  const words = bytes.byteOffset % 4 === 0 ? bytes.length >> 2 : 0;
  const fours = new Uint32Array(bytes.buffer, words === 0 ? 0 : bytes.byteOffset, words);
  for (let at = 0; at < words; at++) if (((fours[at] as number) & 0x80808080) !== 0) return false;
  for (let at = words * 4; at < bytes.length; at++) if ((bytes[at] as number) > 0x7f) return false;
  return true;
}

function concat(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

/** Windows-1252 if no character beyond ASCII is UTF-8, and all are windows-1252; undefined if there is none yet. */
function encodingOf(bytes: Uint8Array, isLast: boolean): string | undefined {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const beyondAscii = decoder.decode(bytes, { stream: !isLast }).match(/[^\0-\x7f]/g);
  if (beyondAscii === null) return undefined;
  const isUtf8 = beyondAscii.some((character) => character !== '\ufffd');
  return isUtf8 || undefinedBytes.test(new TextDecoder(fallback).decode(bytes)) ? 'utf-8' : fallback;
}

function decoderOf(encoding: string): TextDecoder {
  try {
    return new TextDecoder(encoding);
  } catch {
    throw new FileError(
      `--encoding ${encoding} is not an encoding that can be read; use one such as utf-8, windows-1252, utf-16le or shift_jis`,
    );
  }
}
