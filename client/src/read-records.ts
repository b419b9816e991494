import type { Connection } from './connection.ts';
import { IntakeError } from './errors.ts';
import { type ResourceType, resources, type StoredRecordOf } from './generated/resources.ts';

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
        const record = JSON.parse(line) as StoredRecordOf[T];
        yield record;
        cursor = (record as Record<string, unknown>)[idField] as string;
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

/** Yields complete lines only. */
async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = '';
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
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
