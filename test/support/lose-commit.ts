import { inject } from 'vitest';
import type { TcpProxy } from './tcp-proxy.ts';

/**
 * Of the commits from now on, loses the nth: on the way there, or, once it is carried out, its answer on the way back.
 * The answer comes in pieces, as the statements sent along with the commit are done; with the first of them the commit
 * itself is still ahead, and a connection that is cut then may take it along. Returns whether that commit has been seen.
 */
export function loseCommit(proxy: TcpProxy, nth: number, arrives: boolean): () => boolean {
  let seen = 0;
  proxy.watch((bytes, link) => {
    if (!bytes.includes('commit\0') || ++seen !== nth) return true;
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
  if (inject('citus') !== null) return void loseCommit(proxy, 1, arrives);
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
