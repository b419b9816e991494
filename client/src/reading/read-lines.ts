import { isObject, unexpected } from '../errors.ts';
import { limits } from '../limits.ts';

/** Thrown if a stream ends early. The next stream continues after the last complete line. */
export class BrokenStream extends Error {}

/** Yields a stream's complete lines. */
export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let lineBeganMs = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: Error) => {
        throw new BrokenStream(error.message);
      });
      if (done) {
        if (rest !== '') throw new BrokenStream('it ended within a line');
        return;
      }
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      if (rest === '' || lines.length > 1) lineBeganMs = performance.now();
      rest = lines.pop() ?? '';
      if (rest.length > limits.lineCharactersMax)
        throw unexpected(`The export has a line of more than ${limits.lineCharactersMax} characters`);
      if (rest !== '' && performance.now() - lineBeganMs > limits.attemptTimeoutMs)
        throw new BrokenStream('it was too slow');
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Parses a line. Returns undefined if the line is not a JSON object. */
export function parsedLine(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
