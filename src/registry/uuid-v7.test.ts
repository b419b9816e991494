import { expect, it } from 'vitest';
import { msOfUuidV7, uuidV7At } from './uuid-v7.ts';

it('an id of a time is a UUIDv7 of that millisecond, and no two are equal', () => {
  const time = new Date('2026-03-14T09:26:53.589Z');
  const ids = Array.from({ length: 1_000 }, () => uuidV7At(time));
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(msOfUuidV7(id)).toBe(time.getTime());
  }
  expect(new Set(ids).size).toBe(ids.length);
});
