/**
 * No buffer that shares the memory can be used again. The garbage collector would free the memory late, because it sees
 * only the small buffer object. JavaScript frees memory only if it is transferred to a buffer of length 0.
 */
export function freeMemory({ buffer }: Uint8Array): void {
  (buffer as ArrayBuffer).transfer(0);
}
