import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LineBuffer } from './line-buffer.ts';

it('returns the added lines once, however long they are', () => {
  const line = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.nat({ max: 40_000 }).map((length) => 'ß€😀'.repeat(length)),
  );
  fc.assert(
    fc.property(fc.array(fc.array(line, { maxLength: 20 }), { maxLength: 5 }), (rounds) => {
      const buffer = new LineBuffer();
      const taken = rounds.map((lines) => {
        for (const added of lines) buffer.add(added);
        return buffer.take();
      });
      // The buffers are compared only at the end, because a buffer that was taken must not be overwritten later.
      expect(taken.map((bytes) => bytes.toString())).toEqual(
        rounds.map((lines) => lines.map((added) => `${added}\n`).join('')),
      );
    }),
    { numRuns: 50 },
  );
});
