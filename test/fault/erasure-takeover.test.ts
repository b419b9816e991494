// @module-tag full

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { apiOf, everyPermission } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectHeld, holdFirst, startDelayingProxy } from '../support/delaying-proxy.ts';
import { expectSwept, requestErasure } from '../support/erase-people.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** Starts a server whose message with this pattern is held back. */
async function startHeld(databaseUrl: string, pattern: RegExp) {
  const hold = holdFirst(pattern);
  hold.arm();
  const proxy = await startDelayingProxy(databaseUrl, hold.delay);
  const server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
  onTestFinished(async () => {
    hold.release();
    server.process.kill('SIGCONT');
    await server.stop();
    await proxy.close();
  });
  return { hold, server };
}

it('an erasure that is requested while the leader stalls and another takes over is swept completely', async () => {
  const databaseUrl = await createTestDatabase();
  const admin = new pg.Client({ connectionString: databaseUrl });
  await admin.connect();
  onTestFinished(() => admin.end());
  // The first leader stalls just before it starts what is pending. The second one is held in the middle of its sweep.
  const first = await startHeld(databaseUrl, /update erasures set state = 'sweeping'/);
  const second = await startHeld(databaseUrl, /erase_from_interactions/);
  const key = await first.server.createKey('acme', ...everyPermission);
  const api = apiOf(first.server.url, key);
  const shop = newShop();
  const [x, y] = [newPerson(), newPerson()];
  await api.upload('shops', [shop]);
  await api.upload('customers', [x, y]);
  const bought = [x, y].map(({ customer_id }) => newTransaction(shop.shop_id, { student_id: customer_id }));
  expect((await api.upload('transactions', bought)).status).toBe(200);
  const seen = {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: 1_700_000_000,
  };
  for (const { customer_id: student_id, user_id } of [x, y]) {
    const { status } = await api.post('/user-interactions', { ...seen, student_id, user_id, city: 'Leeds' });
    expect(status).toBe(201);
  }

  const one = await requestErasure(api, { customer_ids: [x.customer_id] });
  await expectHeld(first.hold);
  first.server.process.kill('SIGSTOP');
  // The second process takes over within five seconds.
  await admin.query('delete from leases');
  await expectHeld(second.hold);
  const successor = apiOf(second.server.url, key);
  const other = await requestErasure(successor, { customer_ids: [y.customer_id] });
  first.hold.release();
  first.server.process.kill('SIGCONT');
  await sleep(1_500);
  second.hold.release();

  for (const erasure of [one, other]) await expectSwept(api, erasure);
  const left = await tablesWith(admin, [y.customer_id, y.user_id]);
  expect(Object.keys(left).filter((table) => table !== 'changes')).toEqual([]);
  const { interactions } = (await api.get('/user-interactions?limit=10')).body;
  expect(interactions).toMatchObject(many(2, () => ({ student_id: null, user_id: null, city: null })));
});

const newPerson = () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' });
