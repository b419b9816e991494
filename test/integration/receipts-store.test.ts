import { afterAll, beforeAll, expect, it } from 'vitest';
import { dailyReceipts } from '../../src/receipts/daily-receipts.ts';
import { findReceipt } from '../../src/receipts/receipts.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

let test: TestApp;
let organisationId: string;
beforeAll(async () => {
  test = await createTestApp();
  ({ organisationId } = await test.organisation('acme'));
});
afterAll(() => test.close());

it('a receipt is found by the primary keys of the single week of its id', async () => {
  let plan: string[] = [];
  const explaining = {
    query: async ({ text, values }: { text: string; values: string[] }) => {
      const client = await test.pool.connect();
      // PostgreSQL would scan an empty partition fully, which is fine. Disabling such scans shows which index it can use.
      await client.query(
        'begin; set local enable_seqscan = off; set local plan_cache_mode = force_custom_plan',
      );
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
      client.release(true);
      plan = rows.map((row) => row['QUERY PLAN']);
      return { rows: [] };
    },
  };
  await findReceipt(explaining as never, organisationId, uuidFloor(Date.now()));
  // On Citus, the worker's plan is nested in the coordinator's plan.
  const scans = plan.filter((line) => / Scan /.test(line) && !line.includes('Citus'));
  expect(scans).toHaveLength(1);
  for (const scan of scans) expect(scan).toMatch(/using receipt\w+_pkey|using receipt\w+_request_id/);
});

it('a receipt counts for the day in UTC of its id', async () => {
  const dayMs = 86_400_000;
  const midnightMs = Math.floor(Date.now() / dayMs) * dayMs;
  const { organisationId: other } = await test.organisation('other');
  const add = (organisation: string, ms: number, status: number) =>
    test.pool.query(
      `insert into receipts (organisation_id, request_id, type, operation, status, key_id, body_bytes, duration_ms,
         batch_count, batches, received, created, updated, unchanged, stale, failed)
       values ($1, $2, 'tags', 'upload', $3, 'key', 1, 1, 1, array[1], 7, 1, 2, 1, 1, 2)`,
      [organisation, uuidFloor(ms), status],
    );
  await add(organisationId, midnightMs, 200);
  await add(organisationId, midnightMs - 1, 207);
  await add(organisationId, midnightMs - dayMs, 400);
  // This receipt is older than the requested days.
  await add(organisationId, midnightMs - 2 * dayMs - 1, 200);
  await add(other, midnightMs, 200);
  const one = { received: 7, created: 1, updated: 2, unchanged: 1, stale: 1, failed: 2 };
  const two = { received: 14, created: 2, updated: 4, unchanged: 2, stale: 2, failed: 4 };
  const none = { received: 0, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0 };
  const nameOf = (ago: number) => new Date(midnightMs - ago * dayMs).toISOString().slice(0, 10);
  expect(await dailyReceipts(test.pool, organisationId, 3)).toEqual([
    { day: nameOf(0), uploads: { complete: 1, partial: 0, failed: 0 }, records: one },
    { day: nameOf(1), uploads: { complete: 0, partial: 1, failed: 1 }, records: two },
    { day: nameOf(2), uploads: { complete: 0, partial: 0, failed: 0 }, records: none },
  ]);
});
