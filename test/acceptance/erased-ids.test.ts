import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { erasePeople, requestErasure } from '../support/erase-people.ts';
import { many, newShop, newTag } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** An id can be spelt in several ways and stored in unexpected places. None of them survives a sweep. */

const origin = 'https://shop.example';
const shop = newShop();
let server: SharedServer;
let api: Api;
let admin: pg.Client;
beforeAll(async () => {
  server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme', ...everyPermission));
  admin = new pg.Client({ connectionString: server.databaseUrl });
  await admin.connect();
  await api.upload('shops', [shop]);
});
afterAll(() => admin.end());

const visit = (fields: object) => ({
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id: shop.shop_id,
  event_timestamp: 1_700_000_000,
  ...fields,
});
const newCustomer = () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' });
const searchUser = async (user: string) =>
  (await api.get(`/user-interactions?user_id=${encodeURIComponent(user)}`)).body.interactions;

/** Returns the tables that contain the id, except the change log, which keeps deleted customers for some days. */
async function tablesWithout(...ids: string[]): Promise<string[]> {
  return Object.keys(await tablesWith(admin, ids)).filter((table) => table !== 'changes');
}

it('a user id in the form of a UUID is the same in upper, lower and mixed case', async () => {
  const customer = newCustomer();
  await api.upload('customers', [customer]);
  const mixed = customer.user_id.replace(/[a-f]/, (letter) => letter.toUpperCase());
  expect((await api.post('/user-interactions', visit({ user_id: mixed, city: 'Leeds' }))).status).toBe(201);
  const erasure = await requestErasure(api, { customer_ids: [customer.customer_id] });
  for (const spelling of [mixed, customer.user_id, customer.user_id.toUpperCase()])
    expect(await searchUser(spelling)).toEqual([]);
  const listed = JSON.stringify((await api.get('/user-interactions?limit=1000')).body);
  expect(listed.toLowerCase()).not.toContain(customer.user_id);
  await expect.poll(async () => (await api.get(`/v1/erasures/${erasure}`)).body.state).toBe('swept');
  expect(await tablesWithout(customer.user_id)).toEqual([]);
  const { body } = await api.post('/user-interactions', visit({ user_id: mixed }));
  expect(body).toMatchObject({ details: [{ field: 'user_id', code: 'erased' }] });
});

it('a rejection whose user id is not a UUID is erased with its user', async () => {
  const user = `visitor-${randomUUID().slice(0, 8)}`;
  expect(
    (await api.upload('customers', [{ ...newCustomer(), user_id: user, birthdate: '2001-02-03' }])).status,
  ).toBe(400);
  expect((await api.post('/user-interactions', visit({ user_id: user }))).status).toBe(201);
  await erasePeople(api, { user_ids: [user] });
  expect(await tablesWithout(user)).toEqual([]);
});

it('a browser key’s Idempotency-Key does not keep an id', async () => {
  const organisation = ['--organisation', server.slugOf('acme')];
  const issued = await server.run(
    'keys',
    'issue',
    ...organisation,
    '--json',
    '--browser',
    '--origin',
    origin,
  );
  const page = apiOf(server.url, JSON.parse(issued).key);
  const user = `alice-${randomUUID()}@example.com`;
  const headers = { origin, 'idempotency-key': user };
  expect(
    (await page.post('/user-interactions/batch', { records: [visit({ user_id: user })] }, headers)).status,
  ).toBe(202);
  expect((await page.post('/user-interactions', visit({ user_id: user }), headers)).status).toBe(202);
  await erasePeople(api, { user_ids: [user] });
  expect(await tablesWithout(user)).toEqual([]);
});

it('an Idempotency-Key with an erased id that is sent later is not stored, and still works', async () => {
  const customer = newCustomer();
  await api.upload('customers', [customer]);
  await erasePeople(api, { customer_ids: [customer.customer_id] });
  const headers = { 'idempotency-key': `nightly ${customer.customer_id}` };
  await api.post('/v1/data/customers', { records: [customer] }, headers);
  await api.post('/v1/data/tags', { records: [newTag()] }, headers);
  const batch = { 'idempotency-key': `batch ${customer.user_id}` };
  const records = [visit({ user_id: `u-${randomUUID()}` })];
  const first = await api.post('/user-interactions/batch', { records }, batch);
  const again = await api.post('/user-interactions/batch', { records }, batch);
  expect(again.body.batches[0].data.interaction_ids).toEqual(first.body.batches[0].data.interaction_ids);
  expect(
    (await api.post('/user-interactions', visit({}), { 'idempotency-key': customer.customer_id })).status,
  ).toBe(201);
  expect(await tablesWithout(customer.customer_id, customer.user_id)).toEqual([]);
});

it('an Idempotency-Key that was used before the erasure still finds its answer, without the id', async () => {
  const customer = newCustomer();
  await api.upload('customers', [customer]);
  const headers = { 'idempotency-key': `visits of ${customer.customer_id}` };
  const sent = { records: [visit({ user_id: `u-${randomUUID()}` })] };
  const first = await api.post('/user-interactions/batch', sent, headers);
  const ids = first.body.batches[0].data.interaction_ids;
  expect(first.status).toBe(200);
  const retry = async () =>
    (await api.post('/user-interactions/batch', sent, headers)).body.batches[0].data.interaction_ids;
  const erasure = await requestErasure(api, { customer_ids: [customer.customer_id] });
  expect(await retry()).toEqual(ids);
  await expect.poll(async () => (await api.get(`/v1/erasures/${erasure}`)).body.state).toBe('swept');
  expect(await retry()).toEqual(ids);
  expect(await tablesWithout(customer.customer_id)).toEqual([]);
});

it('the planner’s statistics forget erased people', async () => {
  const customer = newCustomer();
  const user = `heavy-${randomUUID()}`;
  const town = `Town ${randomUUID()}`;
  await api.upload('customers', [customer]);
  const records = many(400, () => visit({ student_id: customer.customer_id, user_id: user, city: town }));
  expect((await api.post('/user-interactions/batch', { records })).status).toBe(200);
  await admin.query('analyze');
  const known = async () => {
    const { rows } = await admin.query(
      `select tablename, attname from pg_stats cross join unnest($1::text[]) as x(text)
       -- The change log keeps the entries about the deletion until their day is dropped.
       where tablename !~ '^changes' and position(text in concat(most_common_vals::text, histogram_bounds::text)) > 0`,
      [[customer.customer_id, user, town]],
    );
    return rows;
  };
  expect(await known()).not.toEqual([]);
  await erasePeople(api, { customer_ids: [customer.customer_id], user_ids: [user], mode: 'delete' });
  expect(await known()).toEqual([]);
});
