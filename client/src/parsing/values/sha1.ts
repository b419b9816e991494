const encoder = new TextEncoder();
const words = new Int32Array(80);
const state = new Int32Array(5);
/** Keys are short: nearly all of them fit. */
let buffer = new Uint8Array(1_024);

/**
 * The SHA-1 of some bytes and a text, in hex. Browsers have only an asynchronous one, which would be a turn of the event
 * loop for each id.
 */
export function sha1Hex(prefix: Uint8Array, text: string): string {
  const needed = prefix.length + text.length * 3 + 72;
  if (buffer.length < needed) buffer = new Uint8Array(Math.ceil(needed / 64) * 64);
  buffer.set(prefix);
  const length = prefix.length + encoder.encodeInto(text, buffer.subarray(prefix.length)).written;
  const end = pad(length);
  state[0] = 0x67452301;
  state[1] = 0xefcdab89;
  state[2] = 0x98badcfe;
  state[3] = 0x10325476;
  state[4] = 0xc3d2e1f0;
  for (let block = 0; block < end; block += 64) addBlock(block);
  let hex = '';
  for (let at = 0; at < 5; at++) hex += ((state[at] as number) >>> 0).toString(16).padStart(8, '0');
  return hex;
}

/** Pads to whole blocks of 64 bytes: a one bit, zeros, and the length in bits. Returns where they end. */
function pad(length: number): number {
  const end = ((length + 8) >> 6) * 64 + 64;
  buffer.fill(0, length, end);
  buffer[length] = 0x80;
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
  const [a0, b0, c0, d0, e0] = [part(0), part(1), part(2), part(3), part(4)];
  let a = a0;
  let b = b0;
  let c = c0;
  let d = d0;
  let e = e0;
  for (let at = 0; at < 80; at++) {
    const next = (((a << 5) | (a >>> 27)) + roundOf(at, b, c, d) + e + word(at)) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  state[0] = a0 + a;
  state[1] = b0 + b;
  state[2] = c0 + c;
  state[3] = d0 + d;
  state[4] = e0 + e;
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

function roundOf(at: number, b: number, c: number, d: number): number {
  if (at < 20) return (((b & c) | (~b & d)) + 0x5a827999) | 0;
  if (at < 40) return ((b ^ c ^ d) + 0x6ed9eba1) | 0;
  if (at < 60) return (((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc) | 0;
  return ((b ^ c ^ d) + 0xca62c1d6) | 0;
}
