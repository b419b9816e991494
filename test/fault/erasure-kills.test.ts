// @module-tag full

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** Tests a sweep whose process is killed three times (or KILLS times), each time after a part or in the middle of one. */

const kills = Number(process.env.KILLS ?? 3);
const people = 500;
const transactions = 30_000 * kills;
/** The number of transactions per person. Other people's transactions must not change. */
const transactionsOfEach = 12;

let DATABASE_URL: string;
let admin: pg.Client;
let server: BuiltServer | undefined;
const logs: (readonly string[])[] = [];
beforeAll(async () => {
  DATABASE_URL = await createTestDatabase();
  admin = new pg.Client({ connectionString: DATABASE_URL });
  await admin.connect();
});
afterAll(async () => {
  await server?.stop();
  await admin.end();
});

async function start(): Promise<BuiltServer> {
  // Delete the killed process's lease, which would last another 15 s.
  await admin.query('delete from leases');
  const started = await startBuiltServer({ DATABASE_URL });
  logs.push(started.log);
  server = started;
  return started;
}

async function progress(): Promise<{ state: string; at: string }> {
  const { rows } =
    await admin.query(`select state, coalesce((select concat(step, ' ', position) from jobs where kind = 'erasures'), '') as at
     from erasures`);
  return rows[0];
}

/** Kills the process after at least one part. Returns false if the sweep had already finished. */
async function killWhileSweeping(): Promise<boolean> {
  const { at: before } = await progress();
  const { process: running } = await start();
  for (;;) {
    const { state, at } = await progress();
    if (state === 'swept') return false;
    if (at !== before) break;
    await sleep(1);
  }
  await sleep(Math.random() * 20);
  running.kill('SIGKILL');
  await new Promise((resolve) => running.once('close', resolve));
  return (await progress()).state !== 'swept';
}

it('finishes, does nothing twice and leaves nothing', { timeout: 600_000 }, async () => {
  const first = await start();
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
  const { status, body } = await api.post('/v1/erasures', { customer_ids: ids });
  expect([status, body.known]).toEqual([202, people]);
  first.process.kill('SIGKILL');

  let killed = 0;
  while (killed < kills && (await killWhileSweeping())) killed++;
  expect(killed).toBe(kills);
  await start();
  await expect.poll(async () => (await progress()).state, { timeout: 60_000 }).toBe('swept');

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
  const log = logs.flat().join('\n');
  expect(log.match(/does the maintenance/g)).toHaveLength(kills + 2);
  expect(personal.filter((one) => log.includes(one))).toEqual([]);
});
