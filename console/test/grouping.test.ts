import { expect, it } from 'vitest';
import { mergeNewest } from '../src/api/interactions.ts';
import { permits } from '../src/api/permissions.ts';
import { referencedType } from '../src/format/personal.ts';
import { shellWord } from '../src/format/shell-word.ts';
import { readIds } from '../src/screens/privacy/read-ids.ts';
import { groupErrors } from '../src/screens/uploads/group-errors.ts';

it('errors of all batches are grouped by type, field and reason, the largest group first', () => {
  const error = (index: number, field: string | null, code: string) => ({
    index,
    id: null,
    field,
    code,
    message: code,
  });
  const batches = [
    { data: { type: 'shops', errors: [error(0, 'name', 'required'), error(1, 'region', 'invalid_format')] } },
    { data: { type: 'shops', errors: [error(1_000, 'region', 'invalid_format')] } },
  ] as unknown as Parameters<typeof groupErrors>[0];
  expect(
    groupErrors(batches).map(({ field, records }) => [field, records.map(({ index }) => index)]),
  ).toEqual([
    ['region', [1, 1_000]],
    ['name', [0]],
  ]);
});

it('the live mode shows each interaction once and keeps no more than 500', () => {
  const rows = (from: number, to: number) =>
    Array.from({ length: from - to }, (_, at) => ({ interaction_id: String(from - at) }));
  const merged = mergeNewest(rows(1_010, 910), rows(1_000, 500));
  expect(merged).toHaveLength(500);
  expect(merged[0]?.interaction_id).toBe('1010');
  expect(new Set(merged.map(({ interaction_id }) => interaction_id)).size).toBe(500);
});

it('the permission for all types covers each of them, but not the other way round', () => {
  expect(permits(['data:write'], 'data:write:shops')).toBe(true);
  expect(permits(['data:write:shops'], 'data:write:offers')).toBe(false);
  expect(permits(['data:write:shops'], 'data:write')).toBe(false);
});

it('a field links to the type that it refers to, but not an id to its own record', () => {
  expect(referencedType('transactions', 'shop_id')).toBe('shops');
  expect(referencedType('transactions', 'student_id')).toBe('customers');
  expect(referencedType('shops', 'shop_id')).toBeUndefined();
  expect(referencedType('shops', 'name')).toBeUndefined();
});

it('pasted ids are split, counted once and checked', () => {
  const id = 'e5b1c8d2-7f36-4a90-8c14-9d2e6f70b351';
  expect(readIds(`"${id}",\n${id}\r\n42`, 'customers')).toEqual({ ids: [id], wrong: ['42'] });
  expect(readIds('Ann Smith, 3rd\n\nbob\n', 'users')).toEqual({ ids: ['Ann Smith, 3rd', 'bob'], wrong: [] });
});

it('a value from an address cannot become a command', () => {
  expect(shellWord('2026-03-14T00:00:00.000Z')).toBe('2026-03-14T00:00:00.000Z');
  expect(shellWord("x'; rm -rf ~")).toBe("'x'\\''; rm -rf ~'");
});
