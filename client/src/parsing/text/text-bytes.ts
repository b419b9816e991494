import { FileError } from '../file-error.ts';

/** The default encoding of spreadsheet programs in Western Europe and the Americas. */
const fallback = 'windows-1252';

/** Matches the code points that windows-1252 leaves undefined. */
const undefinedBytes = /[\u0081\u008d\u008f\u0090\u009d]/;

/**
 * Decodes a file's bytes as they arrive. Unless the caller specifies an encoding, a file is UTF-8 or starts with a byte
 * order mark. If its first non-ASCII character is not valid UTF-8, the file is read as windows-1252. In a UTF-8 file,
 * invalid bytes that come later become U+FFFD, and their rows fail.
 */
export class TextBytes {
  /** The detected encoding, if it is not UTF-8. */
  detected: string | undefined;
  #decoder: TextDecoder;
  #isDecided: boolean;
  #isFirst = true;
  /** The bytes of an incomplete character, which may or may not be UTF-8. */
  #held: Uint8Array = new Uint8Array(0);

  /** The encoding of a file that is not UTF-8. */
  readonly #other: string | undefined;
  /** Whether the specified encoding reads any bytes, so that the letters of a UTF-8 file would be stored as two others. */
  #mayBeUtf8: boolean;

  /** If `prefersUtf8`, the specified encoding is used only if the file is not UTF-8. */
  constructor(encoding?: string, prefersUtf8 = false) {
    const specified = decoderOf(encoding ?? 'utf-8');
    this.#isDecided = encoding !== undefined && !prefersUtf8;
    this.#decoder = this.#isDecided ? specified : new TextDecoder();
    this.#other = encoding;
    this.#mayBeUtf8 = this.#isDecided && /^(windows-125|iso-8859)/.test(this.#decoder.encoding);
  }

  decode(bytes: Uint8Array): string {
    if (this.#mayBeUtf8 && !isAscii(bytes)) {
      this.#mayBeUtf8 = false;
      if (isSurelyUtf8(bytes))
        throw new FileError(
          `it is UTF-8, although its encoding is specified as ${this.#other}; leave out --encoding, and "encoding" in the mapping file`,
        );
    }
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

  /**
   * Decides the encoding if the bytes allow it, and decodes them. All earlier bytes were ASCII, so the decoder cannot be in
   * the middle of a character.
   */
  #decide(bytes: Uint8Array, isLast = false): string {
    const found = encodingOf(bytes, isLast, this.#other ?? fallback);
    // The only non-ASCII character may be cut off at the end of the bytes.
    const end = found === undefined ? bytes.findIndex((byte) => byte > 0x7f) : bytes.length;
    this.#held = bytes.subarray(end);
    if (found !== undefined) this.#use(found);
    return this.#decoder.decode(bytes.subarray(0, end), { stream: true });
  }

  #use(encoding: string): void {
    this.#isDecided = true;
    if (encoding === fallback && this.#other === undefined) this.detected = fallback;
    if (encoding !== 'utf-8') this.#decoder = new TextDecoder(encoding);
  }
}

/**
 * Returns whether all bytes are ASCII. Checks four aligned bytes per step, because plain ASCII files are scanned to the end.
 */
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

/**
 * Returns the other encoding if no non-ASCII character is valid UTF-8 and, in windows-1252, all of them are valid, and UTF-8
 * otherwise. Returns undefined if there is no non-ASCII character yet.
 */
function encodingOf(bytes: Uint8Array, isLast: boolean, other: string): string | undefined {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const beyondAscii = decoder.decode(bytes, { stream: !isLast }).match(/[^\0-\x7f]/g);
  if (beyondAscii === null) return undefined;
  const isUtf8 = beyondAscii.some((character) => character !== '\ufffd');
  const isInvalid = other === fallback && undefinedBytes.test(new TextDecoder(other).decode(bytes));
  return isUtf8 || isInvalid ? 'utf-8' : other;
}

/**
 * Returns whether all non-ASCII characters are UTF-8 and there are several of them, or a Western letter. In other encodings, the
 * bytes of such a letter are a capital letter and a symbol.
 */
function isSurelyUtf8(bytes: Uint8Array): boolean {
  const decoder = new TextDecoder('utf-8');
  const beyondAscii = decoder.decode(bytes, { stream: true }).match(/[^\0-\x7f]/gu);
  if (beyondAscii === null) return false;
  const isValid = beyondAscii.every((character) => character !== '\ufffd');
  return isValid && (beyondAscii.length >= 3 || beyondAscii.some((letter) => /[À-ÿ]/.test(letter)));
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
