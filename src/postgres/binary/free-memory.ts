/**
 * Gives back at once the memory that a buffer, and all that share it, are in; none of them can be used again. Left to the
 * collector, which sees only how small a buffer object is, it is given back late: see docs/performance.md. Transferring
 * to a length of 0 is the only way that JavaScript has.
 */
export function freeMemory({ buffer }: Uint8Array): void {
  (buffer as ArrayBuffer).transfer(0);
}
