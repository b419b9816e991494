import { inject } from 'vitest';
import type { Link, TcpProxy } from './tcp-proxy.ts';

/**
 * Recognises the first statement of a batch by its name, or by its text if statements have no names. BEGIN is not
 * enough, because maintenance sends it too.
 */
export const saysBatch = (bytes: Buffer): boolean =>
  /enter batch|pg_advisory_xact_lock_shared/.test(bytes.toString('latin1'));

/**
 * Loses the nth commit from now on, counting either all commits or only those of transactions that store a batch. The
 * commit is lost on its way to the database, or its response is lost on the way back, after PostgreSQL has committed.
 * The response arrives in pieces, one for each statement sent with the commit, and cutting the connection at the first
 * piece could prevent the commit. The returned function reports whether that commit has been seen.
 */
export function loseCommit(
  proxy: TcpProxy,
  nth: number,
  arrives: boolean,
  of: 'batches' | 'any' = 'batches',
): () => boolean {
  let seen = 0;
  const inBatch = new Set<Link>();
  proxy.watch((bytes, link) => {
    if (saysBatch(bytes)) inBatch.add(link);
    if (!bytes.includes('commit\0')) return true;
    if (!inBatch.delete(link) && of === 'batches') return true;
    if (++seen !== nth) return true;
    if (arrives) link.muteDatabase((said) => said.includes('COMMIT\0') && link.cut());
    else link.cut();
    return arrives;
  });
  return () => seen >= nth;
}

/**
 * Loses the next flush of interactions in the same way. A single PostgreSQL server commits the flush at its end without a
 * COMMIT, so the flush is recognised by its statement name, or by its text if statements have no names.
 */
export function loseFlush(proxy: TcpProxy, arrives: boolean): void {
  if (inject('citus') !== null) return void loseCommit(proxy, 1, arrives, 'any');
  let isSeen = false;
  proxy.watch((bytes, link) => {
    if (isSeen || !/store interactions|insert into interactions/.test(bytes.toString('latin1'))) return true;
    isSeen = true;
    // PostgreSQL is ready for the next statement, so this one is committed.
    if (arrives) link.muteDatabase((said) => said.includes('Z\0\0\0\u0005I') && link.cut());
    else link.cut();
    return arrives;
  });
}
