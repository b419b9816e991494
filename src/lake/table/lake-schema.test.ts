import { expect, it } from 'vitest';
import { uploadTypes } from '../../registry/upload-types.ts';
import { lakeSchema, lakeTypes, schemaString } from './lake-schema.ts';

it('has the columns of interactions as the API returns them, except the time as it was sent', () => {
  const { columns, day } = lakeSchema('interactions');
  expect(columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
    'interaction_id string',
    'interaction_type string',
    'user_id string',
    'student_id string',
    'item_type string',
    'item_id string',
    'city string',
    'country string',
    'platform string',
    'source string',
    'recommendation_id string',
    'event_time timestamp',
    'created timestamp',
  ]);
  expect(day).toMatchObject({ name: 'received_on', of: 'created' });
});

it('types money as decimals and days as dates', () => {
  const typesOf = (type: 'transactions' | 'customers') =>
    Object.fromEntries(lakeSchema(type).columns.map((column) => [column.name, column.type]));
  expect(typesOf('transactions')).toMatchObject({
    transaction_id: 'string',
    amount: 'decimal(38,9)',
    created: 'timestamp',
    is_deleted: 'boolean',
    _change: 'long',
    _deleted: 'boolean',
  });
  expect(typesOf('customers')).toMatchObject({ birthdate: 'date' });
});

it('copies every type after those it refers to', () => {
  expect(lakeTypes.toSorted()).toEqual(uploadTypes.toSorted());
  expect(lakeTypes.indexOf('shops')).toBeLessThan(lakeTypes.indexOf('transactions'));
  expect(lakeTypes.at(-1)).toBe('interactions');
});

it.each(uploadTypes)('has a table for %s, without a column twice', (type) => {
  const { fields } = JSON.parse(schemaString(lakeSchema(type)));
  const names: string[] = fields.map(({ name }: { name: string }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(lakeSchema(type).name).toMatch(/^[a-z_]+$/);
});
