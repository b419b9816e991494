// @module-tag full

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { apiOf, everyPermission } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectHeld, type Hold, holdFirst, startDelayingProxy } from '../support/delaying-proxy.ts';
import { erasePeople, expectSwept, requestErasure } from '../support/erase-people.ts';
import { many, newShop } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** The report counts changes, and an erasure is a change. Neither may stop or undo the other. */

async function start(...patterns: RegExp[]) {
  const databaseUrl = await createTestDatabase();
  const admin = new pg.Client({ connectionString: databaseUrl });
  await admin.connect();
  const holds = patterns.map(holdFirst);
  const proxy = await startDelayingProxy(databaseUrl, (...message) => {
    for (const { delay } of holds) {
      const held = delay(...message);
      if (held) return held;
    }
    return null;
  });
  const server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
  onTestFinished(async () => {
    for (const hold of holds) hold.release();
    await server.stop();
    await proxy.close();
    await admin.end();
  });
  const api = apiOf(server.url, await server.createKey('acme', ...everyPermission));
  await server.run('organisations', 'set-report', 'acme', 'on');
  const shop = newShop();
  const person = { customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' };
  await api.upload('shops', [shop]);
  await api.upload('customers', [person]);
  const visits = (count: number) => ({
    records: many(count, (at) => ({
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      source: 'SERVICE',
      recommendation_id: randomUUID(),
      student_id: person.customer_id,
      event_timestamp: 1_760_000_000 + at,
    })),
  });
  expect((await api.post('/user-interactions/batch', visits(20))).status).toBe(200);
  const counted = async () => {
    const { rows } = await admin.query('select count(*)::integer as count from report_interactions');
    return rows[0].count as number;
  };
  const left = async () =>
    Object.keys(await tablesWith(admin, [person.customer_id, person.user_id])).filter(
      (name) => name !== 'changes',
    );
  return { admin, api, person, holds, counted, left, visits };
}

it('an erasure ends although the report counts its changes half-way', async () => {
  // This statement is between clearing the interactions and erasing from the report.
  const { admin, api, person, holds, counted, left } = await start(/interaction_idempotency_keys/);
  const [hold] = holds as [Hold];
  await expect.poll(counted).toBe(20);
  const asOf = async () => {
    const { rows } = await admin.query(
      'select coalesce(max(number), 0)::float8 as number from report_progress',
    );
    return rows[0].number as number;
  };
  const before = await asOf();
  hold.arm();
  const erasure = await requestErasure(api, { customer_ids: [person.customer_id] });
  await expectHeld(hold);
  // The report counts every ten seconds.
  await expect.poll(asOf).toBeGreaterThan(before);
  hold.release();
  await expectSwept(api, erasure);
  expect(await left()).toEqual([]);
  await erasePeople(api, { customer_ids: [randomUUID()] });
});

it('the report does not write an erased student back', async () => {
  const { api, person, holds, counted, left, visits } = await start(
    /left join report_progress/,
    /erase_from_interactions/,
    /report: lock progress/,
  );
  const [report, sweep, step] = holds as [Hold, Hold, Hold];
  await expect.poll(counted).toBe(20);
  // The report has more to count, and begins with it when the sweep no longer waits for running transactions.
  report.arm();
  await expectHeld(report);
  expect((await api.post('/user-interactions/batch', visits(5))).status).toBe(200);
  sweep.arm();
  const erasure = await requestErasure(api, { customer_ids: [person.customer_id] });
  await expectHeld(sweep);
  step.arm();
  report.release();
  await expectHeld(step);
  // Everything is swept while the report stands still with its old snapshot, unless the sweep waits for it.
  sweep.release();
  const state = async () => (await api.get(`/v1/erasures/${erasure}`)).body.state;
  const endMs = performance.now() + 10_000;
  while ((await state()) !== 'swept' && performance.now() < endMs) await sleep(100);
  step.release();
  await expectSwept(api, erasure);
  await expect.poll(counted).toBe(25);
  expect(await left()).toEqual([]);
});
