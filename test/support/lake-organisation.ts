import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { numberAllChanges } from '../../src/changes/change-log.ts';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { organisationsWaiting } from '../../src/lake/lake-progress.ts';
import type { LakeWriter } from '../../src/lake/lake-writer.ts';
import { changeOrganisation } from '../../src/operator/audited-actions.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { erasureKey, type TestApp } from './app.ts';
import { sweepErasures } from './jobs.ts';
import { newShop } from './new-records.ts';
import { untilPasses } from './until-passes.ts';
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
      await untilPasses(async () => {
        await sweepErasures(test.pool, suppressions);
        const { body } = await request('GET', `/v1/erasures/${erasure_id}`);
        expect(body.state).toBe('swept');
      });
      await numberForAll(test.pool);
      return erasure_id;
    },
  };
}

/** Runs steps until the lake has caught up. If the lake starts over, its files are removed without a pause. */
export async function writeAll(writer: LakeWriter, pool: Pool, organisationId: string): Promise<void> {
  let steps = 0;
  // Run at least one step, because steps also number the changes. New changes may not be visible before that.
  do {
    if (await endRemovalPause(pool, organisationId)) await writer.remove(organisationId);
    else {
      await writer.step(organisationId, never);
      await writer.tend(organisationId);
    }
    expect(++steps).toBeLessThan(100);
  } while ((await organisationsWaiting(pool, [organisationId])).length > 0);
}

/** Ends the pause after which a lake's removal can be completed. Returns whether the lake is being removed. */
async function endRemovalPause(pool: Pool, organisationId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update lake_progress set removing_since = '2026-01-01' where organisation_id = $1 and removing_since is not null`,
    [organisationId],
  );
  return rowCount === 1;
}

/**
 * Remembers the change log and the progress of the lake. The function that it returns brings this state back, and begins an
 * epoch, as a standby does that has received nothing since then.
 */
export async function newStandby(test: TestApp, organisationId: string): Promise<() => Promise<void>> {
  await numberAllChanges(test.pool, organisationId);
  const read = async (table: string) =>
    (await test.pool.query(`select * from ${table} where organisation_id = $1`, [organisationId])).rows[0];
  const [counter, progress] = [await read('change_counters'), await read('lake_progress')];
  const last = Number(counter.last_number);
  const begun = { id: '0badcafe', first: last + 1 };
  return async () => {
    await test.pool.query('delete from changes where organisation_id = $1 and (number > $2) is not false', [
      organisationId,
      last,
    ]);
    await test.pool.query(
      'update change_counters set last_number = $2, epochs = $3 where organisation_id = $1',
      [organisationId, last, JSON.stringify([...counter.epochs, begun])],
    );
    await test.pool.query('delete from lake_progress where organisation_id = $1', [organisationId]);
    if (progress)
      await test.pool.query(
        'insert into lake_progress select * from json_populate_record(null::lake_progress, $1)',
        [JSON.stringify(progress)],
      );
  };
}

/** Returns every spelling of these people's ids. */
export function tracesOf(...people: readonly Person[]): string[] {
  return people.flatMap(({ customer_id, user_id }) => [customer_id, user_id, user_id.toUpperCase()]);
}
