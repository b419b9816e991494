import { afterAll, beforeAll, expect, it } from 'vitest';
import { authenticate } from '../../src/keys/authenticate.ts';
import { FailedKeys } from '../../src/keys/failed-keys.ts';
import { makeKey } from '../../src/keys/key-format.ts';
import { KnownKeys } from '../../src/keys/known-keys.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

/** What a key costs a request. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

it('a key that is known adds less than 20 microseconds to a request', async () => {
  const { key } = await test.organisation('fast');
  const keys = new KnownKeys(test.pool);
  let isAnswered = false;
  const stop = keys.watch(
    (error) => expect.fail(String(error)),
    () => {
      isAnswered = true;
    },
  );
  await expect.poll(() => isAnswered, { timeout: 10_000 }).toBe(true);
  const failedKeys = new FailedKeys(1_000_000);
  const ask = () => authenticate(keys, failedKeys, { authorization: `Bearer ${key}`, address: '127.0.0.1' });
  for (let use = 0; use < 5_000; use++) await ask();
  const uses = 20_000;
  const before = process.threadCpuUsage();
  for (let use = 0; use < uses; use++) await ask();
  const { user, system } = process.threadCpuUsage(before);
  const each = (user + system) / uses;
  console.log(`a known key takes ${each.toFixed(1)} microseconds`);
  expect(each).toBeLessThan(20);
  await stop();
});

it('5,000 requests that may not have their key looked up keep another address waiting for less than 2 s', async () => {
  const { key } = await test.organisation('shared-look-up');
  const keys = new KnownKeys(test.pool);
  const few = new FailedKeys(10);
  const ask = (one: string, address: string) =>
    authenticate(keys, few, { authorization: `Bearer ${one}`, address }).catch(() => undefined);
  const wrong = Array.from({ length: 100 }, () => ask(makeKey().key, '192.0.2.1'));
  const refused = Array.from({ length: 5_000 }, () => ask(key, '192.0.2.1'));
  const startedMs = performance.now();
  expect(await ask(key, '192.0.2.2')).toBeDefined();
  await Promise.all([...refused, ...wrong]);
  expect(performance.now() - startedMs).toBeLessThan(2_000);
});
