import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { many } from '../../test/support/new-records.ts';
import { IdSet } from '../src/uploading/id-set.ts';

it('a set of ids knows each with its last batch, ignoring case, and whether it overlaps another', () => {
  const ids = many(20_000, () => randomUUID());
  const set = new IdSet();
  for (const [at, id] of ids.entries()) set.add(id, at % 7);
  set.add(ids[3] as string, 9);
  expect(set.batchOf((ids[3] as string).toUpperCase())).toBe(9);
  expect(ids.every((id, at) => at === 3 || set.batchOf(id) === at % 7)).toBe(true);
  const others = many(20_000, () => randomUUID());
  expect(others.every((id) => set.batchOf(id) === undefined)).toBe(true);
  const other = new IdSet();
  for (const id of others) other.add(id, 0);
  expect(other.meets(set)).toBe(false);
  other.add(ids[19_999] as string, 0);
  expect(other.meets(set)).toBe(true);
  expect(new IdSet().meets(set)).toBe(false);
});
