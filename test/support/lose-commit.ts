import { inject } from 'vitest';
import type { Link, TcpProxy } from './tcp-proxy.ts';

/**
 * The first statement of a batch, by its name, or, where no statement has one, by its text. BEGIN would not do:
 * maintenance sends it too.
 */
export const saysBatch = (bytes: Buffer): boolean =>
  /enter batch|pg_advisory_xact_lock_shared/.test(bytes.toString('latin1'));

/**
 * Loses the nth commit from now on, of any transaction or of those that store a batch: on its way to the database or,
 * once PostgreSQL has committed, the answer on its way back. The answer comes in pieces, one for each statement sent
 * with the commit; cutting the connection at the first piece could prevent the commit. Returns whether that commit has
 * been seen.
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
 * The same for the next flush of interactions. On one PostgreSQL it is committed at its end without a COMMIT: it is known
 * by the name of its statement or, where no statement has one, by its text.
 */
export function loseFlush(proxy: TcpProxy, arrives: boolean): void {
  if (inject('citus') !== null) return void loseCommit(proxy, 1, arrives, 'any');
  let isSeen = false;
  proxy.watch((bytes, link) => {
    if (isSeen || !/store interactions|insert into interactions/.test(bytes.toString('latin1'))) return true;
    isSeen = true;
    // Ready for the next statement, so this one is committed.
    if (arrives) link.muteDatabase((said) => said.includes('Z\0\0\0\u0005I') && link.cut());
    else link.cut();
    return arrives;
  });
}
