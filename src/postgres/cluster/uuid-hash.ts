/**
 * Computes PostgreSQL's `uuid_hash` of a UUID, as on a little-endian machine. Citus places rows by this hash, so together
 * with the shards' hash ranges, it shows where an organisation is stored without a query.
 */
export function uuidHash(uuid: string): number {
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex');
  const start = (0x9e3779b9 + bytes.length + 3_923_095) | 0;
  const first = mix(
    (start + bytes.readInt32LE(0)) | 0,
    (start + bytes.readInt32LE(4)) | 0,
    (start + bytes.readInt32LE(8)) | 0,
  );
  return finish((first.a + bytes.readInt32LE(12)) | 0, first.b, first.c);
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/** Mixes three words with Bob Jenkins' hash, as in PostgreSQL's common/hashfn.c. */
function mix(a: number, b: number, c: number): { a: number; b: number; c: number } {
  for (const [bits1, bits2, bits3] of [
    [4, 6, 8],
    [16, 19, 4],
  ] as const) {
    a = ((a - c) | 0) ^ rotate(c, bits1);
    c = (c + b) | 0;
    b = ((b - a) | 0) ^ rotate(a, bits2);
    a = (a + c) | 0;
    c = ((c - b) | 0) ^ rotate(b, bits3);
    b = (b + a) | 0;
  }
  return { a, b, c };
}

function finish(a: number, b: number, c: number): number {
  c = ((c ^ b) - rotate(b, 14)) | 0;
  a = ((a ^ c) - rotate(c, 11)) | 0;
  b = ((b ^ a) - rotate(a, 25)) | 0;
  c = ((c ^ b) - rotate(b, 16)) | 0;
  a = ((a ^ c) - rotate(c, 4)) | 0;
  b = ((b ^ a) - rotate(a, 14)) | 0;
  return ((c ^ b) - rotate(b, 24)) | 0;
}
