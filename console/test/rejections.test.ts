import { expect, it } from 'vitest';
import { addReplay } from '../src/api/rejections.ts';
import { countMissingIds } from '../src/screens/rejections/count-missing-ids.ts';
import {
  fieldsOf,
  fieldsToCorrect,
  readForm,
  unknownFields,
  valuesOf,
} from '../src/screens/rejections/record-form.ts';

const transactions = fieldsOf('transactions');
const record = {
  transaction_id: 'f7a9b8c7-6d54-4e32-9f10-6e97e6d5b423',
  shop_id: '70a1b2c3-d4e5-4f60-8a7b-9c0d1e2f3a4b',
  region: 'GB',
  savings: 1,
  amount: 9.5,
};

it('a form has the fields of its type, with the kind of each', () => {
  expect(transactions.find(({ name }) => name === 'amount')).toMatchObject({
    kind: 'number',
    required: true,
  });
  expect(transactions.find(({ name }) => name === 'is_deleted')).toMatchObject({
    kind: 'boolean',
    required: false,
  });
  expect(fieldsOf('customers').find(({ name }) => name === 'birthdate')).toMatchObject({ kind: 'date' });
});

it('an unchanged record is sent as it was rejected', () => {
  expect(readForm(transactions, valuesOf(transactions, record), 'replace')).toEqual({
    record,
    problems: new Map(),
  });
});

it('text becomes the type of its field, and an empty field is left out', () => {
  const values = { ...valuesOf(transactions, record), amount: ' 12.25 ', is_deleted: 'false', source: '' };
  expect(readForm(transactions, values, 'replace').record).toEqual({
    ...record,
    amount: 12.25,
    is_deleted: false,
  });
});

it('a field that is missing or not a number is a problem of the form', () => {
  const values = { ...valuesOf(transactions, record), amount: 'nine', region: '' };
  expect([...readForm(transactions, values, 'replace').problems]).toEqual([
    ['region', 'is required'],
    ['amount', 'must be a number'],
  ]);
});

it('a value of the wrong type is shown as it was sent', () => {
  expect(valuesOf(transactions, { ...record, region: { code: 'GB' } }).region).toBe('{"code":"GB"}');
});

it('fields that the type does not have are listed', () => {
  expect(unknownFields(transactions, { ...record, colour: 'red' })).toEqual(['colour']);
});

it('missing ids are counted, the most frequent first', () => {
  const missing = { field: 'shop_id', code: 'reference_not_found' as const, message: '' };
  const other = { field: 'amount', code: 'required' as const, message: '' };
  const rejections = [
    { record: { shop_id: 'a' }, errors: [missing] },
    { record: { shop_id: 'b' }, errors: [missing, other] },
    { record: { shop_id: 'b' }, errors: [missing] },
    { record: { shop_id: 'c' }, errors: [other] },
    { record: null, errors: [missing] },
  ];
  expect(countMissingIds(rejections, 'shop_id')).toEqual([
    { id: 'b', count: 2 },
    { id: 'a', count: 1 },
  ]);
});

it('the calls of a replay add up', () => {
  const counts = { received: 5, created: 2, updated: 1, unchanged: 0, stale: 0, failed: 2 };
  const answer = { batches: [{ data: { counts } }], remaining: 2 } as Parameters<typeof addReplay>[1];
  const first = addReplay({ stored: 0, failed: 0, remaining: null }, answer);
  expect(addReplay(first, answer)).toEqual({ stored: 6, failed: 4, remaining: 2 });
});

it('of a merge, only the fields that it has are corrected, and an empty one is cleared', () => {
  const merged = { shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01', is_public: 'yes' };
  const fields = fieldsToCorrect({
    type: 'shops',
    mode: 'merge',
    errors: [{ field: 'region', code: 'required', message: 'is required' }],
    record: merged,
  });
  expect(fields.map(({ name }) => name)).toEqual(['shop_id', 'region', 'is_public']);
  const values = { ...valuesOf(fields, merged), region: 'GB', is_public: '' };
  expect(readForm(fields, values, 'merge')).toEqual({
    record: { shop_id: merged.shop_id, region: 'GB', is_public: null },
    problems: new Map(),
  });
});
