import type { Connection } from './connection.ts';
import { IntakeError, isObject, unexpected } from './errors.ts';
import { type ResourceType, resources, type StoredRecordOf } from './generated/resources.ts';
import { limits } from './limits.ts';

/**
 * Reads every record of a type as one NDJSON stream. If the connection breaks, it resumes after the last complete line.
 */
export async function* readRecords<T extends ResourceType>(
  connection: Connection,
  type: T,
  query: object,
  signal: AbortSignal | undefined,
): AsyncGenerator<StoredRecordOf[T]> {
  const { idField } = resources[type];
  let cursor: string | undefined;
  for (;;) {
    const before = cursor;
    const stream = await connection.open({
      path: `/v1/data/${type}`,
      query: { ...query, ...(cursor !== undefined && { cursor }) },
      headers: { accept: 'application/x-ndjson' },
      signal,
    });
    try {
      for await (const line of readLines(stream)) {
        const record = parsed(line);
        const id = record?.[idField];
        if (typeof id !== 'string') throw unexpected('The export has a line that is not a record');
        // The order also ends an export that repeats itself.
        if (cursor !== undefined && id <= cursor)
          throw unexpected('The export is not in the order of the ids');
        yield record as StoredRecordOf[T];
        cursor = id;
      }
      return;
    } catch (error) {
      signal?.throwIfAborted();
      const isBroken = error instanceof BrokenStream;
      if (!isBroken) throw error;
      if (cursor === before)
        throw new IntakeError('connection_failed', `The export broke off: ${error.message}`);
    }
  }
}

class BrokenStream extends Error {}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Yields complete lines only. */
async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
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
