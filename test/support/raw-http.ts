import { connect } from 'node:net';
import type { Answer } from './api.ts';

/**
 * Sends raw bytes and reads one HTTP response, for requests that no HTTP client would send. Rejects if the connection
 * closes before the response is complete, or if the response does not arrive in time.
 */
export function sendRaw(url: string, bytes: string | Buffer, timeoutMs = 240_000): Promise<Answer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let received = Buffer.alloc(0);
    const finish = (conclude: () => void) => {
      clearTimeout(timer);
      socket.destroy();
      conclude();
    };
    const timer = setTimeout(() => finish(() => reject(new Error('no answer in time'))), timeoutMs);
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      const answer = readAnswer(received);
      if (answer) finish(() => resolve(answer));
    });
    // A server that refuses early may reset the connection during the upload, but only its response matters.
    socket.on('error', () => {});
    socket.on('close', () => finish(() => reject(new Error(`closed after ${received.length} bytes`))));
    socket.write(bytes);
  });
}

/** Returns the bytes of a POST request with these headers and this body. */
export function rawPost(path: string, headers: readonly string[], body: string | Buffer = ''): Buffer {
  const head = [`POST ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}

/** Returns the first complete response, or undefined if part of it has not arrived yet. */
export function readAnswer(received: Buffer): Answer | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = received.toString('latin1', 0, end).split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  const rest = received.subarray(end + 4);
  if (status === 100) return readAnswer(rest);
  const headers = new Headers(
    lines.map((line): [string, string] => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1),
    ]),
  );
  const text = headers.has('transfer-encoding')
    ? joinChunks(rest)
    : wholeOf(rest, Number(headers.get('content-length') ?? 0));
  if (text === undefined) return undefined;
  const json = headers.get('content-type')?.startsWith('application/json');
  return { status, headers, body: json && text !== '' ? JSON.parse(text) : text };
}

function wholeOf(bytes: Buffer, length: number): string | undefined {
  return bytes.length < length ? undefined : bytes.toString('utf8', 0, length);
}

function joinChunks(bytes: Buffer): string | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const start = lineEnd + 2;
    if (bytes.length < start + size + 2) return undefined;
    if (size === 0) return Buffer.concat(chunks).toString('utf8');
    chunks.push(bytes.subarray(start, start + size));
    at = start + size + 2;
  }
}
