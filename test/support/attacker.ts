import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { constants, setPriority } from 'node:os';

/**
 * Sends the same request repeatedly, with `count` requests in flight, each on its own connection. A real attacker would
 * use another machine, but this one is a process with the lowest CPU priority. With `unread`, it does not read responses
 * until it is stopped.
 */
export interface Attack {
  readonly url: string;
  /** A file that contains the raw request. */
  readonly file: string;
  readonly count: number;
  readonly atOnce: number;
  readonly unread?: boolean;
}

/** The number of requests by response status, where 0 means that there was no response. */
export type Attacked = Record<number, number>;

setPriority(constants.priority.PRIORITY_LOW);

process.on('message', async (attack: Attack) => {
  const bytes = readFileSync(attack.file);
  const statuses: Attacked = {};
  let left = attack.count;
  const work = async () => {
    while (left-- > 0) {
      const status = await send(attack, bytes);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: attack.atOnce }, work));
  process.send?.(statuses);
});

function send({ url, unread }: Attack, bytes: Buffer): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let status = 0;
    let last = '';
    if (unread) {
      socket.pause();
      setTimeout(() => resolve(0), 200);
    }
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      status ||= Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
      // Every response is JSON, either with a Content-Length or chunked.
      last = (last + text).slice(-8);
      if (/\}(\r\n0\r\n\r\n)?$/.test(last)) socket.end();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(status));
  });
}
