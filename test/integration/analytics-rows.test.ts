// @module-tag postgres-15

import { createHash } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rollUpCounts } from '../../src/records/record-counts.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { Instructions } from '../support/changed-copy.ts';

/** Tests the rows that an analyst finds in the views after logging in as described in docs/analytics.md. */

const page = new Instructions('docs/analytics.md');
let test: TestApp;
let anna: pg.Client;

/** Returns an id that is always the same for the same name. */
const id = (name: string) => {
  const hex = createHash('sha256').update(name).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

const region = 'GB';
const shops = ['Bakery', 'Cafe'].map((name) => ({ shop_id: id(name), name, region }));
const categories = ['Food', 'Drink'].map((name) => ({ category_id: id(name), name, region }));
const link = (shop: string, category: string, is_deleted = false) => ({
  shop_category_id: id(shop + category),
  shop_id: id(shop),
  category_id: id(category),
  region,
  is_deleted,
});
const shopCategories = [
  link('Bakery', 'Food'),
  link('Bakery', 'Drink'),
  link('Cafe', 'Drink'),
  link('Cafe', 'Food', true),
];
const customers = ['Ann', 'Ben', 'Cat'].map((name) => ({
  customer_id: id(name),
  user_id: id(`user ${name}`),
  region,
}));
const offer = (name: string, shop: string, more: object = {}) => ({
  offer_id: id(name),
  shop_id: id(shop),
  name,
  type: 'percentage',
  value: 10,
  region,
  ...more,
});
const offers = [
  offer('Tenth', 'Bakery'),
  offer('Returned', 'Bakery'),
  offer('Coffee', 'Cafe'),
  offer('Never', 'Cafe', { is_enabled: true, allowed_from: '2026-01-01T00:00:00Z' }),
  offer('Expired', 'Cafe', { allowed_to: '2026-01-01T00:00:00Z' }),
  offer('Disabled', 'Cafe', { is_enabled: false }),
  offer('Deleted', 'Cafe', { is_deleted: true }),
];
const sale = (
  number: number,
  shop: string,
  student: string | null,
  amount: number,
  savings: number,
  more: object,
) => ({
  transaction_id: id(`sale ${number}`),
  shop_id: id(shop),
  region,
  amount,
  savings,
  ...(student !== null && { student_id: id(student) }),
  ...more,
});
const transactions = [
  sale(1, 'Bakery', 'Ann', 10, 1, { offer_id: id('Tenth'), created: '2026-03-05T10:00:00Z' }),
  sale(2, 'Bakery', 'Ann', 20, 2, { created: '2026-04-10T10:00:00Z' }),
  // This sale happens 33 days after Ben got the discount code.
  sale(3, 'Bakery', 'Ben', 5, 0.5, { offer_id: id('Tenth'), created: '2026-04-11T10:00:00Z' }),
  sale(4, 'Cafe', 'Ben', 30, 9, { offer_id: id('Coffee'), created: '2026-04-12T12:00:00Z' }),
  // This sale is in May on the page, which uses UTC, but in June in a time zone that is an hour ahead.
  sale(5, 'Cafe', 'Cat', 8, 0, { created: '2026-05-31T23:30:00Z' }),
  sale(6, 'Bakery', 'Cat', 99, 50, {
    offer_id: id('Returned'),
    created: '2026-03-06T10:00:00Z',
    is_deleted: true,
  }),
  sale(7, 'Bakery', null, 7, 1, {}),
  sale(8, 'Cafe', 'Ann', 4, 1, { created: '2026-06-01T00:00:00Z' }),
];
const event = (
  interaction_type: string,
  item: string,
  event_timestamp: string | number,
  more: object = {},
) => {
  const item_type = shops.some(({ name }) => name === item) ? 'SHOP' : item === 'vegan' ? 'TAG' : 'OFFER';
  return { interaction_type, item_type, item_id: id(item), event_timestamp, ...more };
};
const ann = { student_id: id('Ann'), user_id: 'a', platform: 'WEB' };
const ben = { student_id: id('Ben'), user_id: 'b', platform: 'IOS' };
const service = (name: string) => ({ source: 'SERVICE', recommendation_id: id(name) });
const interactions = [
  event('PAGE_VIEW', 'Bakery', '2026-02-27T10:00:00Z', ann),
  event('PAGE_VIEW', 'Bakery', '2026-03-02T00:00:00Z', ann),
  event('PAGE_VIEW', 'Tenth', '2026-03-03T23:30:00-02:00', ben),
  event('DISCOUNT_CODE', 'Tenth', '2026-03-05T09:00:00Z', { ...ann, ...service('first') }),
  event('DISCOUNT_CODE', 'Tenth', '2026-03-09T00:00:00Z', ben),
  event('DISCOUNT_CODE', 'Coffee', Date.parse('2026-04-12T08:00:00Z') / 1000, {
    ...ben,
    platform: 'ANDROID',
  }),
  event('DISCOUNT_CODE', 'Cafe', '2026-04-12T00:00:00Z', {
    student_id: id('Cat'),
    user_id: 'c',
    platform: 'WEB',
  }),
  event('PAGE_VIEW', 'Cafe', '2026-04-13T10:00:00Z', { student_id: id('Cat'), ...service('second') }),
  event('SHARE', 'vegan', '2026-04-13T11:00:00Z', { user_id: 'c', platform: 'WEB' }),
];

async function send(key: string, url: string, payload: object): Promise<void> {
  const answer = await test.app.inject({
    method: 'POST',
    url,
    payload,
    headers: { authorization: `Bearer ${key}` },
  });
  expect([200, 201], answer.body).toContain(answer.statusCode);
}

async function uploadAll(key: string): Promise<void> {
  const tags = [{ tag_id: id('vegan'), name: 'vegan' }];
  const all = { shops, categories, 'shop-categories': shopCategories, customers, offers, tags, transactions };
  for (const [type, records] of Object.entries(all)) await send(key, `/v1/data/${type}`, { records });
  for (const interaction of interactions) await send(key, '/user-interactions', interaction);
}

/** Returns values as PostgreSQL prints them, so that this process's time zone does not matter. */
async function rowsOf(client: pg.Client, text: string): Promise<(string | null)[][]> {
  const types = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig;
  return (await client.query({ text, types, rowMode: 'array' })).rows;
}

beforeAll(async () => {
  test = await createTestApp();
  // The other organisation has the same data with the same ids, so a join across organisations would count rows twice.
  for (const slug of ['acme', 'globex']) await uploadAll((await test.organisation(slug)).key);
  await rollUpCounts(test.pool);
  const url = new URL(test.databaseUrl);
  const login = `anna_${url.pathname.slice(1)}`;
  const own = (text: string) => text.replaceAll('anna', login).replace('change-me', url.password);
  await test.pool.query(own(page.snippet('create-login')));
  url.username = login;
  anna = new pg.Client({ connectionString: url.href });
  await anna.connect();
});
afterAll(async () => {
  await anna.end();
  await test.close();
});

const ofAcme = `organisation_id = (select organisation_id from organisations where slug = 'acme')`;

it('of every type there is a row that says how fresh it is', async () => {
  const rows = await rowsOf(
    anna,
    `select type, records, last_upload from freshness where ${ofAcme} and type <> 'interactions' order by type`,
  );
  expect(rows.map(([type, records]) => [type, records])).toEqual([
    ['categories', '2'],
    ['customers', '3'],
    ['offers', '7'],
    ['shop-categories', '4'],
    ['shops', '2'],
    ['tags', '1'],
    ['transactions', '8'],
  ]);
  for (const [type, , received] of rows)
    expect(Date.now() - Date.parse(received ?? ''), type ?? '').toBeLessThan(600_000);
});

describe('a row', () => {
  it('of a transaction has its shop, the categories of the shop, and the customer', async () => {
    const rows = await rowsOf(
      anna,
      `select shop_name, category_names, category_ids[1], customer_region from transactions
       where amount in (10, 8, 7) and ${ofAcme} order by amount`,
    );
    expect(rows).toEqual([
      ['Bakery', '{Drink,Food}', id('Drink'), null],
      ['Cafe', '{Drink}', id('Drink'), 'GB'],
      ['Bakery', '{Drink,Food}', id('Drink'), 'GB'],
    ]);
  });

  it('of an interaction has the instant, the time of receipt and the name of the item', async () => {
    await anna.query(`set timezone = 'UTC'`);
    const rows = await rowsOf(
      anna,
      `select item_name, item_shop_id, event_time from interactions
       where item_type <> 'SHOP' and ${ofAcme} order by event_time`,
    );
    expect(rows).toEqual([
      ['Tenth', id('Bakery'), '2026-03-04 01:30:00+00'],
      ['Tenth', id('Bakery'), '2026-03-05 09:00:00+00'],
      ['Tenth', id('Bakery'), '2026-03-09 00:00:00+00'],
      ['Coffee', id('Cafe'), '2026-04-12 08:00:00+00'],
      ['vegan', null, '2026-04-13 11:00:00+00'],
    ]);
    const [row] = (
      await anna.query<{ interaction_id: string; received_at: Date }>(
        'select interaction_id, received_at from interactions limit 1',
      )
    ).rows;
    expect(row?.received_at.getTime()).toBe(
      Number.parseInt(row?.interaction_id.replace('-', '').slice(0, 12) ?? '', 16),
    );
  });
});
