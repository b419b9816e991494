import { randomUUID } from 'node:crypto';

/** Small valid records with new ids, and records with typical mistakes, for tests of upload results. */

export const many = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

export const newTag = (fields: object = {}) => ({ tag_id: randomUUID(), name: 'vegan', ...fields });

export const newShop = (fields: object = {}) => ({
  shop_id: randomUUID(),
  name: 'Corner Bakery',
  region: 'GB',
  ...fields,
});

export const newTransaction = (shop_id: string, fields: object = {}) => ({
  transaction_id: randomUUID(),
  shop_id,
  region: 'GB',
  savings: 2.5,
  amount: 22.49,
  ...fields,
});

/** Returns a tag that fails in one field: `name`, with the code wrong_type. */
export const badTag = (fields: object = {}) => newTag({ name: 7, ...fields });

/** Returns a transaction that fails in one field: `shop_id`, with the code reference_not_found. */
export const danglingTransaction = (fields: object = {}) => newTransaction(randomUUID(), fields);
