import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { keepStep, ReportKeeper } from '../../src/reports/keep-report.ts';
import type { TestApp } from './app.ts';

export const keeperConfig = { databaseTimeoutMs: 30_000 };

const student_id = randomUUID();
const shop_id = randomUUID();
export const offer_id = randomUUID();
export const recommendation_id = randomUUID();
const region = 'GB';

/** Creates an organisation whose report is enabled, with a shop, an offer and a student. Returns functions to use it. */
export async function newReportOrganisation(test: TestApp, slug: string) {
  const { organisationId, key } = await test.organisation(slug);
  const headers = { authorization: `Bearer ${key}` };
  const upload = async (type: string, record: object) => {
    const payload = { records: [record] };
    const answer = await test.app.inject({ method: 'POST', url: `/v1/data/${type}`, headers, payload });
    expect(answer.statusCode, answer.body).toBe(200);
  };
  await upload('shops', { shop_id, name: 'Bakery', region });
  await upload('customers', { customer_id: student_id, user_id: randomUUID(), region });
  await upload('offers', { offer_id, shop_id, name: 'Tenth', type: 'percentage', value: 10, region });
  const askReport = (query = 'from=2026-03-01&to=2026-04-01') =>
    test.app.inject({ url: `/v1/reports/recommendations?${query}`, headers });
  return {
    organisationId,
    upload,
    async touch(event_timestamp: string, more: object = {}) {
      const payload = { interaction_type: 'PAGE_VIEW', student_id, item_type: 'OFFER', item_id: offer_id };
      const sent = { ...payload, source: 'SERVICE', recommendation_id, event_timestamp, ...more };
      const answer = await test.app.inject({
        method: 'POST',
        url: '/user-interactions',
        headers,
        payload: sent,
      });
      expect(answer.statusCode, answer.body).toBe(201);
    },
    async touches(count: number, event_timestamp: string) {
      const one = { interaction_type: 'PAGE_VIEW', student_id, item_type: 'OFFER', item_id: offer_id };
      const record = { ...one, source: 'SERVICE', recommendation_id, event_timestamp };
      const answer = await test.app.inject({
        method: 'POST',
        url: '/user-interactions/batch',
        headers,
        payload: { records: Array.from({ length: count }, () => record) },
      });
      expect(answer.json().batches[0].data.counts, answer.body.slice(0, 500)).toMatchObject({
        created: count,
      });
    },
    askReport,
    async report(query?: string) {
      const answer = await askReport(query);
      expect(answer.statusCode, answer.body).toBe(200);
      return answer.json();
    },
  };
}

export const sale = (more: object = {}) => ({
  transaction_id: '7a000000-0000-4000-8000-000000000001',
  shop_id,
  offer_id,
  student_id,
  region,
  amount: 10,
  savings: 2.5,
  created: '2026-03-10T12:00:00Z',
  ...more,
});

/** Runs the ten-second maintenance until nothing is left to count. */
export async function countReport(test: TestApp, organisationId: string): Promise<void> {
  await numberForAll(test.pool);
  await new ReportKeeper(test.pool, keeperConfig).run();
  while (await keepStep(test.pool, organisationId));
}

/** Drops all of an organisation's changes, as maintenance drops days that are too old. */
export async function forgetChanges(test: TestApp, organisationId: string): Promise<void> {
  await numberForAll(test.pool);
  await test.pool.query('delete from changes where organisation_id = $1', [organisationId]);
  await test.pool.query(
    'update change_counters set forgotten_number = last_number where organisation_id = $1',
    [organisationId],
  );
}
