import type { Connection } from '../connection.ts';
import { IntakeError, unexpected } from '../errors.ts';
import { type ResourceType, resources, type StoredRecordOf } from '../generated/resources.ts';
import type { Interaction } from '../interactions/interaction-batch.ts';
import { BrokenStream, parsedLine, readLines } from './read-lines.ts';

/** Reads every record of a type, ordered by id. */
export function readRecords<T extends ResourceType>(
  connection: Connection,
  type: T,
  query: object,
  signal: AbortSignal | undefined,
): AsyncGenerator<StoredRecordOf[T]> {
  const source = { path: `/v1/data/${type}`, idField: resources[type].idField, isDescending: false };
  return readStream(connection, source, query, signal);
}

/** Reads every interaction, sorted by id in descending order, so that the most recently received interaction comes first. */
export function readInteractions(
  connection: Connection,
  query: object,
  signal: AbortSignal | undefined,
): AsyncGenerator<Interaction> {
  const { idField } = resources.interactions;
  return readStream(connection, { path: '/user-interactions', idField, isDescending: true }, query, signal);
}

interface Source {
  readonly path: string;
  readonly idField: string;
  readonly isDescending: boolean;
}

/** Reads a list as an NDJSON stream. If the connection breaks, the stream resumes after the last complete line. */
async function* readStream<R>(
  connection: Connection,
  { path, idField, isDescending }: Source,
  query: object,
  signal: AbortSignal | undefined,
): AsyncGenerator<R> {
  let cursor: string | undefined;
  for (;;) {
    const before = cursor;
    const stream = await connection.open({
      path,
      query: { ...query, ...(cursor !== undefined && { cursor }) },
      headers: { accept: 'application/x-ndjson' },
      signal,
    });
    try {
      for await (const line of readLines(stream)) {
        const record = parsedLine(line);
        const id = record?.[idField];
        if (typeof id !== 'string') throw unexpected('The export has a line that is not a record');
        // Checking the order also stops an export that keeps repeating records.
        if (cursor !== undefined && (isDescending ? id >= cursor : id <= cursor))
          throw unexpected('The export is not in the order of the ids');
        yield record as R;
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
