import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Each worker has ports of its own: another could take a free one before it is used. */
const perWorker = 1_000;
const first = 15_000 + perWorker * (Number(process.env.VITEST_POOL_ID ?? 0) % 17);
let next = randomInt(perWorker);

/**
 * A port of loopback that nothing listens on at the moment. It lies below those that the system gives to connections and
 * to whoever asks for any port, and no test of this process has got it before.
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
