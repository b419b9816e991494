import { expect } from 'vitest';

/** Reads an export as a client does, one line at a time, at any speed. */
export async function readLines(
  url: string,
  key: string,
  options: {
    readonly headers?: Record<string, string>;
    readonly signal?: AbortSignal;
    readonly onLine: (line: string) => void;
    readonly onPiece?: (bytes: number) => Promise<void> | void;
  },
): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson', ...options.headers };
  const response = await fetch(url, { headers, signal: options.signal ?? null });
  expect(response.status).toBe(200);
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of response.body!) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) options.onLine(line);
    await options.onPiece?.(piece.length);
  }
  expect(rest, 'the last line ends like every other').toBe('');
  return response;
}
