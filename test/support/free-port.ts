import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Each worker has its own range of ports. Otherwise another worker could take a free port before it is used. */
const perWorker = 1_000;
const first = 15_000 + perWorker * (Number(process.env.VITEST_POOL_ID ?? 0) % 17);
let next = randomInt(perWorker);

/**
 * Returns a loopback port that no process listens on. The port is below the ephemeral port range, and is not given to
 * another test in this process.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + (next++ % perWorker);
    const probe = createServer().listen(port, '127.0.0.1');
    const isFree = await once(probe, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
