import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many, newTag } from '../support/new-records.ts';

/** Clients that leave early are not errors of the service. */

let server: BuiltServer;
let key: string;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
});
afterAll(() => server.stop());

const warnings = () =>
  server.log.filter((line) => /"level":[456]0/.test(line) && !line.includes('intake.accepted_settings'));

/** Sends a request and resets the connection after some bytes of the answer, or as soon as the request is written. */
function askAndReset(path: string, headers: readonly string[], afterBytes: number): Promise<void> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () =>
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers.join('\r\n')}\r\n\r\n`, () => {
        if (afterBytes === 0) socket.resetAndDestroy();
      }),
    );
    let read = 0;
    socket.on('data', (bytes) => {
      read += bytes.length;
      if (read >= afterBytes) socket.resetAndDestroy();
    });
    socket.on('error', () => {}).on('close', () => resolve());
  });
}

it('a connection that is reset before its request is handled is not logged as an error', async () => {
  const wrong = ['Authorization: Bearer intake_0Qm3xYb7ZkA_nothing'];
  for (let at = 0; at < 300; at += 50)
    await Promise.all(Array.from({ length: 50 }, () => askAndReset('/v1/data', wrong, 0)));
  expect((await apiOf(server.url, key).get('/v1/data')).status).toBe(200);
  expect(warnings()).toEqual([]);
});

it.each(['application/x-ndjson', 'application/json'])(
  'leaving during a compressed answer of %s is not logged as an error',
  async (accept) => {
    const api = apiOf(server.url, key);
    for (let at = 0; at < 2; at++)
      await api.batch(
        'tags',
        many(5_000, () => newTag()),
      );
    const headers = [`Authorization: Bearer ${key}`, `Accept: ${accept}`, 'Accept-Encoding: gzip'];
    for (let at = 0; at < 5; at++) await askAndReset('/v1/data/tags?limit=1000', headers, 1);
    await sleep(500);
    expect((await api.get('/v1/data')).status).toBe(200);
    expect(warnings()).toEqual([]);
  },
);
