import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { constants, setPriority } from 'node:os';

/**
 * Sends the same request again and again, so many at once, each on a connection of its own. In life it comes from another
 * machine; here it is a process that takes the processor only when nobody else wants it. With `unread` the answers are left
 * on their connections until it is told to stop.
 */
export interface Attack {
  readonly url: string;
  /** Holds the bytes of the request. */
  readonly file: string;
  readonly count: number;
  readonly atOnce: number;
  readonly unread?: boolean;
}

/** How often each status was answered; 0 stands for no answer. */
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
      // Every answer is JSON, in one piece or in chunks.
      last = (last + text).slice(-8);
      if (/\}(\r\n0\r\n\r\n)?$/.test(last)) socket.end();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(status));
  });
}
