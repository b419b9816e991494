import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import type { Answer } from '../support/api.ts';
import { expectError } from '../support/expect-error.ts';
import { freePort } from '../support/free-port.ts';
import { type HeldUpload, holdUpload, paddedBody } from '../support/held-upload.ts';
import { many } from '../support/new-records.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { scrapeMetrics } from '../support/scrape-metrics.ts';

/** Tests the limits on memory for request bodies: one limit per organisation, and one for the whole process. */

/**
 * Two bodies fit into an organisation's limit. Three bodies in flight leave too little memory for a body from another
 * organisation.
 */
const bodyBytes = 60_000;

let server: AdminServer;
let metricsUrl: string;
let [first, second, third]: string[] = [];
beforeAll(async () => {
  const METRICS_PORT = String(await freePort());
  metricsUrl = `http://127.0.0.1:${METRICS_PORT}/metrics`;
  server = await startAdminServer({
    METRICS_PORT,
    BODY_BYTES_MAX: '65536',
    BYTES_IN_FLIGHT_PER_ORGANISATION_MAX: '131072',
    BYTES_IN_FLIGHT_MAX: '240000',
  });
  [first, second, third] = [
    await server.createKey('one'),
    await server.createKey('two'),
    await server.createKey('three'),
  ];
});
afterAll(() => server.stop());

const bytesInFlight = async () => (await scrapeMetrics(metricsUrl)).get('intake_bytes_in_flight');

/** Starts an upload with each key, and waits until the process counts all of them as in flight. */
async function hold(...keys: string[]): Promise<HeldUpload[]> {
  const held = new Map<number, HeldUpload>();
  onTestFinished(() => {
    for (const one of held.values()) one.abort();
  });
  const holdAll = async () => {
    // Retry refused uploads, because the process may not have noticed yet that an earlier connection was closed.
    for (const [at, key] of keys.entries()) {
      if (held.has(at)) continue;
      const one = await holdUpload(server.url, key, bodyBytes);
      held.set(at, one);
      void one.answer.then(() => held.delete(at));
    }
    return bytesInFlight();
  };
  await expect.poll(holdAll).toBe(keys.length * bodyBytes);
  return [...held.values()];
}

async function finish(held: readonly HeldUpload[]): Promise<void> {
  for (const one of held) one.finish();
  for (const one of held) expect((await one.answer)?.status).toBe(200);
}

/** Sends a complete upload of the same size on a plain socket, because the response may arrive before the upload ends. */
function upload(key: string): Promise<Answer> {
  const headers = [
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${bodyBytes}`,
  ];
  return sendRaw(server.url, rawPost('/v1/data/tags', headers, paddedBody(randomUUID(), bodyBytes)));
}
const statusOf = async (key: string) => (await upload(key)).status;

/** Checks that all earlier reservations are released: an organisation can have two bodies in flight, but not three. */
async function expectRoomForTwo(key: string): Promise<void> {
  // On a busy machine, the process may need some time to notice closed connections and release their bodies.
  const outcome = async () => {
    await expect.poll(bytesInFlight).toBe(0);
    const held = await hold(key, key);
    const third = await statusOf(key);
    for (const one of held) one.finish();
    return [third, ...(await Promise.all(held.map(async ({ answer }) => (await answer)?.status)))];
  };
  await expect.poll(outcome).toEqual([429, 200, 200]);
}

it('more of one organisation is 429, others pass, and once the bodies are done it passes again', async () => {
  const held = await hold(first!, first!);
  const refused = await upload(first!);
  expectError(refused, 429);
  expect(refused.body.message).toMatch(/bytes/);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await statusOf(second!)).toBe(200);
  await finish(held);
  expect(await statusOf(first!)).toBe(200);
});

it('more in total is 503, and once the bodies are done it passes again', async () => {
  const held = await hold(first!, first!, second!);
  const refused = await upload(third!);
  expectError(refused, 503);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  await finish(held);
  expect(await statusOf(third!)).toBe(200);
});

it('requests without a body pass while there is no room for one', async () => {
  const held = await hold(first!, first!, second!);
  expect(await statusOf(third!)).toBe(503);
  for (const path of ['/v1/data/tags', '/v1/requests']) {
    const read = await fetch(server.url + path, { headers: { authorization: `Bearer ${first}` } });
    expect(read.status).toBe(200);
  }
  for (const one of held) one.abort();
  await expectRoomForTwo(first!);
});

it('a body without a declared size is counted as it arrives', async () => {
  const chunked = (key: string) =>
    sendRaw(
      server.url,
      rawPost(
        '/v1/data/tags',
        [`Authorization: Bearer ${key}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked'],
        `${bodyBytes.toString(16)}\r\n${paddedBody(randomUUID(), bodyBytes)}\r\n0\r\n\r\n`,
      ),
    );
  expect((await chunked(first!)).status).toBe(200);
  const held = await hold(first!, first!);
  expect((await chunked(first!)).status).toBe(429);
  for (const one of held) one.abort();
  await expectRoomForTwo(first!);
});

it('a compressed body is counted by its decompressed size', async () => {
  const compressed = (key: string) => {
    const body = gzipSync(paddedBody(randomUUID(), bodyBytes));
    expect(body.length).toBeLessThan(1_000);
    const headers = ['Content-Type: application/json', 'Content-Encoding: gzip'];
    const length = `Content-Length: ${body.length}`;
    const authorization = `Authorization: Bearer ${key}`;
    return sendRaw(server.url, rawPost('/v1/data/tags', [authorization, ...headers, length], body));
  };
  expect((await compressed(first!)).status).toBe(200);
  const held = await hold(first!, first!);
  expect((await compressed(first!)).status).toBe(429);
  for (const one of held) one.abort();
  await expectRoomForTwo(first!);
});

describe.each([
  ['plain', false],
  ['compressed', true],
])('connections with a body that is %s', (_what, encoded) => {
  it('release their memory when they break', async () => {
    for (let round = 0; round < 20; round++) {
      // Some connections close with most of the body missing, some one byte before its end, and some right after it.
      const held = await Promise.all(
        many(10, (at) => {
          const heldBytes = [1, 50_000, 30_000][at % 3]!;
          return holdUpload(server.url, first!, bodyBytes, { heldBytes, encoded });
        }),
      );
      await sleep(round * 2);
      held.forEach((one, at) => {
        if (at % 4 === 0) one.finish();
      });
      for (const one of held) one.abort();
    }
    await expectRoomForTwo(first!);
  });

  it('hold nothing if they break before their key is looked up', async () => {
    for (let round = 0; round < 10; round++) {
      const { body } = await server.admin.post('/admin/v1/keys', { organisation: 'one' });
      // The process does not know the key, so it queries the database. The client disconnects in the meantime.
      const held = await Promise.all(many(2, () => holdUpload(server.url, body.key, bodyBytes, { encoded })));
      for (const one of held) one.abort();
    }
    await expectRoomForTwo(first!);
  });
});

it('refused requests release their memory', async () => {
  const headers = (key: string, ...more: string[]) => [`Authorization: Bearer ${key}`, ...more];
  const json = 'Content-Type: application/json';
  const length = `Content-Length: ${bodyBytes}`;
  const refusals: [number, Buffer][] = [
    [400, rawPost('/v1/data/tags', headers(first!, json, length), '{'.repeat(bodyBytes))],
    [400, rawPost('/v1/data/tags?colour=1', headers(first!, json, length), ' '.repeat(bodyBytes))],
    [404, rawPost('/v1/data/toys', headers(first!, json, length), ' '.repeat(bodyBytes))],
    [413, rawPost('/v1/data/tags', headers(first!, json, 'Content-Length: 70000'), ' '.repeat(70_000))],
    [
      415,
      rawPost('/v1/data/tags', headers(first!, 'Content-Type: text/plain', length), ' '.repeat(bodyBytes)),
    ],
  ];
  for (const [status, bytes] of refusals)
    for (let round = 0; round < 10; round++) expect((await sendRaw(server.url, bytes)).status).toBe(status);
  await expectRoomForTwo(first!);
});

it('an organisation may have its own limit', async () => {
  await server.run('organisations', 'limit', 'three', '--bytes-in-flight', '70000');
  const held = await hold(third!);
  await expect.poll(() => statusOf(third!)).toBe(429);
  await server.run('organisations', 'limit', 'three', '--bytes-in-flight', 'default');
  await expect.poll(() => statusOf(third!)).toBe(200);
  await finish(held);
  await expectRoomForTwo(third!);
});
