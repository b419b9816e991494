import { connect } from 'node:net';

export interface Exchange {
  /** The statuses of all responses. */
  readonly statuses: readonly number[];
  /** All text that was received. */
  readonly text: string;
  /** Whether the server closed the connection in time. */
  readonly closed: boolean;
}

/**
 * Sends raw bytes and reads until the server closes the connection. The client does not close the connection, because a
 * server that waits for more data would treat that as the end.
 */
export function exchangeBytes(url: string, bytes: string | Buffer, timeoutMs = 240_000): Promise<Exchange> {
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
    // A server that refuses early may reset the connection during the upload, but only its response matters.
    socket.on('error', () => {});
    socket.on('end', () => finish(true)).on('close', () => finish(true));
  });
}
