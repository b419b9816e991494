// @module-tag full
// @module-tag waiting

import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { get } from 'node:https';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectInTime, type Timed } from '../support/in-time.ts';
import { many, newTag } from '../support/new-records.ts';
import { type Nginx, nginxIsInstalled, startNginx } from '../support/nginx.ts';

/** Streams changes through nginx with the configuration in deploy/, which must not buffer anything. */

const promisedMs = 1_000;
/** This timeout is long enough for a slow machine. A buffering proxy would take minutes to fill its first buffer. */
const waitMs = 120_000;

let server: BuiltServer;
let nginx: Nginx;
let key: string;
beforeAll(async () => {
  if (!nginxIsInstalled) return;
  server = await startBuiltServer({ TRUSTED_PROXY: '127.0.0.1' });
  key = await server.createKey('acme');
  const { port } = new URL(server.url);
  nginx = await startNginx(many(4, () => Number(port)));
});
afterAll(async () => {
  await nginx?.stop();
  await server?.stop();
});

interface Opened {
  /** Resolves when the headers have arrived. */
  readonly body: Promise<Readable>;
  close(): void;
}

function openHttp1(path: string, headers: Record<string, string>): Opened {
  const options = { headers, ca: nginx.ca };
  const request = get(nginx.url + path, options).on('error', () => {});
  const body = once(request, 'response').then(([response]) => {
    expect(response.statusCode).toBe(200);
    return response as Readable;
  });
  return { body, close: () => void request.destroy() };
}

function openHttp2(path: string, headers: Record<string, string>): Opened {
  const session = connectHttp2(nginx.url, { ca: nginx.ca });
  const request = session.request({ ':path': path, ...headers });
  for (const one of [session, request]) one.on('error', () => {});
  const body = once(request, 'response').then(([answered]) => {
    expect(answered[':status']).toBe(200);
    return request;
  });
  return { body, close: () => void session.destroy() };
}

async function timed<T>(what: string, work: Promise<T>, into: Timed[]): Promise<T> {
  const beganMs = performance.now();
  const late = new Promise<never>((_, reject) => {
    const timer = setTimeout(reject, waitMs, new Error(`${what}: nothing within ${waitMs} ms`));
    const stop = () => clearTimeout(timer);
    work.then(stop, stop);
  });
  const result = await Promise.race([work, late]);
  into.push({ what, ms: performance.now() - beganMs, promisedMs });
  return result;
}

it.skipIf(!nginxIsInstalled).each([
  ['HTTP/1.1', openHttp1],
  ['HTTP/2', openHttp2],
])('over %s the headers, the first line and each change arrive within a second', async (_what, open) => {
  const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' };
  // This client connects to the service directly, which only accepts requests that claim to come over HTTPS.
  const https = { 'x-forwarded-proto': 'https' };
  const api = apiOf(server.url, key);
  await expectInTime(async () => {
    const exported = await api.get('/v1/data/tags', { ...headers, ...https });
    const after = exported.headers.get('changes-cursor');
    const times: Timed[] = [];
    const { body, close } = open(`/v1/changes?after=${after}`, headers);
    try {
      const lines = createInterface({ input: await timed('headers', body, times) })[Symbol.asyncIterator]();
      const first = await timed('first line', lines.next(), times);
      expect(Object.keys(JSON.parse(first.value!))).toEqual(['cursor']);
      const tag = newTag();
      expect((await api.post('/v1/data/tags', { records: [tag] }, https)).status).toBe(200);
      // A heartbeat may arrive between the upload and its change.
      const change = async () => {
        for (;;) {
          const { value } = await lines.next();
          const { id } = JSON.parse(value!);
          if (id !== undefined) return id;
        }
      };
      expect(await timed('change', change(), times)).toBe(tag.tag_id);
      return times;
    } finally {
      close();
    }
  });
});
