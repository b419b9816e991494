// @module-tag full
// @module-tag pooler
// @module-tag long

import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { apiOf } from '../support/api.ts';
import { servingUrl } from '../support/database.ts';
import { removeDeleted } from '../support/jobs.ts';
import { KilledProcesses, kills } from '../support/killed-processes.ts';
import { newShop } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** Tests a removal whose process is killed three times (or KILLS times), each time after a step or in the middle of one. */

const rows = { transactions: 10_000 * kills, interactions: 5_000 * kills };

let processes: KilledProcesses;
let admin: pg.Client;
beforeAll(async () => {
  processes = await KilledProcesses.create();
  admin = processes.admin;
});
afterAll(() => processes.end());

/** Returns the number of steps so far, or undefined when the organisation is gone. */
async function steps(): Promise<string | undefined> {
  const { rows: found } = await admin.query<{ step: string }>(
    `select coalesce(step, '0') as step from organisations left join removals using (organisation_id) where slug = 'acme'`,
  );
  return found[0]?.step;
}

/** Removes the rest of the data without pauses, to end the test sooner. */
async function removeRest(): Promise<void> {
  const pool = createPool(readConfig({ DATABASE_URL: servingUrl(processes.databaseUrl) }), () => {});
  while ((await steps()) !== undefined) await removeDeleted(pool);
  await pool.end();
}

it('finishes, counts nothing twice and leaves nothing', async () => {
  const first = await processes.start();
  const shop = newShop();
  for (const slug of ['acme', 'other']) {
    const api = apiOf(first.url, await first.createKey(slug));
    expect((await api.post('/v1/data/shops', { records: [shop] })).status).toBe(200);
  }
  await processes.kill();
  const ofOthers = 1_000;
  await admin.query(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, is_deleted)
     select organisation_id, gen_random_uuid(), $1, 'GB', 2.5, 22.49, false
     from organisations cross join generate_series(1, ${rows.transactions}) n where slug = 'acme' or n <= ${ofOthers}`,
    [shop.shop_id],
  );
  await admin.query(
    `insert into interactions (organisation_id, interaction_id, interaction_type, item_type, item_id, event_timestamp, event_time)
     select organisation_id, overlay(gen_random_uuid()::text placing left(uuid_floor(now())::text, 13) from 1)::uuid,
       'SHARE', 'SHOP', $1, '1700000000', now()
     from organisations cross join generate_series(1, ${rows.interactions}) n where slug = 'acme' or n <= ${ofOthers}`,
    [shop.shop_id],
  );
  const { rows: ids } = await admin.query<{ id: string; key_id: string }>(
    `update organisations o set deleted_at = now() - interval '31 days' from api_keys k
     where o.slug = 'acme' and k.organisation_id = o.organisation_id returning o.organisation_id as id, k.key_id`,
  );
  const hashOfOther = async () =>
    (
      await admin.query(
        `select count(*)::integer as count, md5(string_agg(t::text, '' order by transaction_id)) as hash
         from transactions t where organisation_id = (select organisation_id from organisations where slug = 'other')`,
      )
    ).rows[0];
  const before = await hashOfOther();
  expect(before.count).toBe(ofOthers);

  await processes.killOften(100, steps);
  expect(Number(await steps())).toBeGreaterThanOrEqual(kills);
  await removeRest();

  const { rows: entries } = await admin.query(
    `select details->'rows' as rows from audit_log where act = 'organisation.remove'`,
  );
  expect(entries).toHaveLength(1);
  expect(entries[0].rows).toMatchObject({ ...rows, shops: 1 });
  const traces = ids.flatMap(({ id, key_id }) => [id, key_id]);
  expect(await tablesWith(admin, traces)).toEqual({ audit_log: 1 });
  expect(await hashOfOther()).toEqual(before);
  expect(processes.log.filter((line) => line.includes('maintenance failed'))).toEqual([]);
});
