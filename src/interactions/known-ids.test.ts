import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { limits } from '../limits.ts';
import { KnownIds } from './known-ids.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

it('knows an id of the organisation and type it was added for', () => {
  const known = new KnownIds();
  known.add('acme', 'shops', '1');
  expect(known.has('acme', 'shops', '1')).toBe(true);
  expect(known.has('acme', 'shops', '2')).toBe(false);
  expect(known.has('acme', 'tags', '1')).toBe(false);
  expect(known.has('other', 'shops', '1')).toBe(false);
});

it('forgets an id after one or two generations, even if it is used and added all the time', () => {
  const known = new KnownIds();
  vi.advanceTimersByTime(limits.knownIdsGenerationMs / 2);
  known.add('acme', 'shops', '1');
  let ms = 0;
  while (known.has('acme', 'shops', '1')) {
    known.add('acme', 'shops', '1');
    vi.advanceTimersByTime(1_000);
    ms += 1_000;
  }
  expect(ms).toBeGreaterThan(limits.knownIdsGenerationMs);
  expect(ms).toBeLessThanOrEqual(600_000);
});

it('forgets everything after a pause of two generations', () => {
  const known = new KnownIds();
  known.add('acme', 'shops', '1');
  vi.advanceTimersByTime(2 * limits.knownIdsGenerationMs);
  expect(known.has('acme', 'shops', '1')).toBe(false);
});

it('keeps a maximum per type and a maximum in total', () => {
  const known = new KnownIds();
  const fill = (organisation: string) => {
    for (let id = 0; id < limits.knownIdsPerTypeMax; id++) known.add(organisation, 'shops', String(id));
  };
  fill('acme');
  known.add('acme', 'shops', 'one more');
  expect(known.has('acme', 'shops', 'one more')).toBe(false);
  known.add('other', 'shops', '1');
  expect(known.has('other', 'shops', '1')).toBe(true);
  for (let at = 0; at < limits.knownIdsMax / limits.knownIdsPerTypeMax; at++) fill(`org-${at}`);
  known.add('late', 'shops', '1');
  expect(known.has('late', 'shops', '1')).toBe(false);
});
