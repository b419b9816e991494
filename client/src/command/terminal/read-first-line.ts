import { createInterface } from 'node:readline';

/** Returns the first line of standard input, trimmed, or undefined if the input is empty. */
export async function readFirstLine({ skipsEmpty = false } = {}): Promise<string | undefined> {
  for await (const line of createInterface({ input: process.stdin }))
    if (!skipsEmpty || line.trim() !== '') return line.trim();
  return undefined;
}
