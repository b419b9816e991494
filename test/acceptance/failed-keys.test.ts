// @module-tag full

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { many } from '../support/new-records.ts';
import { runCommand } from '../support/run-command.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/**
 * A client that tries wrong keys is blocked for a short time, but other clients at the same address are not.
 * src/admission/failed-keys.test.ts tests that the block ends after a minute.
 */

const failuresMax = 10;
let server: BuiltServer;
let proxy: TcpProxy;
/** Well-formed keys that another installation issued. */
let unknown: string[];
beforeAll(async () => {
  proxy = await startTcpProxy(await createTestDatabase());
  server = await startBuiltServer({
    DATABASE_URL: proxy.databaseUrl,
    FAILED_KEYS_PER_MINUTE_MAX: String(failuresMax),
    // This setting lets a test send requests from any address.
    TRUSTED_PROXY: '127.0.0.1',
  });
  const env = { DATABASE_URL: await createTestDatabase() };
  await runCommand(['organisations', 'create', 'elsewhere'], env);
  const issue = ['keys', 'issue', '--organisation', 'elsewhere', '--json'];
  unknown = [];
  for (let at = 0; at < 3; at++) unknown.push(JSON.parse((await runCommand(issue, env)).stdout).key);
});
afterAll(async () => {
  await server.stop();
  await proxy.close();
});

/** Sends a request that needs no query once the key is cached. */
function ask(address: string, key: string): Promise<Answer> {
  const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': address };
  return apiOf(server.url, key).get('/nowhere', headers);
}
const status = async (address: string, key: string) => (await ask(address, key)).status;

/** Sends as many failing requests as the limit allows, and one more. */
async function lockOut(address: string, keys: readonly string[] = unknown): Promise<Answer> {
  for (let at = 0; at < failuresMax; at++) expect(await status(address, keys[at % keys.length]!)).toBe(401);
  return ask(address, keys[0]!);
}

function expectLockedOut(answer: Answer): number {
  expectError(answer, 429);
  expect(answer.body.message).toMatch(/key/);
  const wait = Number(answer.headers.get('retry-after'));
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(60);
  return wait;
}

it('too many wrong keys are 429, only for that address', async () => {
  const wait = expectLockedOut(await lockOut('192.0.2.1'));
  expect(await status('192.0.2.2', unknown[0]!)).toBe(401);
  // Further attempts do not extend the block.
  await sleep(3_000);
  expect(expectLockedOut(await ask('192.0.2.1', unknown[1]!))).toBeLessThan(wait);
});

it('a malformed key counts like any other wrong one', async () => {
  expectLockedOut(await lockOut('192.0.2.3', ['intake_nonsense', 'secret', unknown[0]!]));
});

it('an address with a port is the same address', async () => {
  for (let at = 0; at < failuresMax; at++)
    expect(await status(`192.0.2.19:${5_000 + at}`, unknown[0]!)).toBe(401);
  expectLockedOut(await ask('192.0.2.19:6000', unknown[0]!));
  expectLockedOut(await ask('192.0.2.19', unknown[0]!));
});

it('concurrent attempts do not bypass the limit', async () => {
  const answers = await Promise.all(many(40, (at) => status('192.0.2.4', unknown[at % 3]!)));
  expect(answers.filter((one) => one === 401).length).toBeLessThanOrEqual(failuresMax);
  expect(answers.filter((one) => one === 401 || one === 429)).toHaveLength(40);
});

it('a valid key that the process knows keeps working, from the same address', async () => {
  const good = await server.createKey('acme');
  expect(await status('192.0.2.5', good)).toBe(404);
  expectLockedOut(await lockOut('192.0.2.5'));
  // The key was created after the last poll, so the next poll, within two seconds, reports the key as changed.
  for (let at = 0; at < 20; at++) {
    expect(await status('192.0.2.5', good)).toBe(404);
    await sleep(125);
  }
  expect(await status('192.0.2.5', unknown[0]!)).toBe(429);
});

it('a client with an old key does not lock its neighbour out', async () => {
  const [old, good] = [await server.createKey('acme'), await server.createKey('acme')];
  expect([await status('192.0.2.6', old), await status('192.0.2.6', good)]).toEqual([404, 404]);
  await server.run('keys', 'revoke', old.split('_')[1]!);
  await expect.poll(() => status('192.0.2.6', old)).toBe(401);
  await expect.poll(() => status('192.0.2.6', old)).toBe(429);
  expect(await status('192.0.2.6', good)).toBe(404);
  const fresh = await server.createKey('acme');
  expect(await status('192.0.2.6', fresh)).toBe(404);
  expect(await status('192.0.2.6', unknown[0]!)).toBe(401);
});

it('valid keys and requests without a key are not counted', async () => {
  const good = await server.createKey('acme');
  const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7' };
  for (let at = 0; at < 3 * failuresMax; at++) {
    expect(await status('192.0.2.7', good)).toBe(404);
    expect((await apiOf(server.url).get('/nowhere', headers)).status).toBe(401);
  }
  expect(await status('192.0.2.7', unknown[0]!)).toBe(401);
});

it('further wrong keys are refused without a query', async () => {
  expectLockedOut(await lockOut('192.0.2.8'));
  await proxy.refuse();
  try {
    expect(await status('192.0.2.9', unknown[0]!)).toBe(503);
    expectLockedOut(await ask('192.0.2.8', unknown[2]!));
  } finally {
    await proxy.accept();
  }
});

it('public addresses stay open', async () => {
  expectLockedOut(await lockOut('192.0.2.10'));
  const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.10' };
  for (const path of ['/health/live', '/openapi.json'])
    expect((await apiOf(server.url, unknown[0]!).get(path, headers)).status).toBe(200);
});
