// @module-tag full
// @module-tag waiting

import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { exchange } from '../support/exchange.ts';
import { expectInTime } from '../support/in-time.ts';
import { many } from '../support/new-records.ts';

/** Stops a server that has idle connections, silent connections, and connections with an incomplete request head. */
async function msToStop(): Promise<number> {
  const server = await startBuiltServer();
  const key = await server.createKey('acme');
  const agent = new Agent({ keepAlive: true });
  await Promise.all(many(10, () => exchange(`${server.url}/v1/data`, { agent, key })));
  const { port } = new URL(server.url);
  const [silent, halfway] = many(2, () => connect(Number(port), '127.0.0.1').on('error', () => {}));
  await Promise.all([silent, halfway].map((socket) => once(socket!, 'connect')));
  halfway!.write('GET /v1/data HTTP/1.1\r\nHost:');
  await apiOf(server.url).get('/health/live');
  const ended = once(server.process, 'exit');
  const beganMs = performance.now();
  server.process.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  const ms = performance.now() - beganMs;
  for (const socket of [silent, halfway]) socket!.destroy();
  agent.destroy();
  return ms;
}

it('SIGTERM ends an idle process within 1.5 s, whatever connections are open', () =>
  expectInTime(async () => [{ what: 'the end', ms: await msToStop(), promisedMs: 1_500 }]));
