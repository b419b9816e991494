import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Answer } from './api.ts';
import { rawPost, readAnswer } from './raw-http.ts';

/** A pending one-tag upload whose last bytes have not been sent. */
export interface HeldUpload {
  readonly tagId: string;
  /** The response, or undefined if the connection ended without one. */
  readonly answer: Promise<Answer | undefined>;
  /** Sends the remaining bytes. */
  finish(): void;
  /** Closes the connection abruptly. */
  abort(): void;
}

/** Starts an upload with a body of this size, and sends all but the last `heldBytes` bytes. */
export async function holdUpload(
  url: string,
  key: string,
  bodyBytes: number,
  { heldBytes = 1, encoded = false } = {},
): Promise<HeldUpload> {
  const tagId = randomUUID();
  const plain = Buffer.from(paddedBody(tagId, bodyBytes));
  // Level 0 wraps the body without compressing it.
  const body = encoded ? gzipSync(plain, { level: 0 }) : plain;
  const headers = [
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...(encoded ? ['Content-Encoding: gzip'] : []),
  ];
  const request = rawPost('/v1/data/tags', headers, body);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  let received = Buffer.alloc(0);
  const answer = new Promise<Answer | undefined>((resolve) => {
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      const whole = readAnswer(received);
      if (whole) resolve(whole);
    });
    socket.on('close', () => resolve(undefined));
    socket.on('error', () => {});
  });
  socket.write(request.subarray(0, request.length - heldBytes));
  return {
    tagId,
    answer: answer.finally(() => socket.destroy()),
    finish: () => void socket.write(request.subarray(request.length - heldBytes)),
    abort: () => void socket.destroy(),
  };
}

/** Returns a body that is padded to the size with spaces after the record. */
export function paddedBody(tagId: string, bytes: number): string {
  const start = JSON.stringify({ records: [{ tag_id: tagId, name: 'vegan' }] }).slice(0, -1);
  return `${start.padEnd(bytes - 1)}}`;
}
