import type { Connection } from './connection.ts';
import { IntakeError, unexpected } from './errors.ts';
import { type ResourceType, resources, type StoredRecordOf } from './generated/resources.ts';
import { BrokenStream, parsedLine, readLines } from './read-lines.ts';

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
        const record = parsedLine(line);
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
