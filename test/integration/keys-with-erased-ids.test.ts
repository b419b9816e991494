// @module-tag postgres-15
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { issueKey } from '../../src/operator/audited-actions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { inTransaction } from '../../src/postgres/transactions.ts';
import { browserKey, hashedKey, replaceKeys } from '../../src/suppression/idempotency-keys.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { sweepStep } from '../support/jobs.ts';
import { newShop } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';
import { untilPasses } from '../support/until-passes.ts';

let test: TestApp;
let serving: OwnPool;
const suppressions = new Suppressions([erasureKey]);
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

async function newOrganisation() {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const call = (method: 'GET' | 'POST', url: string, payload?: object, idempotencyKey?: string) => {
    const keyed = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
    const headers = { authorization: `Bearer ${key}`, ...keyed };
    return test.app.inject({ method, url, headers, ...(payload && { payload }) });
  };
  const shop = newShop();
  await call('POST', '/v1/data/shops', { records: [shop] });
  const visit = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
  const browser = await issueKey(
    test.pool,
    { actor: 'test' },
    {
      organisationId,
      permissions: ['interactions:write'],
      browserOrigins: ['https://shop.example'],
      label: null,
      expiresAt: null,
    },
  );
  const visitor = (url: string, payload: object, idempotencyKey: string) =>
    test.app.inject({
      method: 'POST',
      url,
      payload,
      headers: {
        authorization: `Bearer ${browser.key}`,
        origin: 'https://shop.example',
        'idempotency-key': idempotencyKey,
      },
    });
  const count = async (table: string) => {
    const { rows } = await test.pool.query(
      `select count(*)::integer as count from ${table} where organisation_id = $1`,
      [organisationId],
    );
    return rows[0].count as number;
  };
  const erase = async (people: object) =>
    expect((await call('POST', '/v1/erasures', people)).statusCode).toBe(202);
  const sweep = () =>
    untilPasses(async () => {
      while (await sweepStep(serving, organisationId, suppressions));
      const { rows } = await test.pool.query(
        `select from erasures where organisation_id = $1 and state in ('requested', 'sweeping')`,
        [organisationId],
      );
      expect(rows).toEqual([]);
    });
  return { organisationId, shop, call, visitor, visit, count, erase, sweep };
}

type Organisation = Awaited<ReturnType<typeof newOrganisation>>;

/** The requests that take an Idempotency-Key. None of them contains the id elsewhere. */
const requests: Record<string, (one: Organisation, key: string) => ReturnType<Organisation['call']>> = {
  'an upload of a type without people': ({ call, shop }, key) =>
    call('POST', '/v1/data/shops', { records: [shop] }, key),
  'a batch of interactions': ({ call, visit }, key) =>
    call('POST', '/user-interactions/batch', { records: [visit] }, key),
  'an interaction': ({ call, visit }, key) => call('POST', '/user-interactions', visit, key),
  "a visitor's batch": ({ visitor, visit }, key) =>
    visitor('/user-interactions/batch', { records: [visit] }, key),
  "a visitor's interaction": ({ visitor, visit }, key) => visitor('/user-interactions', visit, key),
};

const people = {
  'a UUID in capitals in it': (id: string) => `nightly ${id.toUpperCase()}`,
  'a user id as the whole key': (id: string) => `anna-${id.slice(0, 8)}@example.com`,
};

for (const [where, keyOf] of Object.entries(people)) {
  const idOf = (id: string) => (where.startsWith('a UUID') ? id : keyOf(id));
  const all = Object.entries(requests).map(([what, send]) => ({ what, send, id: randomUUID() }));
  const ids = all.map(({ id }) => idOf(id));
  const stored = async ({ count }: Organisation) => [await count('interactions'), await count('receipts')];

  it(`a request with ${where} is stored once before, while and after the person is erased`, async () => {
    const one = await newOrganisation();
    const statuses: number[] = [];
    for (const { send, id } of all) statuses.push((await send(one, keyOf(id))).statusCode);
    expect(statuses).toEqual([200, 200, 201, 202, 202]);
    const before = await stored(one);
    const retry = async () => {
      for (const [at, { what, send, id }] of all.entries()) {
        const again = await send(one, keyOf(id));
        const isReplayed = again.headers['idempotency-replayed'] === 'true';
        expect([what, again.statusCode, isReplayed]).toEqual([what, statuses[at], !what.includes('visitor')]);
      }
      expect(await stored(one)).toEqual(before);
    };
    await one.erase({ user_ids: ids });
    await retry();
    await one.sweep();
    await retry();
    expect(await tablesWith(test.pool, ids)).toEqual({});
  });

  it(`a request with ${where} is stored once, without the id, if it arrives after the erasure`, async () => {
    const one = await newOrganisation();
    await one.erase({ user_ids: ids });
    await one.sweep();
    for (const { send, id } of all) expect((await send(one, keyOf(id))).statusCode).toBeLessThan(300);
    const before = await stored(one);
    expect(before[0]).toBe(4);
    for (const { send, id } of all) expect((await send(one, keyOf(id))).statusCode).toBeLessThan(300);
    expect(await stored(one)).toEqual(before);
    expect(await tablesWith(test.pool, ids)).toEqual({});
  });
}

it('a retry of an interaction that an erasure hides is answered before, while and after the person is erased', async () => {
  const one = await newOrganisation();
  const user_id = randomUUID();
  const [named, twin] = [randomUUID(), randomUUID()];
  const customers = [named, twin].map((customer_id) => ({ customer_id, user_id, region: 'GB' }));
  await one.call('POST', '/v1/data/customers', { records: customers });
  const theirs = { ...one.visit, student_id: twin };
  const key = 'of the twin';
  const send = (payload: object) => one.call('POST', '/user-interactions', payload, key);
  const batch = () =>
    one.call('POST', '/user-interactions/batch', { records: [theirs] }, 'a batch of the twin');
  const visit = (payload: object) => one.visitor('/user-interactions', payload, "a visitor's key");
  expect((await send(theirs)).statusCode).toBe(201);
  expect((await batch()).statusCode).toBe(200);
  expect((await visit(theirs)).statusCode).toBe(202);
  await one.erase({ customer_ids: [named] });
  // Until the sweep has found the twin, their interactions are hidden, but their id is not suppressed.
  const retry = async () => {
    const { statusCode, body } = await send(theirs);
    expect([statusCode, body]).toEqual([
      400,
      expect.stringContaining('"field":"student_id","code":"erased"'),
    ]);
    expect((await batch()).statusCode).toBe(200);
    expect((await visit(theirs)).statusCode).toBe(202);
  };
  await retry();
  expect((await send(one.visit)).json()).toMatchObject({ code: 'idempotency_key_reused' });
  expect((await visit(one.visit)).json()).toMatchObject({ code: 'idempotency_key_reused' });
  await one.sweep();
  await retry();
});

it('receipts never show the id, and are found by the key that was sent', async () => {
  const one = await newOrganisation();
  const id = randomUUID();
  const key = `nightly ${id}`;
  const send = requests['a batch of interactions'] as (typeof requests)[string];
  const { request_id } = (await send(one, key)).json();
  const listed = async () => {
    const list = await one.call('GET', `/v1/requests?idempotency_key=${encodeURIComponent(key)}`);
    const receipt = await one.call('GET', `/v1/requests/${request_id}`);
    const [found] = list.json().requests;
    expect(found.request_id).toBe(request_id);
    return [found.idempotency_key, receipt.json().idempotency_key];
  };
  expect(await listed()).toEqual([key, key]);
  await one.erase({ user_ids: [id] });
  expect(await listed()).toEqual([hashedKey(key), hashedKey(key)]);
  await one.sweep();
  expect(await listed()).toEqual([hashedKey(key), hashedKey(key)]);
});

it('a retry that knows of the erasure waits for the first request that does not', async () => {
  const one = await newOrganisation();
  const id = randomUUID();
  const send = requests['a batch of interactions'] as (typeof requests)[string];
  const blocker = new pg.Client({ connectionString: test.databaseUrl });
  await blocker.connect();
  try {
    await blocker.query('begin');
    await blocker.query('lock table receipt_batches in exclusive mode');
    const waiting = (blocked: number) =>
      untilPasses(async () => {
        const { rows } = await test.pool.query(
          `select from pg_locks l join pg_stat_activity a using (pid)
           where a.datname = current_database() and not l.granted`,
        );
        expect(rows.length).toBeGreaterThanOrEqual(blocked);
      });
    const first = send(one, id);
    await waiting(1);
    await one.erase({ user_ids: [id] });
    const second = send(one, id);
    await waiting(2);
    await blocker.query('commit');
    expect((await first).statusCode).toBe(200);
    expect((await second).headers['idempotency-replayed']).toBe('true');
  } finally {
    await blocker.end();
  }
  expect(await one.count('interactions')).toBe(1);
});

it('a retry finds its claim whenever the key is replaced', async () => {
  const one = await newOrganisation();
  // From here on, the process knows that people were erased. None of the keys below contains their ids.
  await one.erase({ user_ids: ['somebody'] });
  await one.call('POST', '/user-interactions', { ...one.visit, user_id: 'somebody' });
  for (const delayMs of [0, 10, 30, 60, 90, 120, 200]) {
    const key = randomUUID();
    const send = requests['an interaction'] as (typeof requests)[string];
    const first = (await send(one, key)).json();
    const stored = await one.count('interactions');
    let retry: ReturnType<typeof send> | undefined;
    await inTransaction(serving, async (client) => {
      const values = [one.organisationId, key];
      const lock = `select from interaction_idempotency_keys where organisation_id = $1 and idempotency_key = $2 for update`;
      await client.query(lock, values);
      retry = send(one, key);
      await sleep(delayMs);
      await replaceKeys(client, one.organisationId, 'interaction_idempotency_keys', [key]);
    });
    expect((await retry)?.json()).toEqual(first);
    // And afterwards, on the usual path.
    expect((await send(one, key)).json()).toEqual(first);
    expect(await one.count('interactions')).toBe(stored);
  }
  expect(await one.count('interaction_idempotency_keys')).toBe(7);
});

it('replacing a key keeps the claim of the hashed one, unless that has expired', async () => {
  const one = await newOrganisation();
  const send = requests['an interaction'] as (typeof requests)[string];
  for (const isExpired of [false, true]) {
    const [key, other] = [randomUUID(), randomUUID()];
    await send(one, key);
    await send(one, other);
    await test.pool.query(
      `update interaction_idempotency_keys set idempotency_key = $3, claimed_at = $4
       where organisation_id = $1 and idempotency_key = $2`,
      [one.organisationId, other, hashedKey(key), new Date(Date.now() - (isExpired ? 25 : 1) * 3_600_000)],
    );
    const claims = async (wanted: string) => {
      const { rows } = await test.pool.query(
        `select interaction_id from interaction_idempotency_keys where organisation_id = $1 and idempotency_key = $2`,
        [one.organisationId, wanted],
      );
      return rows;
    };
    const kept = await claims(isExpired ? key : hashedKey(key));
    expect(kept).toHaveLength(1);
    await inTransaction(serving, (client) =>
      replaceKeys(client, one.organisationId, 'interaction_idempotency_keys', [key]),
    );
    expect(await claims(hashedKey(key))).toEqual(kept);
    expect(await claims(key)).toEqual([]);
  }
});

it("a visitor's key never equals a key of the organisation's programs", async () => {
  const one = await newOrganisation();
  const id = randomUUID();
  await one.erase({ user_ids: [id] });
  const send = requests['an interaction'] as (typeof requests)[string];
  await (requests["a visitor's interaction"] as typeof send)(one, id);
  await send(one, id);
  expect(await one.count('interactions')).toBe(2);
  expect(hashedKey(browserKey(id))).not.toBe(hashedKey(id));
});

it('a retry of an upload is answered without the ids of people who are being erased', async () => {
  const { call, erase, sweep } = await newOrganisation();
  const customer_id = randomUUID();
  const sent = { records: [{ customer_id, user_id: randomUUID(), region: 7 }] };
  const upload = () => call('POST', '/v1/data/customers', sent, 'nightly');
  expect((await upload()).body).toContain(customer_id);
  await erase({ customer_ids: [customer_id] });
  const retried = await upload();
  expect([retried.statusCode, retried.headers['idempotency-replayed']]).toEqual([400, 'true']);
  expect(retried.body).not.toContain(customer_id);
  await sweep();
  expect((await upload()).body).toBe(retried.body);
});
