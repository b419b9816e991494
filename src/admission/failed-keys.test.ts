import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FailedKeys } from './failed-keys.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('an address that failed too often is let in again a minute after it first failed', async () => {
  const failedKeys = new FailedKeys(2);
  const mayTry = () =>
    failedKeys.refuseTooMany('192.0.2.1').then(
      () => true,
      () => false,
    );
  await failedKeys.count('192.0.2.1');
  vi.advanceTimersByTime(30_000);
  await failedKeys.count('192.0.2.1');
  expect(await mayTry()).toBe(false);
  vi.advanceTimersByTime(29_999);
  // Further attempts do not extend the block.
  await expect(failedKeys.count('192.0.2.1')).rejects.toMatchObject({ code: 'too_many_failed_keys' });
  expect(await mayTry()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(await mayTry()).toBe(true);
  await failedKeys.count('192.0.2.1');
  expect(await mayTry()).toBe(true);
});

it('connections that were reset have no address, and count together', async () => {
  const failedKeys = new FailedKeys(2);
  const noAddress = undefined as unknown as string;
  for (let at = 0; at < 2; at++) await failedKeys.count(noAddress);
  await expect(failedKeys.refuseTooMany(noAddress)).rejects.toMatchObject({ code: 'too_many_failed_keys' });
  await failedKeys.refuseTooMany('192.0.2.1');
});
