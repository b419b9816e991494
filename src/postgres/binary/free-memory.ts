/**
 * Frees at once the memory of a buffer, and of all that share it; none of them can be used again. The garbage collector
 * sees only the small buffer object and would free it late: see docs/performance.md. Transferring to a length of 0 is
 * the only way in JavaScript.
 */
export function freeMemory({ buffer }: Uint8Array): void {
  (buffer as ArrayBuffer).transfer(0);
}
