import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import type { Answer } from '../support/api.ts';
import { expectError } from '../support/expect-error.ts';
import { type HeldUpload, holdUpload, paddedBody } from '../support/held-upload.ts';
import { many } from '../support/new-records.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';

/** How much a process holds of bodies at once: so much of one organisation, so much of all. */

/** Two of them fit what an organisation may have; with three of all, a third of what is free would not be left. */
const bodyBytes = 60_000;

let server: AdminServer;
let [first, second, third]: string[] = [];
beforeAll(async () => {
  server = await startAdminServer({
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

const hold = (key: string) => holdUpload(server.url, key, bodyBytes);
/** A whole upload, of the same size. Its answer may come before its end is sent, so it goes over a plain socket. */
function upload(key: string): Promise<Answer> {
  const headers = [
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${bodyBytes}`,
  ];
  return sendRaw(server.url, rawPost('/v1/data/tags', headers, paddedBody(randomUUID(), bodyBytes)));
}
const statusOf = async (key: string) => (await upload(key)).status;

/** An organisation may have two bodies under way and no third: what was held before is let go, and no more than that. */
async function expectRoomForTwo(key: string): Promise<void> {
  const finish = async (held: readonly HeldUpload[]) => {
    for (const one of held) one.finish();
    return Promise.all(held.map(async ({ answer }) => (await answer)?.status));
  };
  // That a connection is broken is noticed a moment later.
  const two = async () => finish([await hold(key), await hold(key)]);
  await expect.poll(two).toEqual([200, 200]);
  const held = [await hold(key), await hold(key)];
  await expect.poll(() => statusOf(key)).toBe(429);
  expect(await finish(held)).toEqual([200, 200]);
}

it('more of one organisation is 429, of others it passes, and when the bodies are through it does again', async () => {
  const held = [await hold(first!), await hold(first!)];
  await expect.poll(() => statusOf(first!)).toBe(429);
  const refused = await upload(first!);
  expectError(refused, 429);
  expect(refused.body.message).toMatch(/bytes/);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await statusOf(second!)).toBe(200);
  for (const one of held) one.finish();
  for (const one of held) expect((await one.answer)?.status).toBe(200);
  expect(await statusOf(first!)).toBe(200);
});

it('more of all is 503, and when the bodies are through it passes again', async () => {
  const held = [await hold(first!), await hold(first!), await hold(second!)];
  await expect.poll(() => statusOf(third!)).toBe(503);
  const refused = await upload(third!);
  expectError(refused, 503);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  for (const one of held) one.finish();
  for (const one of held) expect((await one.answer)?.status).toBe(200);
  expect(await statusOf(third!)).toBe(200);
});

it('requests without a body pass while there is no room for one', async () => {
  const held = [await hold(first!), await hold(first!), await hold(second!)];
  await expect.poll(() => statusOf(third!)).toBe(503);
  for (const path of ['/v1/data/tags', '/v1/requests']) {
    const read = await fetch(server.url + path, { headers: { authorization: `Bearer ${first}` } });
    expect(read.status).toBe(200);
  }
  for (const one of held) one.abort();
  await expectRoomForTwo(first!);
});

it('a body whose size is not announced is counted as it comes', async () => {
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
  const held = [await hold(first!), await hold(first!)];
  await expect.poll(async () => (await chunked(first!)).status).toBe(429);
  for (const one of held) one.abort();
  await expectRoomForTwo(first!);
});

it('a compressed body is counted as it is once decompressed', async () => {
  const compressed = (key: string) => {
    const body = gzipSync(paddedBody(randomUUID(), bodyBytes));
    expect(body.length).toBeLessThan(1_000);
    const headers = ['Content-Type: application/json', 'Content-Encoding: gzip'];
    const length = `Content-Length: ${body.length}`;
    const authorization = `Authorization: Bearer ${key}`;
    return sendRaw(server.url, rawPost('/v1/data/tags', [authorization, ...headers, length], body));
  };
  expect((await compressed(first!)).status).toBe(200);
  const held = [await hold(first!), await hold(first!)];
  await expect.poll(async () => (await compressed(first!)).status).toBe(429);
  for (const one of held) one.abort();
  await expectRoomForTwo(first!);
});

describe.each([
  ['plain', false],
  ['compressed', true],
])('connections with a body that is %s', (_what, encoded) => {
  it('give back what they held when they die', async () => {
    for (let round = 0; round < 20; round++) {
      // Some die with most of the body still to come, some a byte before its end, some right behind it.
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

  it('hold nothing when they die before their key is looked up', async () => {
    for (let round = 0; round < 10; round++) {
      const { body } = await server.admin.post('/admin/v1/keys', { organisation: 'one' });
      // The process has not seen the key, so it asks the database; meanwhile nobody waits for it any more.
      const held = await Promise.all(many(2, () => holdUpload(server.url, body.key, bodyBytes, { encoded })));
      for (const one of held) one.abort();
    }
    await expectRoomForTwo(first!);
  });
});

it('requests that are refused give back what they held', async () => {
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

it('an organisation may have more or less than the others', async () => {
  await server.run('organisations', 'limit', 'three', '--bytes-in-flight', '70000');
  const held = await hold(third!);
  await expect.poll(() => statusOf(third!)).toBe(429);
  held.finish();
  expect((await held.answer)?.status).toBe(200);
  await server.run('organisations', 'limit', 'three', '--bytes-in-flight', 'default');
  await expectRoomForTwo(third!);
});
