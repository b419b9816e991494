const encoder = new TextEncoder();
const words = new Int32Array(80);
const state = new Int32Array(5);
/** A buffer that is large enough for nearly all keys. A longer key makes it grow. */
let buffer = new Uint8Array(1_024);

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/**
 * Returns the SHA-1 of some bytes and a string, in hex. Browsers offer only an asynchronous version, which would take a turn
 * of the event loop for each id.
 */
export function sha1Hex(prefix: Uint8Array, text: string): string {
  const needed = prefix.length + text.length * 3 + 72;
  if (buffer.length < needed) buffer = new Uint8Array(Math.ceil(needed / 64) * 64);
  buffer.set(prefix);
  const end = pad(prefix.length + write(text, prefix.length));
  state[0] = 0x67452301;
  state[1] = 0xefcdab89;
  state[2] = 0x98badcfe;
  state[3] = 0x10325476;
  state[4] = 0xc3d2e1f0;
  for (let block = 0; block < end; block += 64) addBlock(block);
  let hex = '';
  for (let at = 0; at < 5; at++) hex += hexOf(part(at));
  return hex;
}

function hexOf(value: number): string {
  return (
    (hexOfByte[value >>> 24] as string) +
    hexOfByte[(value >>> 16) & 0xff] +
    hexOfByte[(value >>> 8) & 0xff] +
    hexOfByte[value & 0xff]
  );
}

/**
 * Writes the text as UTF-8 and returns the number of bytes. ASCII is written directly, because most keys are ASCII and
 * calling the encoder would take longer than hashing.
 */
function write(text: string, from: number): number {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return encoder.encodeInto(text, buffer.subarray(from)).written;
    buffer[from + at] = code;
  }
  return text.length;
}

/** Pads the data to whole blocks of 64 bytes with a one bit, zeros, and the length in bits. Returns the padded length. */
function pad(length: number): number {
  const end = ((length + 8) >> 6) * 64 + 64;
  buffer[length] = 0x80;
  for (let at = length + 1; at < end - 4; at++) buffer[at] = 0;
  const bits = length * 8;
  for (let at = 0; at < 4; at++) buffer[end - 1 - at] = bits >>> (8 * at);
  return end;
}

function addBlock(block: number): void {
  for (let at = 0; at < 16; at++) {
    const from = block + at * 4;
    words[at] = (byte(from) << 24) | (byte(from + 1) << 16) | (byte(from + 2) << 8) | byte(from + 3);
  }
  for (let at = 16; at < 80; at++) {
    const mixed = word(at - 3) ^ word(at - 8) ^ word(at - 14) ^ word(at - 16);
    words[at] = (mixed << 1) | (mixed >>> 31);
  }
  let a = part(0);
  let b = part(1);
  let c = part(2);
  let d = part(3);
  let e = part(4);
  for (let at = 0; at < 80; at++) {
    const round =
      at < 20
        ? ((b & c) | (~b & d)) + 0x5a827999
        : at < 40
          ? (b ^ c ^ d) + 0x6ed9eba1
          : at < 60
            ? ((b & c) | (b & d) | (c & d)) - 0x70e44324
            : (b ^ c ^ d) - 0x359d3e2a;
    const next = (((a << 5) | (a >>> 27)) + (round | 0) + e + word(at)) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  state[0] = part(0) + a;
  state[1] = part(1) + b;
  state[2] = part(2) + c;
  state[3] = part(3) + d;
  state[4] = part(4) + e;
}

function byte(at: number): number {
  return buffer[at] as number;
}

function word(at: number): number {
  return words[at] as number;
}

function part(at: number): number {
  return state[at] as number;
}
