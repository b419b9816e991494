import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Returns the first of these ports on which no process listens on loopback. They should be below the ephemeral port range.
 * Otherwise, the system could give the port to another process before it is used.
 */
export async function freePortAmong(nextPort: () => number): Promise<number> {
  for (;;) {
    const port = nextPort();
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
