import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { accessPerson, downloadAccess } from '../support/access-person.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';

let server: SharedServer;
let api: Api;
const shop = newShop();
beforeAll(async () => {
  server = await sharedServer();
  const scopes = ['data:write', 'data:read', 'interactions:write', 'data:erase', 'data:access'];
  api = apiOf(server.url, await server.createKey('acme', ...scopes));
  await api.upload('shops', [shop]);
});

it('collects what is stored about a customer, to be downloaded as NDJSON', async () => {
  const customer_id = randomUUID();
  await api.upload('customers', [{ customer_id, user_id: randomUUID(), region: 'GB', gender: 'female' }]);
  const bought = newTransaction(shop.shop_id, { student_id: customer_id });
  await api.upload('transactions', [bought, newTransaction(shop.shop_id, { student_id: randomUUID() })]);
  const asked = await api.post('/v1/access-requests', { customer_ids: [customer_id] });
  expect([asked.status, asked.body]).toMatchObject([202, { people: 1, records: {}, done: null }]);
  const id = await accessPerson(api, { customer_ids: [customer_id] });
  expect(await downloadAccess(api, id)).toMatchObject([
    { type: 'customers', id: customer_id, record: { customer_id, gender: 'female' } },
    { type: 'transactions', id: bought.transaction_id, record: { amount: 22.49, student_id: customer_id } },
  ]);
  const { body } = await api.get(`/v1/access-requests/${id}`);
  expect(body).toMatchObject({ state: 'done', records: { customers: 1, transactions: 1 } });
  expect(Date.parse(body.expires) - Date.parse(body.done)).toBe(7 * 24 * 3_600_000);
  const { access_requests, next_cursor } = (await api.get('/v1/access-requests?limit=1')).body;
  expect([access_requests, next_cursor]).toEqual([[body], id]);
});

it('finds nothing of an erased person, once the erasure was answered', async () => {
  const customer_id = randomUUID();
  await api.upload('customers', [{ customer_id, user_id: randomUUID(), region: 'GB' }]);
  const before = await accessPerson(api, { customer_ids: [customer_id] });
  expect(await downloadAccess(api, before)).toHaveLength(1);
  expect((await api.post('/v1/erasures', { customer_ids: [customer_id] })).status).toBe(202);
  expect(await downloadAccess(api, before)).toEqual([]);
  const after = await accessPerson(api, { customer_ids: [customer_id] });
  expect(await downloadAccess(api, after)).toEqual([]);
});

it('can be cancelled, and then not be downloaded', async () => {
  const customer_id = randomUUID();
  await api.upload('customers', [{ customer_id, user_id: randomUUID(), region: 'GB' }]);
  const id = await accessPerson(api, { customer_ids: [customer_id] });
  const cancel = (of: Api) => of.send(`/v1/access-requests/${id}`, { method: 'DELETE' });
  const other = apiOf(server.url, await server.createKey('another desk', 'data:access'));
  expect((await cancel(other)).status).toBe(404);
  const { status, body } = await cancel(api);
  expect([status, body]).toMatchObject([
    200,
    { state: 'cancelled', records: { customers: 1 }, expires: null },
  ]);
  expect((await api.get('/v1/access-requests?limit=1')).body.access_requests).toEqual([body]);
  const download = await api.get(`/v1/access-requests/${id}/records`);
  expect([download.status, download.body.code]).toEqual([404, 'access_request_cancelled']);
});

it('a key without the permission can neither request nor read, even if it may read and erase', async () => {
  const scopes = ['data:write', 'data:read', 'interactions:read', 'data:erase'];
  for (const key of [await server.createKey('plain'), await server.createKey('desk', ...scopes)]) {
    const plain = apiOf(server.url, key);
    for (const answer of [
      await plain.post('/v1/access-requests', { customer_ids: [randomUUID()] }),
      await plain.get('/v1/access-requests'),
      await plain.get(`/v1/access-requests/${randomUUID()}`),
      await plain.get(`/v1/access-requests/${randomUUID()}/records`),
      await plain.send(`/v1/access-requests/${randomUUID()}`, { method: 'DELETE' }),
    ])
      expect([answer.status, answer.body.permission]).toEqual([403, 'data:access']);
  }
});

it('a key that may only answer access requests cannot read anything else', async () => {
  const desk = apiOf(server.url, await server.createKey('acme', 'data:access'));
  const customer_id = randomUUID();
  await api.upload('customers', [{ customer_id, user_id: randomUUID(), region: 'GB' }]);
  const id = await accessPerson(desk, { customer_ids: [customer_id] });
  expect(await downloadAccess(desk, id)).toHaveLength(1);
  for (const path of [`/v1/data/customers/${customer_id}`, '/v1/erasures', '/v1/rejections'])
    expect((await desk.get(path)).status).toBe(403);
});

it.each([
  [{}, 'customer_ids'],
  [{ customer_ids: [] }, 'customer_ids'],
  [{ customer_ids: ['none'] }, 'customer_ids'],
  [{ user_ids: [7] }, 'user_ids'],
  [{ customer_ids: many(5_001, () => randomUUID()) }, 'customer_ids'],
  [{ user_ids: ['a\u0000b'] }, 'user_ids'],
  [{ customer_ids: [randomUUID()], mode: 'delete' }, 'body'],
])('a request is refused if it is wrong %#', async (body, field) => {
  const answer = await api.post('/v1/access-requests', body);
  expect([answer.status, answer.body.details[0].field]).toEqual([400, field]);
});

it.each(['', '/records'])('unknown ids are 404 %#', async (of) => {
  for (const id of [randomUUID(), 'none']) {
    const { status, body } = await api.get(`/v1/access-requests/${id}${of}`);
    expect([status, body.code]).toEqual([404, 'access_request_not_found']);
  }
});
