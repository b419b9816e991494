// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { issueKey } from '../../src/operator/audited-actions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { openIdsAmong } from '../../src/suppression/hidden-ids.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { sweepStep } from '../support/jobs.ts';
import { many, newShop } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';
import { untilPasses } from '../support/until-passes.ts';

/** Several students use the same device, and one of them or the device's user is erased. */

let test: TestApp;
/** A pool with the serving role's privileges. */
let serving: OwnPool;
let organisation: Awaited<ReturnType<typeof newOrganisation>>;
const suppressions = new Suppressions([erasureKey]);
const shop = newShop();
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});
beforeEach(async () => {
  organisation = await newOrganisation();
});

async function newOrganisation() {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const send = async (method: 'GET' | 'POST', url: string, payload?: object, more: object = {}) => {
    const headers = { authorization: `Bearer ${key}`, ...more };
    const answer = await test.app.inject({ method, url, headers, ...(payload && { payload }) });
    return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
  };
  const newStudent = async () => {
    const customer = { customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' };
    await send('POST', '/v1/data/customers', { records: [customer] });
    return customer.customer_id;
  };
  await send('POST', '/v1/data/shops', { records: [shop] });
  return {
    organisationId,
    send,
    get: async (url: string) => (await send('GET', url)).body,
    device: `library-pc ${randomUUID()}`,
    anna: await newStudent(),
    ben: await newStudent(),
  };
}

const visit = (fields: object) => ({
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id: shop.shop_id,
  city: 'Leeds',
  country: 'GB',
  event_timestamp: '2026-03-14T09:26:53Z',
  ...fields,
});

async function record(fields: object): Promise<string> {
  const { status, body } = await organisation.send('POST', '/user-interactions', visit(fields));
  expect(status, JSON.stringify(body)).toBe(201);
  return body.interaction_id;
}

async function erase(people: object): Promise<void> {
  const { status, body } = await organisation.send('POST', '/v1/erasures', people);
  expect(status, JSON.stringify(body)).toBe(202);
}

const sweep = () =>
  untilPasses(async () => {
    while (await sweepStep(serving, organisation.organisationId, suppressions));
    const { erasures } = await organisation.get('/v1/erasures');
    for (const { state } of erasures) expect(state).toBe('swept');
  });

const search = (filter: Record<string, string>) =>
  organisation.get(`/user-interactions?${new URLSearchParams(filter)}`);

describe.each(['anonymise', 'delete'])('an erasure that should %s', (mode) => {
  it('of a student leaves the other students’ interactions on the same device as they are', async () => {
    const { anna, ben, device } = organisation;
    const [hers, his, nobodys] = [
      await record({ student_id: anna, user_id: device }),
      await record({ student_id: ben, user_id: device }),
      await record({ user_id: device }),
    ];
    const before = await Promise.all(
      [his, nobodys].map((id) => organisation.get(`/user-interactions/${id}`)),
    );
    await erase({ customer_ids: [anna], mode });
    await sweep();
    const left = await organisation.send('GET', `/user-interactions/${hers}`);
    if (mode === 'delete') expect(left.status).toBe(404);
    else expect(left.body).toMatchObject({ student_id: null, user_id: null, city: null, country: null });
    const after = await Promise.all([his, nobodys].map((id) => organisation.get(`/user-interactions/${id}`)));
    expect(after).toEqual(before);
    await record({ student_id: ben, user_id: device });
    await record({ user_id: device });
  });

  it('of a user hides and removes only the user from a student’s interactions, and logs the change', async () => {
    const { ben, device } = organisation;
    const [his, nobodys] = [
      await record({ student_id: ben, user_id: device }),
      await record({ user_id: device }),
    ];
    const expected = { student_id: ben, user_id: null, city: 'Leeds', country: 'GB' };
    const { next_cursor } = await organisation.get('/v1/changes?types=interactions');
    await erase({ user_ids: [device], mode });
    const expectHidden = async () => {
      expect(await organisation.get(`/user-interactions/${his}`)).toMatchObject(expected);
      expect(await search({ student_id: ben })).toMatchObject({ interactions: [expected] });
      expect(await search({ user_id: device })).toEqual({ interactions: [], next_cursor: null });
      const { changes } = await organisation.get('/v1/changes?types=interactions');
      expect(changes.find(({ id }: { id: string }) => id === his).record).toMatchObject(expected);
      expect(JSON.stringify([changes, await search({})])).not.toContain(device);
    };
    await expectHidden();
    expect((await organisation.send('GET', `/user-interactions/${nobodys}`)).status).toBe(404);
    await sweep();
    await expectHidden();
    expect(await tablesWith(test.pool, [device])).toEqual({});
    const { changes } = await organisation.get(`/v1/changes?types=interactions&after=${next_cursor}`);
    expect(changes.map(({ id }: { id: string }) => id).sort()).toEqual([his, nobodys].sort());
  });
});

describe('when a user was erased', () => {
  it('a new interaction of a student is stored without the user, and its retry matches', async () => {
    const { ben, device, send } = organisation;
    await erase({ user_ids: [device] });
    const expected = { student_id: ben, user_id: null, city: 'Leeds' };
    const sent = visit({ student_id: ben, user_id: device });
    expect(await send('POST', '/user-interactions', sent)).toMatchObject({ status: 201, body: expected });
    const keyed = { 'idempotency-key': randomUUID() };
    const first = await send('POST', '/user-interactions', sent, keyed);
    expect(first).toMatchObject({ status: 201, body: expected });
    const again = await send('POST', '/user-interactions', sent, keyed);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect(again.headers['idempotency-replayed']).toBe('true');
    const other = await send('POST', '/user-interactions', { ...sent, city: 'York' }, keyed);
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
    await sweep();
    expect(await tablesWith(test.pool, [device])).toEqual({});
  });

  it('an upload stores students’ interactions without the user, and a dry run answers the same', async () => {
    const { ben, device, send } = organisation;
    await erase({ user_ids: [device] });
    const records = [
      visit({ student_id: ben, user_id: device }),
      visit({ student_id: ben, user_id: 'somebody' }),
      visit({ user_id: device }),
      visit({ student_id: ben }),
      visit({ student_id: ben, user_id: device, city: 'York' }),
      visit({ student_id: ben, user_id: device, platform: 'TV' }),
      visit({ user_id: device, platform: 'TV' }),
      visit({ student_id: randomUUID(), user_id: device }),
    ];
    const answerTo = async (query: string) => {
      const { body } = await send('POST', `/user-interactions/batch${query}`, { records });
      const { counts, errors } = body.batches[0].data;
      return {
        counts,
        errors: errors.map(({ index, code }: { index: number; code: string }) => [index, code]),
      };
    };
    const dry = await answerTo('?dry_run=true');
    expect(dry).toMatchObject({
      counts: { received: 8, created: 4, failed: 4 },
      errors: [
        [2, 'erased'],
        [5, 'invalid_value'],
        [6, 'erased'],
        [7, 'reference_not_found'],
      ],
    });
    expect(await answerTo('')).toEqual(dry);
    const { interactions } = await search({ student_id: ben });
    expect(
      interactions.map(({ user_id, city }: { user_id: string; city: string }) => [user_id, city]).sort(),
    ).toEqual([
      [null, 'Leeds'],
      [null, 'Leeds'],
      [null, 'York'],
      ['somebody', 'Leeds'],
    ]);
    await sweep();
    expect(await tablesWith(test.pool, [device])).toEqual({});
    const { rejections } = await organisation.get('/v1/rejections');
    expect(rejections.map(({ record }: { record: object }) => record)).toEqual([
      { ...records[5], user_id: null },
      { ...records[7], user_id: undefined },
    ]);
  });

  it('a student’s failed interaction is shown without the user, and its replay is stored without the user', async () => {
    const { device, anna, send } = organisation;
    const student_id = randomUUID();
    const records = [
      visit({ student_id, user_id: device }),
      visit({ student_id: anna, user_id: device, platform: 'TV' }),
      visit({ user_id: device, platform: 'TV' }),
    ];
    await send('POST', '/user-interactions/batch', { records });
    await erase({ user_ids: [device] });
    const { rejections } = await organisation.get('/v1/rejections');
    expect(rejections.map(({ record }: { record: object | null }) => record)).toEqual([
      { ...records[0], user_id: null },
      { ...records[1], user_id: null },
      null,
    ]);
    await send('POST', '/v1/data/customers', {
      records: [{ customer_id: student_id, user_id: randomUUID(), region: 'GB' }],
    });
    await send('POST', '/v1/rejections/replay', undefined);
    expect(await search({ student_id })).toMatchObject({ interactions: [{ student_id, user_id: null }] });
    await sweep();
    expect(await tablesWith(test.pool, [device])).toEqual({});
  });
});

describe('from a browser', () => {
  const origin = 'https://shop.example';

  /** Sends an interaction, another body with the same Idempotency-Key, and the first body again. */
  async function statuses(fields: object): Promise<number[]> {
    const wanted = {
      organisationId: organisation.organisationId,
      permissions: ['interactions:write'],
      browserOrigins: [origin],
      label: null,
      expiresAt: null,
    };
    const { key } = await issueKey(test.pool, { actor: 'test' }, wanted as Parameters<typeof issueKey>[2]);
    const headers = { authorization: `Bearer ${key}`, origin, 'idempotency-key': randomUUID() };
    const sent = visit(fields);
    const found: number[] = [];
    for (const payload of [sent, { ...sent, city: 'York' }, sent]) {
      const answer = await test.app.inject({ method: 'POST', url: '/user-interactions', headers, payload });
      found.push(answer.statusCode);
    }
    return found;
  }

  it('an erased person’s Idempotency-Key is claimed like anybody’s', async () => {
    const { anna, ben, device } = organisation;
    const everybodys = await statuses({ user_id: 'somebody' });
    expect(everybodys).toEqual([202, 422, 202]);
    await erase({ customer_ids: [anna], user_ids: [device] });
    expect(await statuses({ user_id: device })).toEqual(everybodys);
    expect(await statuses({ student_id: anna })).toEqual(everybodys);
    expect(await statuses({ student_id: ben, user_id: device })).toEqual(everybodys);
    await sweep();
    expect(await statuses({ user_id: device })).toEqual(everybodys);
  });
});

it('a failed customer whose user id is not a UUID cannot be read either', async () => {
  const customer = { customer_id: randomUUID(), user_id: `anna ${randomUUID()}`, region: 'GB' };
  await organisation.send('POST', '/v1/data/customers', { records: [customer] });
  await erase({ user_ids: [customer.user_id] });
  const { rejections } = await organisation.get('/v1/rejections');
  expect(rejections).toMatchObject([{ id: null, record: null }]);
  await sweep();
  expect(await tablesWith(test.pool, [customer.user_id])).toEqual({});
});

it('a reader finds people among its own ids, however many people are being erased', async () => {
  const { organisationId } = organisation;
  const open = many(3_000, () => randomUUID());
  await erase({ customer_ids: open });
  let read = 0;
  const query = async (asked: { values: unknown[] }) => {
    const found = await serving.query(asked as unknown as string);
    read += found.rows.length;
    return found;
  };
  const asked = [...many(2_500, () => randomUUID()), ...open.slice(0, 7), open[0] as string];
  const found = await openIdsAmong({ query } as Pick<OwnPool, 'query'>, organisationId, asked);
  expect([...found].sort()).toEqual(open.slice(0, 7).sort());
  expect(read).toBe(7);
});
