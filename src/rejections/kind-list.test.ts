import { expect, it } from 'vitest';
import { limits } from '../limits.ts';
import { KindList } from './kind-list.ts';

const problem = (field: string, message = 'must be a string') => ({ field, code: 'wrong_type', message });

it('equal problems are one kind, whether or not they are one object', () => {
  const kinds = new KindList('tags', false);
  const shared = problem('name');
  expect(kinds.idOf([shared, problem('tag_id')])).toBe(kinds.idOf([shared, problem('tag_id')]));
  expect(kinds.idOf([problem('name')])).toBe(kinds.idOf([shared]));
  expect(kinds.all.map(({ fields }) => fields)).toEqual([['name', 'tag_id'], ['name']]);
});

it('equal problems are one kind when kinds are reduced to their first problem', () => {
  const kinds = new KindList('tags', true);
  expect(kinds.idOf([problem('name'), problem('tag_id')])).toBe(kinds.idOf([problem('name')]));
  expect(kinds.all).toHaveLength(1);
});

it('problems that differ in field, code or message are different kinds', () => {
  const kinds = new KindList('tags', false);
  const different = [
    problem('name'),
    problem('tag_id'),
    problem('name', 'is too long'),
    { ...problem('name'), code: 'too_long' },
    { ...problem('name'), field: null },
  ];
  expect(new Set(different.map((one) => kinds.idOf([one]))).size).toBe(different.length);
});

it('has at most the maximum of kinds in a batch, plus one for each first problem', () => {
  const kinds = new KindList('tags', false);
  for (let at = 0; at < 1_000; at++) kinds.idOf([problem('name'), problem('tag_id', `message ${at}`)]);
  expect(kinds.all).toHaveLength(limits.rejectionKindsPerBatchMax + 1);
});
