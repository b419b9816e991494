import { once } from 'node:events';

/** Writes to stdout, and waits while its reader is slower. */
export async function writeOut(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}
