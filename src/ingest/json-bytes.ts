/** Finding one's way in the bytes of JSON, without reading what they say. */

export const quote = 0x22;
export const backslash = 0x5c;
export const comma = 0x2c;

export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  // Nearly always there is none.
  if ((bytes[at] as number) > 0x20) return at;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}

/** Where what follows these tokens begins, with space around each; -1 where they do not stand there. */
export function endOfTokens(body: Buffer, from: number, tokens: readonly Buffer[]): number {
  let at = skipSpace(body, from);
  for (const token of tokens) {
    if (!body.subarray(at, at + token.length).equals(token)) return -1;
    at = skipSpace(body, at + token.length);
  }
  return at;
}

/**
 * Where the value ends that begins there: at the bracket that closes the first, or before the next comma or closing
 * bracket. In JSON that is sound, and what is not is found by parsing it.
 */
export function endOfValue(body: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < body.length; at++) {
    const byte = body[at] as number;
    if (byte === quote) {
      at = endOfString(body, at + 1);
      if (at < 0) return -1;
    } else if (byte === 0x7b /* { */ || byte === 0x5b /* [ */) depth++;
    else if (byte === 0x7d /* } */ || byte === 0x5d /* ] */) {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (byte === comma && depth === 0) return at;
  }
  return -1;
}

/** Whether brackets stand within brackets more often than that: parsed, what is deep would be walked through by recursion. */
export function isDeeperThan(bytes: Buffer, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      at = endOfString(bytes, at + 1);
      if (at < 0) return false;
    } else if (byte === 0x7b /* { */ || byte === 0x5b /* [ */) {
      if (++depth > max) return true;
    } else if (byte === 0x7d /* } */ || byte === 0x5d /* ] */) depth--;
  }
  return false;
}

/** Where the quote stands that ends a string. */
function endOfString(body: Buffer, from: number): number {
  for (let at = from; at < body.length; at++) {
    if (body[at] === quote) return at;
    if (body[at] === backslash) at++;
  }
  return -1;
}
