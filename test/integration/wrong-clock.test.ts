import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { LakeSlots } from '../../src/lake/lake-slots.ts';
import { choresOf } from '../../src/maintenance/chores.ts';
import { Lease } from '../../src/maintenance/lease.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { badTag, many } from '../support/new-records.ts';

/** Work of a process whose clock is nine days ahead of the database's. */

const dayMs = 86_400_000;
let test: TestApp;
let key: string;
beforeAll(async () => {
  test = await createTestApp();
  ({ key } = await test.organisation('acme'));
});
afterEach(() => vi.useRealTimers());
afterAll(() => test.close());

const setClock = (days: number) =>
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(Date.now() + days * dayMs) });

it('the chores delete by the clock of the database', async () => {
  await test.pool.query(
    `update organisations set rejections_kept_days = 3, receipts_kept_days = 3, interactions_kept_days = 3`,
  );
  const sent = await test.app.inject({
    method: 'POST',
    url: '/v1/data/tags',
    headers: { authorization: `Bearer ${key}`, 'idempotency-key': randomUUID() },
    payload: { records: many(20, () => badTag()) },
  });
  expect(sent.statusCode).toBe(400);
  const count = async () => {
    const { rows } = await test.pool.query(
      `select (select count(*) from rejections) as rejections, (select count(*) from rejection_kinds) as kinds,
         (select count(*) from upload_idempotency_keys) as keys, (select count(*) from receipts) as receipts`,
    );
    return rows[0];
  };
  const before = await count();
  expect(before).toMatchObject({ rejections: '20', keys: '1', receipts: '1' });
  setClock(9);
  const config = {
    receiptsKeptDays: 7,
    changesKeptDays: 7,
    deletedOrganisationsKeptDays: 30,
    databaseTimeoutMs: 30_000,
    erasureKeys: [],
  };
  for (const chore of choresOf(test.pool, config)) await chore.run();
  expect(await count()).toEqual(before);
});

it.each([9, -9])('such a process leads nothing and holds no slot of the lake (%i days)', async (days) => {
  const lease = new Lease(test.pool, 'test');
  const slots = new LakeSlots(test.pool);
  setClock(days);
  await lease.renew();
  await slots.renew();
  expect([lease.isHeld, slots.count]).toEqual([false, 0]);
  vi.useRealTimers();
  await lease.renew();
  await slots.renew();
  expect([lease.isHeld, slots.count > 0]).toEqual([true, true]);
  setClock(days);
  await lease.renew();
  await slots.renew();
  expect([lease.isHeld, slots.count]).toEqual([false, 0]);
  vi.useRealTimers();
  await lease.release();
});
