import { expect, it } from 'vitest';
import { browserKey, hashedKey, idsInKey } from './idempotency-keys.ts';

const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c01';

it('finds an id that is the whole key, or a UUID anywhere in it, in any case', () => {
  expect(idsInKey('anna@example.com')).toContain('anna@example.com');
  for (const key of [id, id.toUpperCase(), `nightly ${id}`, `x${id.toUpperCase()}9`, `${id}${id}`])
    expect(idsInKey(key)).toContain(id);
});

it('finds the ids in keys of browsers', () => {
  for (const key of ['anna@example.com', id]) expect(idsInKey(browserKey(key))).toContain(key);
});

it('a hashed key contains no id and is the same each time', () => {
  const hashed = hashedKey(`nightly ${id}`);
  expect(hashed).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(idsInKey(hashed)).toEqual([hashed]);
  expect(hashedKey(`nightly ${id}`)).toBe(hashed);
});
