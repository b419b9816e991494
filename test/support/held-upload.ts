import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Answer } from './api.ts';
import { rawPost, readAnswer } from './raw-http.ts';

/** An upload of one tag that is under way: all of it is sent but the end. */
export interface HeldUpload {
  readonly tagId: string;
  /** Undefined if the connection ended without one. */
  readonly answer: Promise<Answer | undefined>;
  /** Sends the rest. */
  finish(): void;
  /** Breaks the connection off. */
  abort(): void;
}

/** Begins an upload whose body has so many bytes, and sends all but the last `heldBytes` of them. */
export async function holdUpload(
  url: string,
  key: string,
  bodyBytes: number,
  { heldBytes = 1, encoded = false } = {},
): Promise<HeldUpload> {
  const tagId = randomUUID();
  const plain = Buffer.from(paddedBody(tagId, bodyBytes));
  // At level 0 it is wrapped and not made smaller.
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

/** Spaces between the end of the record and the end of the object make up the size. */
export function paddedBody(tagId: string, bytes: number): string {
  const start = JSON.stringify({ records: [{ tag_id: tagId, name: 'vegan' }] }).slice(0, -1);
  return `${start.padEnd(bytes - 1)}}`;
}
