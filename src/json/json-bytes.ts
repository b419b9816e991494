// json/: parses JSON from bytes with bounded memory and depth, and maps long lists without blocking the event loop.

// The work is linear in the number of bytes, whatever their content, and allocates nothing. The bytes must be UTF-8.

export const quote = 0x22;
export const comma = 0x2c;
export const colon = 0x3a;
export const backslash = 0x5c;
export const openBracket = 0x5b;
export const closeBracket = 0x5d;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;
export const newline = 0x0a;

/** `at` is the first invalid byte, or the length if the bytes end too early. */
export class JsonFault extends Error {
  readonly at: number;

  constructor(at: number) {
    super(`not JSON at byte ${at}`);
    this.at = at;
  }
}

export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  // Return early, because there is usually no whitespace.
  if ((bytes[at] as number) > 0x20) return at;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}

/** Skips whitespace up to the end of the line, but does not skip the newline. */
export function skipRestOfLine(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}

/** Returns -1 if the value is nested more than `depthMax` levels deep. `depthMax` is at most 32. */
export function endOfValue(bytes: Uint8Array, from: number, depthMax: number): number {
  let at = from;
  let depth = 0;
  // One bit per level, with the innermost level in the lowest bit. A bit is 1 for an object and 0 for an array.
  let objects = 0;
  for (;;) {
    const first = bytes[at];
    if (first === openBrace || first === openBracket) {
      if (depth === depthMax) return -1;
      depth++;
      objects = (objects << 1) | (first === openBrace ? 1 : 0);
      at = skipSpace(bytes, at + 1);
      if (bytes[at] !== closerOf(objects)) {
        if (objects & 1) at = endOfName(bytes, at);
        continue;
      }
    } else {
      at = endOfScalar(bytes, at);
      if (depth === 0) return at;
      at = skipSpace(bytes, at);
    }
    while (bytes[at] === closerOf(objects)) {
      at++;
      objects >>>= 1;
      if (--depth === 0) return at;
      at = skipSpace(bytes, at);
    }
    if (bytes[at] !== comma) throw new JsonFault(at);
    at = skipSpace(bytes, at + 1);
    if (objects & 1) at = endOfName(bytes, at);
  }
}

function closerOf(objects: number): number {
  return objects & 1 ? closeBrace : closeBracket;
}

/** Returns where a member's value starts, which is after its name, the colon and any whitespace. */
export function endOfName(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== quote) throw new JsonFault(Math.min(from, bytes.length));
  const at = skipSpace(bytes, endOfString(bytes, from));
  if (bytes[at] !== colon) throw new JsonFault(at);
  return skipSpace(bytes, at + 1);
}

export function endOfScalar(bytes: Uint8Array, from: number): number {
  switch (bytes[from]) {
    case quote:
      return endOfString(bytes, from);
    case 0x74:
      return endOfWord(bytes, from, 'true');
    case 0x66:
      return endOfWord(bytes, from, 'false');
    case 0x6e:
      return endOfWord(bytes, from, 'null');
    default:
      return endOfNumber(bytes, from);
  }
}

export function endOfString(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  for (;;) {
    while (isSpecial[bytes[at] as number] === 0) at++;
    if (bytes[at] === quote) return at + 1;
    if (bytes[at] !== backslash) throw new JsonFault(at);
    if (bytes[at + 1] === 0x75 /* u */) {
      for (let digit = at + 2; digit < at + 6; digit++) if (!isHex(bytes[digit])) throw new JsonFault(digit);
      at += 6;
    } else if (isEscape[bytes[at + 1] as number] === 1) at += 2;
    else throw new JsonFault(at + 1);
  }
}

/** The bytes that end a string, start an escape, or are not allowed in a string. */
export const isSpecial = new Uint8Array(256).fill(1, 0, 0x20);
isSpecial[quote] = 1;
isSpecial[backslash] = 1;

const isEscape = new Uint8Array(256);
for (const character of '"\\/bfnrt') isEscape[character.charCodeAt(0)] = 1;

function isHex(byte: number | undefined): boolean {
  return byte !== undefined && /^[0-9a-fA-F]$/.test(String.fromCharCode(byte));
}

function endOfWord(bytes: Uint8Array, from: number, word: string): number {
  for (let index = 0; index < word.length; index++)
    if (bytes[from + index] !== word.charCodeAt(index)) throw new JsonFault(from + index);
  return from + word.length;
}

function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = bytes[from] === 0x2d /* - */ ? from + 1 : from;
  at = bytes[at] === 0x30 /* 0 */ ? at + 1 : endOfDigits(bytes, at);
  if (bytes[at] === 0x2e /* . */) at = endOfDigits(bytes, at + 1);
  if (((bytes[at] as number) | 0x20) === 0x65 /* e */) {
    at++;
    if (bytes[at] === 0x2b /* + */ || bytes[at] === 0x2d /* - */) at++;
    at = endOfDigits(bytes, at);
  }
  return at;
}

function endOfDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  while ((bytes[at] as number) >= 0x30 && (bytes[at] as number) <= 0x39) at++;
  if (at === from) throw new JsonFault(at);
  return at;
}

/** Looks only at brackets and quotes, whatever the depth, so use this only for values that will not be read. */
export function endOfBrackets(bytes: Uint8Array, from: number): number {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) at = endOfString(bytes, at) - 1;
    else if (byte === openBrace || byte === openBracket) depth++;
    else if ((byte === closeBrace || byte === closeBracket) && --depth === 0) return at + 1;
  }
  throw new JsonFault(bytes.length);
}
