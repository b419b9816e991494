import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { Sha256 } from '../src/screens/upload-file/rows/sha256.ts';

it('data of every length has the SHA-256 that others calculate, in whatever pieces it arrives', () => {
  const data = Uint8Array.from({ length: 300 }, (_, at) => (at * 7_919) % 256);
  for (let length = 0; length <= data.length; length++) {
    const bytes = data.subarray(0, length);
    const expected = createHash('sha256').update(bytes).digest('hex');
    for (const pieceBytes of [1, 13, 63, 64, 65, 300]) {
      const sha256 = new Sha256();
      for (let at = 0; at < length; at += pieceBytes) sha256.add(bytes.subarray(at, at + pieceBytes));
      expect([length, pieceBytes, sha256.hex()]).toEqual([length, pieceBytes, expected]);
    }
  }
});
