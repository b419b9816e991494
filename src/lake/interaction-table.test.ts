import { expect, it } from 'vitest';
import { uuidFloor } from '../registry/uuid-v7.ts';
import { RecentIds } from './interaction-table.ts';

const idAt = (ms: number, last = 0) => `${uuidFloor(ms).slice(0, -1)}${last}`;

it('a row that is newer than all of the table is new', () => {
  const recent = new RecentIds(1_000);
  expect(recent.has(idAt(1_001))).toBe(false);
  expect(recent.has(idAt(1_000))).toBe(undefined);
});

it('knows the rows that were added, and says when it has forgotten some', () => {
  const recent = new RecentIds(-1, 3);
  recent.add([idAt(5), idAt(9), idAt(7)]);
  expect([idAt(5), idAt(9), idAt(7)].map((id) => recent.has(id))).toEqual([true, true, true]);
  expect(recent.has(idAt(9, 1))).toBe(false);
  recent.add([idAt(8), idAt(10)]);
  // The two oldest entries were evicted. One of them was received later than some entries that remain.
  expect([5, 9].map((ms) => recent.has(idAt(ms)))).toEqual([undefined, undefined]);
  expect([7, 8, 10].map((ms) => recent.has(idAt(ms)))).toEqual([true, true, true]);
  expect(recent.has(idAt(8, 1))).toBe(undefined);
  expect(recent.has(idAt(10, 1))).toBe(false);
});
