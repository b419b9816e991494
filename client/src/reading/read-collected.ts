import type { Connection } from '../connection.ts';
import { IntakeError, unexpected } from '../errors.ts';
import { BrokenStream, parsedLine, readLines } from './read-lines.ts';

/** A stored record about a person. */
export interface CollectedRecord {
  /** A record type, `interactions`, `rejections`, `receipts` or `idempotency-keys`. */
  readonly type: string;
  readonly id: string;
  readonly record: Readonly<Record<string, unknown>>;
}

/** Reads an access request's collected records as one stream. */
export async function* readCollected(
  connection: Connection,
  accessRequestId: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<CollectedRecord> {
  for await (const { collected } of readCollectedLines(connection, accessRequestId, signal)) yield collected;
}

/** Yields each line exactly as it was sent, because parsing changes numbers that JavaScript cannot represent. */
export async function* readCollectedLines(
  connection: Connection,
  accessRequestId: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<{ readonly line: string; readonly collected: CollectedRecord }> {
  const path = `/v1/access-requests/${encodeURIComponent(accessRequestId)}/records`;
  const stream = await connection.open({ path, signal });
  try {
    for await (const line of readLines(stream)) {
      const collected = parsedLine(line);
      if (typeof collected?.type !== 'string' || typeof collected.id !== 'string')
        throw unexpected('The download has a line that is not a record');
      yield { line, collected: collected as unknown as CollectedRecord };
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof BrokenStream)) throw error;
    throw new IntakeError(
      'connection_failed',
      `The download broke off: ${error.message}. Download it again.`,
    );
  }
}
