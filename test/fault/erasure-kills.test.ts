// @module-tag full
// @module-tag pooler

import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { KilledProcesses, kills } from '../support/killed-processes.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** Tests a sweep whose process is killed three times (or KILLS times), each time after a part or in the middle of one. */

const people = 500;
const transactions = 10_000 * kills;
const stepMs = 100;
/** The number of transactions per person. Other people's transactions must not change. */
const transactionsOfEach = 12;

let processes: KilledProcesses;
let admin: pg.Client;
beforeAll(async () => {
  processes = await KilledProcesses.create();
  admin = processes.admin;
});
afterAll(() => processes.end());

/** Returns the job's place, or undefined when the erasure is swept. */
async function place(): Promise<string | undefined> {
  const { rows } = await admin.query<{ state: string; at: string }>(
    `select e.state, concat(j.step, ' ', j.position) as at
     from erasures e left join jobs j on j.organisation_id = e.organisation_id and j.kind = 'erasures'`,
  );
  return rows[0]?.state === 'swept' ? undefined : rows[0]?.at;
}

it('finishes, does nothing twice and leaves nothing', async () => {
  const first = await processes.start();
  const api = apiOf(
    first.url,
    await first.createKey('acme', 'data:write', 'interactions:write', 'data:read', 'data:erase'),
  );
  const shop = newShop();
  const erased = many(people, () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' }));
  const visitor = `visitor-${randomUUID()}`;
  const ids = erased.map(({ customer_id }) => customer_id);
  expect((await api.post('/v1/data/shops', { records: [shop] })).status).toBe(200);
  expect((await api.post('/v1/data/customers', { records: erased })).status).toBe(200);
  const seen = { student_id: ids[0], user_id: visitor, item_type: 'SHOP', item_id: shop.shop_id };
  const interaction = { interaction_type: 'SHARE', event_timestamp: '2026-03-14T09:26:53Z', ...seen };
  expect((await api.post('/user-interactions', interaction)).status).toBe(201);
  const failing = newTransaction('no shop', { student_id: ids[1] });
  expect((await api.post('/v1/data/transactions', { records: [failing] })).status).toBe(400);
  await admin.query(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, is_deleted)
     select organisation_id, gen_random_uuid(), $1, 'GB', 2.5, 22.49,
       case when n <= $3::integer then ($2::uuid[])[1 + n % $4::integer] else gen_random_uuid() end, false
     from organisations cross join generate_series(1, ${transactions}) n`,
    [shop.shop_id, ids, transactionsOfEach * people, people],
  );
  await processes.slowSteps(stepMs);
  const { status, body } = await api.post('/v1/erasures', { customer_ids: ids });
  expect([status, body.known]).toEqual([202, people]);
  await processes.kill();

  await processes.killOften(stepMs, place);
  await processes.endSlowSteps();
  await processes.start();
  await expect.poll(place).toBeUndefined();

  const { rows } = await admin.query('select rows from erasures');
  expect(rows[0].rows).toMatchObject({ customers: people, transactions: people * transactionsOfEach });
  const { rows: entries } = await admin.query(
    `select count(*)::integer as all, count(distinct id)::integer as different from changes cross join unnest(ids) as id
     where type = 'transactions'`,
  );
  expect(entries[0]).toEqual({ all: people * transactionsOfEach, different: people * transactionsOfEach });
  const personal = [visitor, ...erased.flatMap(({ customer_id, user_id }) => [customer_id, user_id])];
  const { rowCount: left } = await admin.query(
    'select from transactions where student_id = any ($1::uuid[])',
    [ids],
  );
  expect(left).toBe(0);
  // With fewer rows, the following search is faster.
  await admin.query('delete from transactions where student_id is not null');
  expect(Object.keys(await tablesWith(admin, personal))).toEqual(['changes']);
  const log = processes.log.join('\n');
  expect(log.match(/does the maintenance/g)).toHaveLength(kills + 2);
  expect(personal.filter((one) => log.includes(one))).toEqual([]);
});
