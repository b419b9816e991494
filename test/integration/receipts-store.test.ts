import { afterAll, beforeAll, expect, it } from 'vitest';
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

it('a receipt is found by the primary keys of the one week that its id names', async () => {
  let plan: string[] = [];
  const explaining = {
    query: async ({ text, values }: { text: string; values: string[] }) => {
      const client = await test.pool.connect();
      // An empty partition is read whole, and rightly so; forbidding that shows which index there is.
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
  // On Citus the worker's plan stands below the coordinator's.
  const scans = plan.filter((line) => / Scan /.test(line) && !line.includes('Citus'));
  expect(scans).toHaveLength(1);
  for (const scan of scans) expect(scan).toMatch(/using receipt\w+_pkey|using receipt\w+_request_id/);
});
