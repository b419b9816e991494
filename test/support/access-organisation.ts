import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { OwnPool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { linesOf } from './access-person.ts';
import { erasureKey, type TestApp } from './app.ts';
import { collectPart, sweepStep } from './jobs.ts';
import { newShop, newTransaction } from './new-records.ts';
import { untilPasses } from './until-passes.ts';

/** An organisation whose access requests and erasures run only when a test starts them. */

export const suppressions = new Suppressions([erasureKey]);
export const shop = newShop();

export const visit = {
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id: shop.shop_id,
  event_timestamp: 1_700_000_000,
};

export class AccessOrganisation {
  readonly test: TestApp;
  /** A pool with the serving role's privileges. */
  readonly #serving: OwnPool;
  readonly organisationId: string;
  readonly #key: string;

  constructor(
    test: TestApp,
    serving: OwnPool,
    { organisationId, key }: { organisationId: string; key: string },
  ) {
    this.test = test;
    this.#serving = serving;
    this.organisationId = organisationId;
    this.#key = key;
  }

  async send(
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    payload?: object | string,
    headers: object = {},
  ) {
    const authorization = `Bearer ${this.#key}`;
    const type = payload === undefined ? {} : { 'content-type': 'application/json' };
    return this.test.app.inject({
      method,
      url,
      headers: { authorization, ...type, ...headers },
      ...(payload && { payload }),
    });
  }

  async upload(type: string, ...records: object[]) {
    return (await this.send('POST', `/v1/data/${type}`, { records })).json();
  }

  async access(sent: object): Promise<string> {
    const answer = await this.send('POST', '/v1/access-requests', sent);
    expect(answer.statusCode, answer.body).toBe(202);
    return answer.json().access_request_id;
  }

  async collect(): Promise<void> {
    while (await collectPart(this.#serving, this.organisationId, suppressions));
  }

  async get(id: string) {
    return (await this.send('GET', `/v1/access-requests/${id}`)).json();
  }

  async download(id: string) {
    const { statusCode, body } = await this.send('GET', `/v1/access-requests/${id}/records`);
    expect(statusCode, body).toBe(200);
    return linesOf(body);
  }

  async accessed(sent: object) {
    const id = await this.access(sent);
    await this.collect();
    return this.download(id);
  }

  async erase({ student_id, visitor }: { student_id: string; visitor: string }): Promise<void> {
    const people = { customer_ids: [student_id], user_ids: [visitor] };
    const { statusCode } = await this.send('POST', '/v1/erasures', people);
    expect(statusCode).toBe(202);
  }

  async sweep(): Promise<void> {
    await untilPasses(async () => {
      while (await sweepStep(this.#serving, this.organisationId, suppressions));
      for (const { state } of (await this.send('GET', '/v1/erasures')).json().erasures)
        expect(state).toBe('swept');
    });
  }
}

export async function newAccessOrganisation(test: TestApp, serving: OwnPool): Promise<AccessOrganisation> {
  const issued = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const made = new AccessOrganisation(test, serving, issued);
  await made.upload('shops', shop);
  return made;
}

export const newCustomer = (user_id = randomUUID()) => ({ customer_id: randomUUID(), user_id, region: 'GB' });

/** Creates a person with data of every type: two customers that share a user. One of them was seen as a visitor too. */
export async function newPerson(of: AccessOrganisation) {
  const user_id = randomUUID();
  const [one, other] = [newCustomer(user_id), newCustomer(user_id)];
  const student_id = one.customer_id;
  const [visitor, mark] = [`visitor ${randomUUID()}`, `mark ${randomUUID()}`];
  await of.upload('customers', { ...one, gender: mark }, other);
  // The record is rejected. Its JSON contains line breaks, and the upload's receipt contains its id.
  const failing = JSON.stringify({ records: [{ ...one, region: 7 }] }, null, 2);
  await of.send('POST', '/v1/data/customers', failing);
  const bought = newTransaction(shop.shop_id, { student_id, discount_name: mark });
  const keyed = (word: string) => ({ 'idempotency-key': `${word} ${student_id}` });
  await of.send('POST', '/v1/data/transactions', { records: [bought] }, keyed('upload'));
  const favourite = { student_favourite_id: randomUUID(), student_id: other.customer_id };
  await of.upload('student-favourites', { ...favourite, shop_id: shop.shop_id });
  const seen = { ...visit, student_id, user_id: visitor, city: mark };
  await of.send('POST', '/user-interactions', seen, keyed('interaction'));
  await of.send('POST', '/user-interactions', { ...visit, user_id: visitor });
  await of.send('POST', '/user-interactions', { ...visit, user_id: user_id.toUpperCase() });
  await of.send('POST', '/user-interactions/batch', { records: [{ ...seen, platform: 'TV' }] });
  for (const days of [2, 1]) await copyToPast(of.test, student_id, days);
  const ids = [student_id, other.customer_id, user_id];
  return { student_id, user_id, visitor, mark, ids };
}

/** Copies one of a student's interactions to a past day. */
export async function copyToPast(test: TestApp, student_id: string, days: number): Promise<void> {
  await test.pool.query(
    `insert into interactions
     select organisation_id, uuid_floor(now() - $2 * interval '1 day' + random() * interval '1 hour'), interaction_type, user_id,
       student_id, item_type, item_id, city, country, platform, event_timestamp, source, recommendation_id, event_time
     from interactions where student_id = $1 limit 1`,
    [student_id, days],
  );
}

export const countByType = (lines: readonly { type: string }[]) =>
  Object.fromEntries([...Map.groupBy(lines, ({ type }) => type)].map(([type, of]) => [type, of.length]));

/** The number of records of each type that `newPerson` creates. */
export const everything = {
  customers: 2,
  transactions: 1,
  'student-favourites': 1,
  interactions: 4,
  'users-seen-together': 1,
  rejections: 2,
  receipts: 1,
  'idempotency-keys': 2,
};
