import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { retryConflicts } from '../postgres/transactions.ts';
import type { Position } from './change-cursor.ts';
import type { ChangeWatch } from './change-watch.ts';
import type { ChangesAsked } from './read-changes.ts';

export interface StreamReader {
  /** Reserves memory for the next chunk. Throws if there is not enough. */
  hold(bytes: number): void;
  isAllowed(): Promise<boolean>;
  readonly gone: AbortSignal;
}

/** Without enough memory for the next chunk, the stream ends. The reader gets the error when it reconnects. */
function hasRoom({ hold }: StreamReader): boolean {
  try {
    hold(limits.streamedAnswerBytes);
    return true;
  } catch (error) {
    if (error instanceof RequestError) return false;
    throw error;
  }
}

/**
 * The heartbeat is a line that contains only the cursor. The stream ends after `changeStreamMs`, when the process
 * stops, or when the key is no longer valid. The reader can then reconnect with the last cursor. A waiting stream uses
 * no database connection and little memory.
 */
export async function* streamChanges(
  pool: Pool,
  watch: ChangeWatch,
  asked: ChangesAsked,
  from: Position,
  reader: StreamReader,
): AsyncGenerator<Buffer> {
  const { organisationId, cursors } = asked;
  const close = watch.open(organisationId);
  const endMs = performance.now() + limits.changeStreamMs;
  const group = watch.groups.join(pool, asked, from);
  let heardMs = Number.NEGATIVE_INFINITY;
  try {
    reader.hold(limits.streamedAnswerBytes);
    for (;;) {
      const { next, count, hasMore, lines } = await retryConflicts(() => group.read());
      const isSilent = count === 0 && performance.now() - heardMs < limits.changeHeartbeatMs;
      if (!isSilent) {
        await watch.turn(organisationId);
        heardMs = performance.now();
        yield count > 0 ? lines : Buffer.from(`${JSON.stringify({ cursor: cursors.write(next) })}\n`);
      }
      if (watch.isStopping || reader.gone.aborted || performance.now() > endMs) return;
      if (!(await reader.isAllowed())) return;
      if (hasMore) continue;
      reader.hold(limits.changeStreamBytes);
      await watch.wait(organisationId, next.number, limits.changeHeartbeatMs, reader.gone);
      if (!hasRoom(reader)) return;
    }
  } finally {
    group.leave();
    close();
    reader.hold(0);
  }
}
