import { createInterface } from 'node:readline';

/** The first line of standard input that is not empty. */
export async function readFirstLine(): Promise<string | undefined> {
  for await (const line of createInterface({ input: process.stdin }))
    if (line.trim() !== '') return line.trim();
  return undefined;
}
