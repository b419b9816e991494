// @module-tag full
// @module-tag long

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase, servingUrl } from '../support/database.ts';
import { removeDeleted } from '../support/jobs.ts';
import { newShop } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** Tests a removal whose process is killed three times (or KILLS times), each time after a step or in the middle of one. */

const kills = Number(process.env.KILLS ?? 3);
const rows = { transactions: 10_000 * kills, interactions: 5_000 * kills };

let DATABASE_URL: string;
let admin: pg.Client;
const logs: (readonly string[])[] = [];
beforeAll(async () => {
  DATABASE_URL = await createTestDatabase();
  admin = new pg.Client({ connectionString: DATABASE_URL });
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
});

async function start(): Promise<BuiltServer> {
  // Delete the killed process's lease, which would last another 15 s.
  await admin.query('delete from leases');
  const server = await startBuiltServer({ DATABASE_URL });
  logs.push(server.log);
  return server;
}

/** Returns the number of steps so far, or undefined when the organisation is gone. */
async function steps(): Promise<number | undefined> {
  const { rows: found } = await admin.query<{ step: string | null }>(
    `select step from organisations left join removals using (organisation_id) where slug = 'acme'`,
  );
  return found[0] && Number(found[0].step);
}

/** Kills the process after at least one step. Returns false if the removal had already finished. */
async function killWhileRemoving(): Promise<boolean> {
  const before = await steps();
  const { process: running } = await start();
  for (;;) {
    const now = await steps();
    if (now === undefined) return false;
    if (now !== before) break;
    await sleep(1);
  }
  await sleep(Math.random() * 100);
  running.kill('SIGKILL');
  await new Promise((resolve) => running.once('close', resolve));
  return (await steps()) !== undefined;
}

/** Removes the rest of the data without pauses, to end the test sooner. */
async function removeRest(): Promise<void> {
  const pool = createPool(readConfig({ DATABASE_URL: servingUrl(DATABASE_URL) }), () => {});
  while ((await steps()) !== undefined) await removeDeleted(pool);
  await pool.end();
}

it('finishes, counts nothing twice and leaves nothing', { timeout: 600_000 }, async () => {
  const first = await start();
  const shop = newShop();
  for (const slug of ['acme', 'other']) {
    const api = apiOf(first.url, await first.createKey(slug));
    expect((await api.post('/v1/data/shops', { records: [shop] })).status).toBe(200);
  }
  first.process.kill('SIGKILL');
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

  let killed = 0;
  while (killed < kills && (await killWhileRemoving())) killed++;
  expect(killed).toBe(kills);
  const halfway = await steps();
  expect(halfway).toBeGreaterThanOrEqual(kills);
  await removeRest();

  const { rows: entries } = await admin.query(
    `select details->'rows' as rows from audit_log where act = 'organisation.remove'`,
  );
  expect(entries).toHaveLength(1);
  expect(entries[0].rows).toMatchObject({ ...rows, shops: 1 });
  const traces = ids.flatMap(({ id, key_id }) => [id, key_id]);
  expect(await tablesWith(admin, traces)).toEqual({ audit_log: 1 });
  expect(await hashOfOther()).toEqual(before);
  expect(logs.flat().filter((line) => line.includes('maintenance failed'))).toEqual([]);
});
