import { createReadStream } from 'node:fs';

/**
 * Reads the lines of a file, some at a time. `readline` is not suitable, because it also splits at U+2028, which JSON may
 * contain.
 */
export async function* linesIn(file: string): AsyncGenerator<readonly string[]> {
  let rest = '';
  for await (const text of createReadStream(file, 'utf8')) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    if (lines.length > 0) yield lines;
  }
}
