// @module-tag postgres-15
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { analyseNext } from '../../src/erasure/sweep/analyse-erased.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { newAccessOrganisation, newCustomer } from '../support/access-organisation.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { many, newShop } from '../support/new-records.ts';

let test: TestApp;
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

/** Returns the tables and columns whose statistics contain one of these values. */
async function statisticsWith(values: readonly string[]) {
  const { rows } = await test.pool.query<{ place: string }>(
    `select distinct regexp_replace(tablename, '_20.*', ' of a day') || '.' || attname || case when inherited then ' (all)' else '' end as place
     from pg_stats s cross join unnest($1::text[]) as v(value)
     where position(v.value in concat(most_common_vals, histogram_bounds, most_common_elems)) > 0 order by 1`,
    [values],
  );
  return rows.map(({ place }) => place);
}

async function serverVersion() {
  const { rows } = await test.pool.query(
    `select current_setting('server_version_num')::integer / 10000 as version`,
  );
  return rows[0].version as number;
}

async function analyseAll(
  changed: readonly string[],
  range: { readonly first: string | null; readonly last: string | null } = { first: null, last: null },
): Promise<void> {
  for (let at = await analyseNext(serving, changed, range, null); at !== null; )
    at = await analyseNext(serving, changed, range, at);
}

it("the planner's statistics forget erased people", async () => {
  const { organisationId, key } = await test.organisation('statistics');
  const upload = async (url: string, records: object[]) => {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await test.app.inject({ method: 'POST', url, headers, payload: { records } });
    expect(answer.statusCode).toBe(200);
  };
  const shop = newShop();
  const [customer_id, user_id, city] = [randomUUID(), randomUUID(), 'Erasedtown'];
  const visit = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
  await upload('/v1/data/shops', [shop]);
  await upload('/v1/data/customers', [
    { customer_id, user_id, region: 'GB' },
    ...many(20, () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' })),
  ]);
  const visits = many(400, (at) => ({ ...visit, user_id: `u${at % 9}`, student_id: null as string | null }));
  const theirs = { student_id: customer_id, user_id, city };
  await upload(
    '/user-interactions/batch',
    visits.map((one, at) => (at % 4 === 0 ? { ...one, ...theirs } : one)),
  );
  await test.pool.query('analyze');
  const before = await statisticsWith([customer_id, user_id, city]);
  expect(before).toEqual(
    expect.arrayContaining([
      'customers.customer_id',
      ...['interactions of a day.user_id', 'interactions of a day.student_id', 'interactions of a day.city'],
      ...['interactions.user_id (all)', 'interactions.student_id (all)', 'interactions.city (all)'],
    ]),
  );
  const { rows } = await test.pool.query<{ first: string; last: string }>(
    `with erased as (
       update interactions set user_id = null, student_id = null, city = null
       where organisation_id = $1 and student_id = $2 returning interaction_id)
     select min(interaction_id::text) as first, max(interaction_id::text) as last from erased`,
    [organisationId, customer_id],
  );
  await test.pool.query('delete from customers where organisation_id = $1 and customer_id = $2', [
    organisationId,
    customer_id,
  ]);
  await test.pool.query('update changes set ids = array_remove(ids, $2) where organisation_id = $1', [
    organisationId,
    customer_id,
  ]);
  const range = rows[0] as { first: string; last: string };
  await analyseAll(['customers', 'interactions', 'changes'], range);
  expect(await statisticsWith([customer_id, user_id, city])).toEqual([]);
  if ((await serverVersion()) < 18) return;
  await test.pool.query(`update customers set region = 'XQ'`);
  await test.pool.query('analyze customers');
  await test.pool.query('delete from customers');
  expect(await statisticsWith(['XQ'])).toContain('customers.region');
  await analyseAll(['customers']);
  expect(await statisticsWith(['XQ'])).not.toContain('customers.region');
  // Nothing fails if nothing has changed, and if partitions are analysed twice.
  await analyseAll(['interactions', 'receipts', 'rejections']);
});

it('statistics of rejections forget an erased person whose rejections were settled before', async () => {
  const acme = await newAccessOrganisation(test, serving);
  const person = newCustomer();
  const failed = (customer: object) => ({ ...customer, region: 7 });
  await acme.upload('customers', failed(person), ...many(20, () => failed(newCustomer())));
  await test.pool.query('analyze rejections');
  const ids = [person.customer_id, person.user_id];
  const places = async () => (await statisticsWith(ids)).filter((place) => place.startsWith('rejections.'));
  expect(await places()).toEqual(['rejections.record', 'rejections.record_id']);
  await acme.upload('customers', person);
  const sent = await acme.send('POST', '/v1/erasures', { customer_ids: [person.customer_id] });
  expect(sent.statusCode).toBe(202);
  await acme.sweep();
  expect(await places()).toEqual([]);
});

it('the serving role may analyse only tables that people are erased from', async () => {
  for (const table of ['api_keys', 'organisations', 'pg_class', 'no_such_table', 'customers; select 1'])
    await expect(serving.query('select analyse_erased($1)', [table])).rejects.toThrow(
      'only tables that people are erased from',
    );
});
