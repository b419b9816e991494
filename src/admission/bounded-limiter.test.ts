import { expect, it } from 'vitest';
import { BoundedLimiter, type Windows } from './bounded-limiter.ts';

it('counts per window, and forgets the oldest name when there are too many', async () => {
  const windows: Windows = new Map();
  const limiter = new BoundedLimiter({ points: 3, duration: 60 }, windows, 1_000);
  const isTaken = (name: string, points = 1) =>
    limiter.consume(name, points).then(
      () => true,
      () => false,
    );
  expect([await isTaken('a', 2), await isTaken('a'), await isTaken('a')]).toEqual([true, true, false]);
  expect(await isTaken('b', 4)).toBe(false);
  for (let at = 0; at < 5_000; at++) await isTaken(`other ${at}`);
  expect(windows.size).toBe(1_000);
  expect(await isTaken('a')).toBe(true);
});

it('forgets every window that has ended when the next begins', async () => {
  const windows: Windows = new Map();
  const limiter = new BoundedLimiter({ points: 1, duration: 0.02 }, windows, 1_000);
  for (let at = 0; at < 100; at++) await limiter.consume(`early ${at}`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await limiter.consume('late');
  expect([...windows.keys()]).toEqual(['late']);
});
