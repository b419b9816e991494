import { createReadStream } from 'node:fs';

/** `readline` is not suitable, because it also splits at U+2028, which JSON may contain. */
export async function* linesIn(file: string): AsyncGenerator<readonly string[]> {
  let rest = '';
  for await (const text of createReadStream(file, 'utf8')) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    if (lines.length > 0) yield lines;
  }
  // If a list of people were read without its end, some of them would not be erased.
  if (rest !== '')
    throw new Error(`the last line of ${file} is cut off; the next round writes the file again`);
}
