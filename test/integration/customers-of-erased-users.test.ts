// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { type AccessOrganisation, newAccessOrganisation, newPerson } from '../support/access-organisation.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { newTransaction } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** Erasures that name only a user. The sweep finds the customers with this user later, but nobody may read them before. */

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

const lists = [
  '/v1/data/customers',
  '/v1/data/transactions',
  '/v1/data/student-favourites',
  '/user-interactions?limit=100',
  '/v1/rejections',
  '/v1/rejections/summary',
  '/v1/requests',
];

/** Returns everything that the organisation can read, by path. */
async function readAll(acme: AccessOrganisation, paths: readonly string[]): Promise<Map<string, string>> {
  const bodies = await Promise.all(paths.map(async (path) => (await acme.send('GET', path)).body));
  return new Map(paths.map((path, at) => [path, bodies[at]?.toLowerCase() ?? '']));
}

it('once an erasure is answered, nothing of the customers with an erased user can be read, and nobody else’s data is hidden', async () => {
  const acme = await newAccessOrganisation(test, serving);
  const [person, stranger] = [await newPerson(acme), await newPerson(acme)];
  const collected = await acme.access({ customer_ids: [person.student_id, stranger.student_id] });
  await acme.collect();
  const { requests } = (await acme.send('GET', '/v1/requests')).json();
  const paths = [
    ...lists,
    `/v1/access-requests/${collected}/records`,
    ...requests.map((one: { request_id: string }) => `/v1/requests/${one.request_id}`),
  ];
  const others = (texts: ReadonlyMap<string, string>) =>
    [...texts].map(([path, text]) => [path, stranger.ids.flatMap((id) => text.split(id).slice(1)).length]);
  const before = await readAll(acme, paths);

  const { statusCode } = await acme.send('POST', '/v1/erasures', { user_ids: [person.user_id] });
  expect(statusCode).toBe(202);
  const hidden = async () => {
    const after = await readAll(acme, paths);
    for (const id of person.ids)
      expect([...after].flatMap(([path, text]) => (text.includes(id) ? path : []))).toEqual([]);
    return after;
  };
  expect(others(await hidden())).toEqual(others(before));
  for (const id of person.ids) {
    expect((await acme.send('GET', `/v1/data/customers/${id}`)).statusCode).toBe(404);
    expect((await acme.send('GET', `/user-interactions?student_id=${id}`)).json().interactions).toEqual([]);
  }

  // What arrives before the sweep is hidden too.
  const bought = newTransaction(shopOf(before), { student_id: person.student_id });
  await acme.upload('transactions', bought);
  await hidden();
  await acme.sweep();
  const { changes, ...left } = await tablesWith(test.pool, person.ids);
  expect(left).toEqual({});
});

/** Returns a shop that a transaction refers to. */
function shopOf(texts: ReadonlyMap<string, string>): string {
  return JSON.parse(texts.get('/v1/data/transactions') ?? '').records[0].shop_id;
}

it('access requests leave out the customers of users who are being erased', async () => {
  const acme = await newAccessOrganisation(test, serving);
  const person = await newPerson(acme);
  await acme.send('POST', '/v1/erasures', { user_ids: [person.user_id] });
  const lines = await acme.accessed({ customer_ids: [person.student_id] });
  expect(JSON.stringify(lines)).not.toContain(person.student_id);
  expect(await acme.accessed({ customer_ids: [randomUUID()] })).toEqual([]);
});
