import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keepHouse } from '../../src/interactions/housekeeping.ts';
import { listPage } from '../../src/interactions/list-interactions.ts';
import type { Scalar } from '../../src/registry/fields.ts';
import { readDateTime } from '../../src/registry/times.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

let test: TestApp;
let organisationId: string;
beforeAll(async () => {
  test = await createTestApp();
  ({ organisationId } = await test.organisation('acme'));
  await test.pool.query(
    `insert into interactions (organisation_id, interaction_id, interaction_type, user_id, student_id, item_type, item_id,
       event_timestamp, event_time, source, recommendation_id)
     select $1, (left(uuid_floor(now() - n * interval '1 minute')::text, 14) || '7' || right(gen_random_uuid()::text, 21))::uuid,
       (array['FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE'])[1 + n % 4], 'user-' || n % 500, gen_random_uuid(),
       (array['TAG', 'OFFER', 'SHOP', 'KEYWORD'])[1 + n % 4], gen_random_uuid(), '1', now(),
       case when n % 50 = 0 then 'SERVICE' end, case when n % 50 = 0 then gen_random_uuid() end
     from generate_series(1, 20000) as n`,
    [organisationId],
  );
  await test.pool.query('analyze interactions');
});
afterAll(() => test.close());

/** The conditions by which PostgreSQL would enter its indexes for the very statement that a list makes. */
async function indexConditions(query: Record<string, Scalar>): Promise<string[]> {
  let plan: string[] = [];
  const explaining = {
    query: async (text: string, values: unknown[]) => {
      const client = await test.pool.connect();
      // Empty partitions are read whole, and rightly so; forbidding that shows which index there is.
      await client.query('set enable_seqscan = off');
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
      client.release(true);
      plan = rows.map((row) => row['QUERY PLAN']);
      return { rows: [] };
    },
  };
  await listPage(explaining as never, organisationId, query);
  expect(plan.join('\n')).not.toContain('Seq Scan');
  return plan.filter((line) => line.includes('Index Cond'));
}

describe('each way of asking is answered by an index', () => {
  it.each([
    ['organisation_id', {}],
    ['student_id', { student_id: randomUUID() }],
    ['user_id', { user_id: 'user-7' }],
    ['item_id', { item_id: randomUUID() }],
    ['item_id', { item_id: randomUUID(), item_type: 'SHOP' }],
    ['recommendation_id', { recommendation_id: randomUUID() }],
    ['interaction_type', { interaction_type: 'SHARE' }],
    ['item_type', { item_type: 'SHOP' }],
    ['source', { source: 'SERVICE' }],
    ['interaction_id', { from: readDateTime('2026-01-01T00:00Z'), to: readDateTime('2126-01-01T00:00Z') }],
    ['interaction_id', { interaction_type: 'SHARE', cursor: uuidFloor(Date.now()) }],
  ])('that of %s: %j', async (column, query) => {
    const conditions = await indexConditions(query as Record<string, Scalar>);
    expect(conditions.length).toBeGreaterThan(0);
    for (const condition of conditions) expect(condition).toContain(`${column} `);
  });
});

it('a single interaction is looked for in its own month only', async () => {
  const { rows } = await test.pool.query<{ 'QUERY PLAN': string }>(
    `explain select from interactions where organisation_id = $1 and interaction_id = '${uuidFloor(Date.now())}'`,
    [organisationId],
  );
  expect(rows.filter((row) => row['QUERY PLAN'].includes('interactions_20'))).toHaveLength(1);
});

it('partitions are there for last month and six ahead, and making them again changes nothing', async () => {
  const partitions = async () => {
    const { rows } = await test.pool.query<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'interactions'::regclass order by 1`,
    );
    return rows.map(({ name }) => name);
  };
  const before = await partitions();
  const month = (ahead: number) => {
    const now = new Date();
    const date = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead, 1));
    return `interactions_${date.getUTCFullYear()}_${String(date.getUTCMonth() + 1).padStart(2, '0')}`;
  };
  expect(before).toEqual([-1, 0, 1, 2, 3, 4, 5, 6].map(month));
  await Promise.all([keepHouse(test.pool), keepHouse(test.pool)]);
  expect(await partitions()).toEqual(before);
});

it('housekeeping forgets idempotency keys after their day, and no sooner', async () => {
  await test.pool.query(
    `insert into interaction_idempotency_keys (organisation_id, idempotency_key, body_sha256, interaction_id, claimed_at)
     select $1, 'key-' || n, '', gen_random_uuid(), now() - n * interval '5 hours' from generate_series(0, 9) as n`,
    [organisationId],
  );
  await keepHouse(test.pool);
  const { rows } = await test.pool.query<{ key: string }>(
    'select idempotency_key as key from interaction_idempotency_keys order by 1',
  );
  expect(rows.map(({ key }) => key)).toEqual(['key-0', 'key-1', 'key-2', 'key-3', 'key-4']);
});

describe('interactions that arrive together', () => {
  const item_id = randomUUID();
  const record = (key: string, body: object) =>
    test.app.inject({
      method: 'POST',
      url: '/user-interactions',
      headers: { authorization: `Bearer ${key}` },
      payload: { interaction_type: 'SHARE', item_type: 'TAG', item_id, event_timestamp: 1, ...body },
    });

  it('are each answered for themselves, across organisations, good and dangling ones mixed', async () => {
    const organisations = await Promise.all(['first', 'second'].map((slug) => test.organisation(slug)));
    for (const { organisationId: owner } of organisations) {
      await test.pool.query(`insert into tags values ($1, $2, 'vegan', null, null, false)`, [owner, item_id]);
    }
    const answers = await Promise.all(
      Array.from({ length: 1_200 }, (_, n) => {
        const { key } = organisations[n % 2] as { key: string };
        return record(key, n % 10 === 0 ? { item_id: randomUUID() } : { user_id: `user-${n}` });
      }),
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(
      answers.map((_, n) => (n % 10 === 0 ? 400 : 201)),
    );
    for (const [at, { organisationId: owner }] of organisations.entries()) {
      const { rows } = await test.pool.query<{ user_id: string }>(
        'select user_id from interactions where organisation_id = $1',
        [owner],
      );
      const sent = answers.map((_, n) => n).filter((n) => n % 2 === at && n % 10 !== 0);
      expect(rows.map(({ user_id }) => user_id).toSorted()).toEqual(sent.map((n) => `user-${n}`).toSorted());
    }
  });
});
