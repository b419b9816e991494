import { randomUUID, verify } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';

let server: SharedServer;
let api: Api;
const shop = newShop();
beforeAll(async () => {
  server = await sharedServer();
  api = await newApi('acme');
});

const everything = ['data:write', 'data:read', 'interactions:write', 'interactions:read', 'data:erase'];

async function newApi(organisation: string): Promise<Api> {
  const made = apiOf(server.url, await server.createKey(organisation, ...everything));
  await made.upload('shops', [shop]);
  return made;
}

const newCustomer = (fields: object = {}) => ({
  customer_id: randomUUID(),
  user_id: randomUUID(),
  region: 'GB',
  ...fields,
});

const newInteraction = (fields: object) => ({
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id: shop.shop_id,
  event_timestamp: '2026-03-14T09:26:53Z',
  ...fields,
});

/** Stores a customer with a transaction, a favourite and an interaction. */
async function newPerson() {
  const customer = newCustomer({ birthdate: '2004-02-29' });
  const student_id = customer.customer_id;
  const transaction = newTransaction(shop.shop_id, { student_id });
  const favourite = { student_favourite_id: randomUUID(), student_id, shop_id: shop.shop_id };
  await api.upload('customers', [customer]);
  await api.upload('transactions', [transaction]);
  await api.upload('student-favourites', [favourite]);
  const { body: interaction } = await api.post(
    '/user-interactions',
    newInteraction({ student_id, city: 'Leeds' }),
  );
  return { customer, transaction, favourite, interaction };
}

async function erase(body: object) {
  const answer = await api.post('/v1/erasures', body);
  expect(answer.status).toBe(202);
  return answer.body;
}

async function swept(erasureId: string) {
  const erasure = async () => (await api.get(`/v1/erasures/${erasureId}`)).body;
  await expect.poll(async () => (await erasure()).state, { interval: 200 }).toBe('swept');
  return erasure();
}

describe('once an erasure is answered', () => {
  it('nothing of the person can be read', async () => {
    const { customer, transaction, favourite, interaction } = await newPerson();
    const { customer_id } = customer;
    const failing = newCustomer({ customer_id, region: 7 });
    const { request_id } = (await api.upload('customers', [failing])).body;
    await erase({ customer_ids: [customer_id] });
    expect((await api.get(`/v1/data/customers/${customer_id}`)).status).toBe(404);
    expect((await api.get(`/v1/data/student-favourites/${favourite.student_favourite_id}`)).status).toBe(404);
    const { body: bought } = await api.get(`/v1/data/transactions/${transaction.transaction_id}`);
    expect(bought.student_id ?? null).toBe(null);
    const { body: seen } = await api.get(`/user-interactions/${interaction.interaction_id}`);
    expect([seen.student_id ?? null, seen.city ?? null]).toEqual([null, null]);
    for (const path of [
      '/v1/data/customers?limit=1000',
      '/v1/data/transactions?limit=1000',
      '/user-interactions?limit=1000',
      '/v1/rejections?type=customers',
      '/v1/rejections/summary',
      `/v1/requests/${request_id}`,
    ])
      expect(JSON.stringify((await api.get(path)).body)).not.toContain(customer_id);
  });

  it('records with the person’s id are refused without their id, and not kept', async () => {
    const { customer } = await newPerson();
    const { customer_id } = customer;
    await erase({ customer_ids: [customer_id] });
    const other = newCustomer();
    const { errors, counts } = await api.batch('customers', [customer, other, { ...customer, region: 7 }]);
    expect(counts).toMatchObject({ created: 1, failed: 2 });
    expect(errors).toMatchObject([
      { index: 0, id: null, field: 'customer_id', code: 'erased' },
      { index: 2, id: null, code: 'erased' },
    ]);
    const student_id = customer_id;
    for (const [type, record] of [
      ['transactions', newTransaction(shop.shop_id, { student_id })],
      ['student-favourites', { student_favourite_id: randomUUID(), student_id, shop_id: shop.shop_id }],
    ] as const)
      expect((await api.batch(type, [record])).errors).toMatchObject([
        { id: null, field: 'student_id', code: 'erased' },
      ]);
    const sent = newInteraction({ student_id });
    for (const headers of [{}, { 'idempotency-key': randomUUID() }])
      expect((await api.post('/user-interactions', sent, headers)).body).toMatchObject({
        code: 'invalid_request',
        details: [{ field: 'student_id', code: 'erased' }],
      });
    expect(
      (await api.post('/user-interactions/batch', { records: [sent] })).body.batches[0].data.errors,
    ).toMatchObject([{ id: null, code: 'erased' }]);
    expect(JSON.stringify((await api.get('/v1/rejections')).body)).not.toContain(customer_id);
    const dry = await api.post('/v1/data/customers?dry_run=true', { records: [customer] });
    expect(dry.body.batches[0].data.errors).toMatchObject([{ id: null, code: 'erased' }]);
  });
});

describe('an erasure', () => {
  it('that anonymises keeps transactions and interactions without their person', async () => {
    const { customer, transaction, favourite, interaction } = await newPerson();
    const { erasure_id, unknown_customer_ids, ...asked } = await erase({
      customer_ids: [customer.customer_id],
    });
    expect(unknown_customer_ids).toEqual([]);
    expect(asked).toMatchObject({ mode: 'anonymise', people: 1, known: 1 });
    const { rows } = await swept(erasure_id);
    expect(rows).toMatchObject({ customers: 1, transactions: 1, student_favourites: 1, interactions: 1 });
    const { body } = await api.get(`/v1/data/transactions/${transaction.transaction_id}`);
    expect(body).toMatchObject({ amount: transaction.amount, student_id: null });
    const { body: seen } = await api.get(`/user-interactions/${interaction.interaction_id}`);
    expect(seen).toMatchObject({ item_id: shop.shop_id, student_id: null, city: null });
    expect((await api.get(`/v1/data/student-favourites/${favourite.student_favourite_id}`)).status).toBe(404);
  });

  it('that is a dry run counts what would be erased, and changes nothing', async () => {
    const { customer, transaction } = await newPerson();
    const { customer_id, user_id } = customer;
    const stranger = newCustomer();
    await api.upload('customers', [stranger]);
    const { body: shared } = await api.post(
      '/user-interactions',
      newInteraction({ student_id: stranger.customer_id, user_id, city: 'Leeds' }),
    );
    const { body: before } = await api.get('/v1/erasures?limit=1');
    const unknown = randomUUID();
    const { status, body } = await api.post('/v1/erasures?dry_run=true', {
      customer_ids: [customer_id, unknown],
      mode: 'delete',
    });
    expect([status, body]).toEqual([
      200,
      {
        dry_run: true,
        mode: 'delete',
        people: 2,
        known: 1,
        unknown_customer_ids: [unknown],
        rows: {
          customers: 1,
          transactions: 1,
          student_favourites: 1,
          interactions: 1,
          interactions_unlinked: 1,
        },
        complete: true,
      },
    ]);
    expect((await api.get('/v1/erasures?limit=1')).body).toEqual(before);
    expect((await api.get(`/v1/data/customers/${customer_id}`)).status).toBe(200);
    expect((await api.get(`/v1/data/transactions/${transaction.transaction_id}`)).status).toBe(200);
    expect((await api.get(`/user-interactions/${shared.interaction_id}`)).body.user_id).toBe(user_id);
    expect((await api.batch('customers', [customer])).counts.unchanged).toBe(1);
  });

  it('that deletes keeps nothing', async () => {
    const { customer, transaction, interaction } = await newPerson();
    const { erasure_id } = await erase({ customer_ids: [customer.customer_id], mode: 'delete' });
    await swept(erasure_id);
    for (const path of [
      `/v1/data/transactions/${transaction.transaction_id}`,
      `/user-interactions/${interaction.interaction_id}`,
    ])
      expect((await api.get(path)).status).toBe(404);
  });

  it('of an id that is not stored reports it, and refuses it from then on', async () => {
    const customer = newCustomer();
    const { unknown_customer_ids, known } = await erase({ customer_ids: [customer.customer_id] });
    expect([unknown_customer_ids, known]).toEqual([[customer.customer_id], 0]);
    expect((await api.batch('customers', [customer])).errors).toMatchObject([{ code: 'erased' }]);
  });

  it('of a customer erases no user that was only seen together with it', async () => {
    const { customer } = await newPerson();
    const user_id = `visitor ${randomUUID()}`;
    const both = newInteraction({ student_id: customer.customer_id, user_id });
    const alone = newInteraction({ user_id, city: 'Leeds' });
    const { body: together } = await api.post('/user-interactions', both);
    const { body } = await api.post('/user-interactions', alone);
    const { erasure_id } = await erase({ customer_ids: [customer.customer_id], mode: 'delete' });
    await swept(erasure_id);
    expect((await api.get(`/user-interactions/${together.interaction_id}`)).status).toBe(404);
    expect((await api.get(`/user-interactions/${body.interaction_id}`)).body).toEqual(body);
    expect((await api.post('/user-interactions', alone)).status).toBe(201);
  });

  it('of a user removes only the user from other students’ interactions', async () => {
    const { customer } = await newPerson();
    const user_id = `visitor ${randomUUID()}`;
    const student_id = customer.customer_id;
    const sent = newInteraction({ student_id, user_id, city: 'Leeds' });
    const { body } = await api.post('/user-interactions', sent);
    const path = `/user-interactions/${body.interaction_id}`;
    const expected = { ...body, user_id: null };
    const { erasure_id } = await erase({ user_ids: [user_id], mode: 'delete' });
    expect((await api.get(path)).body).toEqual(expected);
    await swept(erasure_id);
    expect((await api.get(path)).body).toEqual(expected);
    const again = await api.post('/user-interactions', sent);
    expect([again.status, again.body.user_id, again.body.student_id]).toEqual([201, null, student_id]);
  });

  it('is the last entry of a customer in the change feed', async () => {
    const own = await newApi('feed');
    const customer = newCustomer();
    const others = many(3, () => newCustomer());
    await own.upload('customers', [others[0], customer, others[1], others[2]]);
    const before = (await own.get('/v1/changes?types=customers&limit=2')).body;
    const { body } = await own.post('/v1/erasures', { customer_ids: [customer.customer_id] });
    await expect
      .poll(async () => (await own.get(`/v1/erasures/${body.erasure_id}`)).body.state)
      .toBe('swept');
    const idsAfter = async (query: string) =>
      (await own.get(`/v1/changes?types=customers${query}`)).body.changes.map(
        ({ id, erased, record }: { id: string; erased: boolean; record: unknown }) => [
          id,
          erased,
          record === null,
        ],
      );
    const left = others.map(({ customer_id }) => [customer_id, false, false]);
    const last = [customer.customer_id, true, true];
    expect(await idsAfter('')).toEqual([...left, last]);
    // An earlier cursor keeps its position, because the cursor stores how many of an entry's ids were read.
    expect(await idsAfter(`&after=${before.next_cursor}`)).toEqual([...left.slice(1), last]);
  });

  it('can lift its suppression, but not be undone', async () => {
    const { customer } = await newPerson();
    const { erasure_id } = await erase({ customer_ids: [customer.customer_id] });
    const lift = () => api.send(`/v1/erasures/${erasure_id}/suppression`, { method: 'DELETE' });
    const early = await lift();
    if (early.status !== 200) expect(early.body.code).toBe('erasure_not_swept');
    await swept(erasure_id);
    expect((await lift()).status).toBe(200);
    expect((await api.batch('customers', [customer])).counts.created).toBe(1);
    expect((await api.get(`/v1/data/customers/${customer.customer_id}`)).status).toBe(200);
  });

  it('has a certificate that is signed with a published key', async () => {
    const { customer } = await newPerson();
    const { erasure_id } = await erase({ customer_ids: [customer.customer_id] });
    await swept(erasure_id);
    const { body } = await api.get(`/v1/erasures/${erasure_id}/certificate`);
    const [head = '', payload = '', signature = ''] = body.jws.split('.');
    const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString());
    const { keys } = (await apiOf(server.url).get('/v1/erasure-keys')).body;
    const { public_key } = keys.find(({ key_id }: { key_id: string }) => key_id === kid);
    const isSigned = (text: string) =>
      verify(null, Buffer.from(text), public_key, Buffer.from(signature, 'base64url'));
    expect([isSigned(`${head}.${payload}`), isSigned(`${head}.${payload.slice(1)}`)]).toEqual([true, false]);
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toEqual(body.certificate);
    expect(body.certificate.erasure.rows.customers).toBe(1);
    expect(JSON.stringify(body)).not.toContain(customer.customer_id);
    const page = await api.get(`/v1/erasures/${erasure_id}/certificate`, { accept: 'text/html' });
    expect(page.headers.get('content-type')).toContain('text/html');
    expect(page.body).toContain(erasure_id);
  });

  it('is visible only to its own organisation', async () => {
    const { erasure_id } = await erase({ customer_ids: [randomUUID()] });
    const other = await newApi('other');
    expect((await other.get(`/v1/erasures/${erasure_id}`)).status).toBe(404);
    expect((await other.get('/v1/erasures')).body.erasures).toEqual([]);
    const listed = (await api.get('/v1/erasures?limit=1')).body;
    expect(listed.erasures).toHaveLength(1);
    expect(listed.next_cursor).not.toBe(null);
  });
});

it('a key without the permission can neither erase nor read erasures', async () => {
  const plain = apiOf(server.url, await server.createKey('plain'));
  for (const answer of [
    await plain.post('/v1/erasures', { customer_ids: [randomUUID()] }),
    await plain.get('/v1/erasures'),
    await plain.get(`/v1/erasures/${randomUUID()}`),
  ])
    expect([answer.status, answer.body.permission]).toEqual([403, 'data:erase']);
});

it.each([
  [{}, 'customer_ids'],
  [{ customer_ids: [] }, 'customer_ids'],
  [{ customer_ids: ['none'] }, 'customer_ids'],
  [{ customer_ids: 'c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11' }, 'customer_ids'],
  [{ user_ids: [''] }, 'user_ids'],
  [{ user_ids: [7] }, 'user_ids'],
  [{ customer_ids: many(5_001, () => randomUUID()) }, 'customer_ids'],
  [
    { customer_ids: many(3_000, () => randomUUID()), user_ids: many(3_000, () => randomUUID()) },
    'customer_ids',
  ],
  [{ customer_ids: [randomUUID()], mode: 'shred' }, 'mode'],
  [{ user_ids: ['a\u0000b'] }, 'user_ids'],
  [{ customers: [randomUUID()] }, 'body'],
])('a request is refused if it is wrong %#', async (body, field) => {
  const answer = await api.post('/v1/erasures', body);
  expect([answer.status, answer.body.details[0].field]).toEqual([400, field]);
});
