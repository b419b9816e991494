import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect } from 'vitest';
import { rewriting } from '../../src/erasure/sweep/rewrite-user-ids.ts';
import { indexPartitions } from '../../src/interactions/interaction-partitions.ts';
import { runJobs } from '../../src/jobs/run-jobs.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import type { Api } from './api.ts';
import { erasureKey } from './app.ts';
import { collectForAll, settleAll, sweepErasures, sweepStep } from './jobs.ts';
import { newShop, newTransaction } from './new-records.ts';
import { untilPasses } from './until-passes.ts';

/** Erases people with data of every type, so that the service sends every erasure statement. */
export async function eraseEverybody(api: Api, pool: Pool, owner: pg.Client): Promise<void> {
  const suppressions = new Suppressions([erasureKey]);
  const shop = newShop();
  await api.upload('shops', [shop]);
  for (const mode of ['anonymise', 'delete']) {
    const { customer_id, user_id, other } = await newPerson(api, shop.shop_id, owner);
    const sent = { customer_ids: [customer_id], user_ids: [user_id], mode };
    await indexPartitions(pool);
    await accessEverybody(api, pool, owner, { customer_ids: [customer_id, other] });
    expect((await api.post('/v1/erasures?dry_run=true', sent)).body).toMatchObject({ complete: true });
    const { status, body } = await api.post('/v1/erasures', sent);
    expect(status).toBe(202);
    const path = `/v1/erasures/${body.erasure_id}`;
    const { rows } = await owner.query<{ id: string }>('select organisation_id as id from erasures limit 1');
    await untilPasses(async () => {
      while (await sweepStep(pool, rows[0]?.id as string, suppressions));
      expect((await api.get(path)).body.state).toBe('swept');
    });
    await settleAndFail(pool, owner, rows[0]?.id as string);
    await owner.query('update tenants set user_ids_rewritten = false');
    expect((await api.get(`/user-interactions?user_id=${user_id}`)).status).toBe(200);
    await rewriteEverybody(pool, owner);
    for (const [method, of] of [
      ['GET', ''],
      ['GET', '/certificate'],
      ['DELETE', '/suppression'],
    ] as const)
      expect((await api.send(path + of, { method })).status).toBe(200);
    expect((await api.get(`/v1/erasures?limit=1&cursor=${body.erasure_id}`)).status).toBe(200);
    // The erasure suppresses the customer, so the upload is refused.
    await api.post('/v1/erasures', { customer_ids: [customer_id] });
    await api.upload('customers', [{ customer_id, user_id: randomUUID(), region: 'GB' }]);
    // As if it had been lifted before the database was restored.
    await owner.query('update suppressions set lifted_before = now()');
    await sweepErasures(pool, suppressions);
  }
  await owner.query(`update erasures set swept_at = now() - interval '60 days' where state = 'swept'`);
}

/** Settles a batch, and runs a job that fails. */
async function settleAndFail(pool: Pool, owner: pg.Client, organisationId: string): Promise<void> {
  await owner.query(`insert into unsettled_batches values ($1, 'shops', gen_random_uuid(), '{}', '{}')`, [
    organisationId,
  ]);
  await settleAll(pool);
  const call = () => Promise.reject(new Error('this job fails'));
  const failing = {
    name: 'failing',
    first: 'fail',
    find: async () => [organisationId],
    steps: { fail: { call } },
  };
  await expect(runJobs(pool, [failing])).rejects.toThrow('this job fails');
  await owner.query(`delete from jobs where kind = 'failing'`);
}

/** Rewrites user ids as an earlier release stored them. */
async function rewriteEverybody(pool: Pool, owner: pg.Client): Promise<void> {
  await owner.query('update interactions set user_id = upper(gen_random_uuid()::text)');
  await owner.query('update tenants set user_ids_rewritten = false');
  await runJobs(pool, [rewriting]);
}

/** Collects a person's data three times. One copy has expired, one is cancelled, and one will be erased. */
async function accessEverybody(api: Api, pool: Pool, owner: pg.Client, sent: object): Promise<void> {
  const suppressions = new Suppressions([erasureKey]);
  for (const end of ['expired', 'cancelled', 'erased']) {
    const { status, body } = await api.post('/v1/access-requests', sent);
    expect(status).toBe(202);
    await untilPasses(async () => {
      await collectForAll(pool, suppressions);
      expect((await api.get(`/v1/access-requests/${body.access_request_id}`)).body.state).toBe('done');
    });
    expect((await api.get(`/v1/access-requests/${body.access_request_id}/records`)).body).not.toBe('');
    expect((await api.get(`/v1/access-requests?limit=1&cursor=${body.access_request_id}`)).status).toBe(200);
    if (end === 'cancelled') {
      const path = `/v1/access-requests/${body.access_request_id}`;
      expect((await api.send(path, { method: 'DELETE' })).status).toBe(200);
    }
    if (end === 'expired')
      await owner.query(
        `update access_requests set done_at = now() - interval '8 days' where state = 'done'`,
      );
  }
}

async function newPerson(api: Api, shop_id: string, owner: pg.Client) {
  const [customer_id, user_id, visitor] = [randomUUID(), randomUUID(), `visitor ${randomUUID()}`];
  const customer = { customer_id, user_id, region: 'GB' };
  await api.upload('customers', [customer]);
  await api.upload('customers', [
    { ...customer, customer_id: randomUUID() },
    { ...customer, region: 7 },
  ]);
  const keyed = { 'idempotency-key': `again ${customer_id} ${randomUUID()}` };
  const transaction = newTransaction(shop_id, { student_id: customer_id });
  await api.post('/v1/data/transactions', { records: [transaction] }, keyed);
  const favourite = { student_favourite_id: randomUUID(), student_id: customer_id, shop_id };
  await api.upload('student-favourites', [favourite]);
  const interaction = {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop_id,
    event_timestamp: 1_700_000_000,
    student_id: customer_id,
    user_id: visitor,
  };
  await api.post('/user-interactions', interaction, keyed);
  await api.post('/user-interactions', { ...interaction, student_id: undefined });
  // Another student uses the same device, and keeps these interactions without its user.
  const other = randomUUID();
  await api.upload('customers', [{ customer_id: other, user_id: randomUUID(), region: 'GB' }]);
  const shared = { ...interaction, student_id: other, user_id };
  await api.post('/user-interactions', shared);
  await api.post('/user-interactions/batch', { records: [{ ...shared, platform: 'TV' }] });
  // Add an interaction of each on a past day.
  await owner.query(
    `insert into interactions
     select organisation_id, uuid_floor(now() - interval '2 days' + random() * interval '1 hour'), interaction_type, user_id, student_id,
       item_type, item_id, city, country, platform, event_timestamp, source, recommendation_id, event_time
     from interactions where student_id in ($1, $2)`,
    [customer_id, other],
  );
  return { customer_id, user_id, other };
}
