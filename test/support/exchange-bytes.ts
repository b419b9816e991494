import { connect } from 'node:net';

export interface Exchange {
  /** The status of every answer that came. */
  readonly statuses: readonly number[];
  /** All that came. */
  readonly text: string;
  /** Whether the server ended the connection by itself, in time. */
  readonly closed: boolean;
}

/**
 * Sends bytes as they are and takes all that comes back until the server ends the connection. It is not ended from this
 * side: a server that waits for more would then take that for the end.
 */
export function exchangeBytes(url: string, bytes: string | Buffer, timeoutMs = 50_000): Promise<Exchange> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const finish = (closed: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      const text = Buffer.concat(received).toString('latin1');
      const statuses = [...text.matchAll(/HTTP\/1\.\d (\d{3})/g)].map(([, status]) => Number(status));
      resolve({ statuses, text, closed });
    };
    const timer = setTimeout(() => finish(false), timeoutMs);
    socket.on('data', (chunk) => received.push(chunk));
    // A server that refuses early may reset the connection while we still write; what it said is what counts.
    socket.on('error', () => {});
    socket.on('end', () => finish(true)).on('close', () => finish(true));
  });
}
