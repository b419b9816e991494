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
