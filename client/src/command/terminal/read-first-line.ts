import { createInterface } from 'node:readline';

/** The first line of standard input, without spaces around it; undefined if there is none. */
export async function readFirstLine({ skipsEmpty = false } = {}): Promise<string | undefined> {
  for await (const line of createInterface({ input: process.stdin }))
    if (!skipsEmpty || line.trim() !== '') return line.trim();
  return undefined;
}
