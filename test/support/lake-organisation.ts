import { randomUUID } from 'node:crypto';
import { expect, vi } from 'vitest';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { sweepErasures } from '../../src/erasure/sweep/sweep.ts';
import { organisationsWaiting } from '../../src/lake/lake-progress.ts';
import type { LakeWriter } from '../../src/lake/lake-writer.ts';
import { changeOrganisation } from '../../src/operator/audited-actions.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { erasureKey, type TestApp } from './app.ts';
import { newShop } from './new-records.ts';
import { newInteractions } from './written-lake.ts';

const shop = newShop();
const suppressions = new Suppressions([erasureKey]);
const never = new AbortController().signal;

/** A person with their own customer record and user. */
export interface Person {
  readonly customer_id: string;
  readonly user_id: string;
}

export interface LakeOrganisation {
  readonly slug: string;
  readonly organisationId: string;
  request(method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object): Promise<Answer>;
  send(count: number, more?: object): Promise<void>;
  newPerson(): Promise<Person>;
  /** Sends interactions with only the customer, with only the user, and with both. */
  visit(person: Person, count?: number): Promise<void>;
  /** Erases people, waits for the sweep, and returns the erasure's id. */
  erase(mode: 'anonymise' | 'delete', ...people: readonly Person[]): Promise<string>;
}

interface Answer {
  readonly statusCode: number;
  // biome-ignore lint/suspicious/noExplicitAny: many operations return responses of different shapes.
  readonly body: any;
}

/** Creates an organisation whose lake is switched on. */
export async function newLakeOrganisation(test: TestApp): Promise<LakeOrganisation> {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId, key } = await test.organisation(slug);
  await changeOrganisation(test.pool, { actor: 'test' }, slug, { lake: true });
  const request: LakeOrganisation['request'] = async (method, url, payload) => {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await test.app.inject({ method, url, headers, ...(payload && { payload }) });
    return { statusCode: answer.statusCode, body: answer.json() };
  };
  const post = async (url: string, payload: object) => {
    const { statusCode, body } = await request('POST', url, payload);
    expect(statusCode, JSON.stringify(body)).toBeLessThan(300);
    return body;
  };
  await post('/v1/data/shops', { records: [shop] });
  const send = async (count: number, more: object = {}) => {
    await post('/user-interactions/batch', { records: newInteractions(count, shop.shop_id, more) });
    await numberForAll(test.pool);
  };
  return {
    slug,
    organisationId,
    request,
    send,
    async newPerson() {
      const person = { customer_id: randomUUID(), user_id: randomUUID() };
      await post('/v1/data/customers', { records: [{ ...person, region: 'GB' }] });
      return person;
    },
    async visit({ customer_id, user_id }, count = 2) {
      await send(count, { student_id: customer_id, user_id: null });
      await send(count, { user_id });
      await send(count, { student_id: customer_id, user_id: user_id.toUpperCase(), city: 'Leeds' });
    },
    async erase(mode, ...people) {
      const customer_ids = people.map(({ customer_id }) => customer_id);
      const { erasure_id } = await post('/v1/erasures', { customer_ids, mode });
      await vi.waitFor(
        async () => {
          await sweepErasures(test.pool, suppressions);
          const { body } = await request('GET', `/v1/erasures/${erasure_id}`);
          expect(body.state).toBe('swept');
        },
        { timeout: 60_000 },
      );
      await numberForAll(test.pool);
      return erasure_id;
    },
  };
}

/** Runs steps until the lake has caught up. */
export async function writeAll(writer: LakeWriter, pool: Pool, organisationId: string): Promise<void> {
  let steps = 0;
  do {
    await writer.step(organisationId, never);
    await writer.tend(organisationId);
    expect(++steps).toBeLessThan(100);
  } while ((await organisationsWaiting(pool, [organisationId])).length > 0);
}

/** Returns every spelling of these people's ids. */
export function tracesOf(...people: readonly Person[]): string[] {
  return people.flatMap(({ customer_id, user_id }) => [customer_id, user_id, user_id.toUpperCase()]);
}
