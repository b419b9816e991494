/**
 * Immediately frees a buffer's memory. Neither this buffer nor any other buffer that shares the memory can be used again.
 * The garbage collector sees only the small buffer object and would free the memory late. The only way to free memory in
 * JavaScript is to transfer it to a buffer of length 0.
 */
export function freeMemory({ buffer }: Uint8Array): void {
  (buffer as ArrayBuffer).transfer(0);
}
