// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { indexPartitions } from '../../src/interactions/interaction-partitions.ts';
import { findInteraction } from '../../src/interactions/interaction-rows.ts';
import { listPage } from '../../src/interactions/list-interactions.ts';
import { Round } from '../../src/jobs/round.ts';
import { limits } from '../../src/limits.ts';
import { choresOf } from '../../src/maintenance/chores.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import type { Scalar } from '../../src/registry/fields.ts';
import { readDateTime } from '../../src/registry/times.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { expectInTime } from '../support/in-time.ts';

let test: TestApp;
const doChores = async () => {
  const config = {
    ...{ receiptsKeptDays: 30, changesKeptDays: 7, deletedOrganisationsKeptDays: 30 },
    ...{ databaseTimeoutMs: 30_000 },
  };
  for (const chore of choresOf(test.pool, config, new Suppressions([]))) await chore.run();
};
let organisationId: string;
const dayMs = 86_400_000;
/** The day on which the database was created, which may have been yesterday. */
let today: number;
const [student, item, recommendation] = [randomUUID(), randomUUID(), randomUUID()];

interface Stored extends Record<string, unknown> {
  readonly interaction_id: string;
}
let stored: Stored[];

beforeAll(async () => {
  test = await createTestApp();
  ({ organisationId } = await test.organisation('acme'));
  const [oldest = ''] = await partitions();
  today = Date.parse(oldest.slice('interactions_'.length).replaceAll('_', '-')) + 2 * dayMs;
  // Create daily partitions for past days, and a monthly partition like those that older versions created.
  for (const day of [3, 4, 5])
    await attach(`interactions_day_${day}`, today - day * dayMs, today - (day - 1) * dayMs);
  await attach('interactions_month', today - 35 * dayMs, today - 5 * dayMs);
  await test.pool.query(
    `insert into interactions (organisation_id, interaction_id, interaction_type, user_id, student_id, item_type, item_id,
       event_timestamp, event_time, source, recommendation_id)
     select $1, (left(uuid_floor(now() - n * interval '30 seconds')::text, 14) || '7' || right(gen_random_uuid()::text, 21))::uuid,
       (array['FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE'])[1 + n % 4], 'user-' || n % 500,
       case when n % 100 = 7 then $2::uuid when n % 3 > 0 then gen_random_uuid() end,
       (array['TAG', 'OFFER', 'SHOP', 'KEYWORD'])[1 + n % 4], case when n % 10 = 7 then $3::uuid else gen_random_uuid() end,
       '1', now(), case when n % 50 = 0 then 'SERVICE' end, case when n % 5000 = 7 then $4::uuid end
     from generate_series(1, 20000) as n`,
    [organisationId, student, item, recommendation],
  );
  await test.pool.query('analyze interactions');
  const { rows } = await test.pool.query<Stored>('select * from interactions order by interaction_id desc');
  stored = rows;
});
afterAll(() => test.close());

/** Returns the daily partitions that maintenance creates. */
async function partitions(): Promise<string[]> {
  const { rows } = await test.pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits
     where inhparent = 'interactions'::regclass and inhrelid::regclass::text like 'interactions_20%' order by 1`,
  );
  return rows.map(({ name }) => name);
}

async function attach(name: string, fromMs: number, toMs: number): Promise<void> {
  const [first, end] = [uuidFloor(fromMs), uuidFloor(toMs)];
  await test.pool.query(`create table ${name} (like interactions including indexes)`);
  await test.pool.query(
    `alter table interactions attach partition ${name} for values from ('${first}') to ('${end}')`,
  );
  await test.pool.query('insert into interaction_partitions values ($1, $2, $3)', [name, first, end]);
}

const dayName = (ahead: number) =>
  `interactions_${new Date(today + ahead * dayMs).toISOString().slice(0, 10).replaceAll('-', '_')}`;

const filters: Record<string, Scalar>[] = [
  {},
  { student_id: student },
  { user_id: 'user-7' },
  { item_id: item },
  { recommendation_id: recommendation },
  { recommendation_id: randomUUID() },
  { interaction_type: 'SHARE', source: 'SERVICE' },
  { interaction_type: 'PAGE_VIEW', source: 'SERVICE' },
  { item_id: item, student_id: student },
  { item_id: item, user_id: 'user-7', interaction_type: 'DISCOUNT_CODE' },
  { item_id: item, interaction_type: 'SHARE' },
];

const expectedOf = (filter: Record<string, Scalar>) =>
  stored
    .filter((one) => Object.entries(filter).every(([field, value]) => one[field] === value))
    .map(({ interaction_id }) => interaction_id);

/** Returns the ids on each page, from the first page to the last. */
async function pagesOf(query: Record<string, Scalar>, pool: Pool = test.pool): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await listPage(pool, organisationId, { ...query, ...(cursor && { cursor }) });
    pages.push(page.interactions.map(({ interaction_id }) => interaction_id));
    cursor = page.next_cursor;
  }
  return pages;
}

/** Returns a pool that sends all statements, including transactions, through `query`. */
function poolWith(query: (asked: string | { text: string }, values: unknown[]) => Promise<unknown>): Pool {
  const client = {
    query: async (asked: string, values: unknown[]) =>
      /^(begin|set local|commit)/.test(asked) ? { command: 'COMMIT' } : query(asked, values),
    connection: { stream: { cork: () => {}, uncork: () => {} } },
    release: () => {},
  };
  return { query, connect: async () => client } as never;
}

/** Returns the plans of the statements that a list request runs. */
async function plansOf(query: Record<string, Scalar>): Promise<string[]> {
  const plans: string[] = [];
  const explaining = poolWith(async (asked, values) => {
    if (typeof asked === 'string') {
      const client = await test.pool.connect();
      // List requests use these settings too. Without them, PostgreSQL would fully scan empty partitions, which is fine.
      await client.query('begin');
      await client.query('set local enable_seqscan = off; set local enable_sort = off');
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${asked}`, values);
      client.release(true);
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    }
    return test.pool.query(asked as never, values as never);
  });
  // On a slow machine, a page may end early. The next page then continues.
  for (let { cursor } = query as { cursor?: Scalar | null }; cursor !== null; ) {
    const page = await listPage(explaining, organisationId, { ...query, ...(cursor && { cursor }) });
    cursor = page.next_cursor;
  }
  return plans;
}

describe('before a day is indexed', () => {
  it.each(filters)('a list finds its matches, and nothing else: %j', async (filter) => {
    expect((await pagesOf({ ...filter, limit: 1_000 })).flat()).toEqual(expectedOf(filter));
  });

  it('it scans by the primary key, a bounded number of rows at a time', async () => {
    const plans = await plansOf({ student_id: randomUUID() });
    // Two scans of 10,000 rows take two statements each.
    expect(plans.length).toBeGreaterThanOrEqual(4);
    for (const plan of plans) {
      expect(plan).not.toContain('Seq Scan');
      expect(plan).not.toContain('Sort');
    }
  });
});

it('a process that stops does not wait until a day is indexed', async () => {
  const holder = await test.pool.connect();
  await holder.query('begin');
  // This lock blocks the index build for two seconds, which is the build's lock timeout.
  for (const daysAgo of [1, 2]) await holder.query(`lock table ${dayName(-daysAgo)} in row exclusive mode`);
  const waits = async () => {
    const { rowCount } = await test.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rowCount !== 0;
  };
  /** Returns the error message of an index build that is cancelled as soon as it waits for the lock. */
  const stop = async () => {
    const stopping = new AbortController();
    let isOver = false;
    const building = indexPartitions(test.pool, new Round(60_000, stopping.signal)).catch(
      ({ message }: Error) => message,
    );
    void building.finally(() => (isOver = true));
    while (!isOver && !(await waits())) await sleep(10);
    stopping.abort();
    return building;
  };
  try {
    // On a busy machine, the cancellation may take two seconds, so one attempt that is fast enough is sufficient.
    await expect.poll(stop).toContain('canceling statement due to user request');
  } finally {
    await holder.query('rollback');
    holder.release();
  }
});

describe('when days are over', () => {
  beforeAll(async () => {
    await Promise.all([indexPartitions(test.pool), indexPartitions(test.pool)]);
  });

  it('their indexes are built, each once, and none of other days', async () => {
    const { rows } = await test.pool.query<{ name: string; is_over: boolean; indexes: number }>(
      `select p.name, end_id <= uuid_floor(now() - interval '1 hour') as is_over,
         (select count(*)::int from pg_indexes where tablename = p.name) as indexes
       from interaction_partitions p`,
    );
    expect(rows.filter(({ is_over }) => is_over).length).toBeGreaterThanOrEqual(5);
    for (const { is_over, indexes } of rows) expect(indexes).toBe(is_over ? 5 : 1);
  });

  it.each(filters)('a list finds the same: %j', async (filter) => {
    for (const limit of [1, 7, 1_000].filter((size) => expectedOf(filter).length / size < 100))
      expect((await pagesOf({ ...filter, limit })).flat()).toEqual(expectedOf(filter));
  });

  it.each([
    ['student_id', { student_id: student, item_id: item }],
    ['user_id', { user_id: 'user-7', item_id: item }],
    ['item_id', { item_id: item, item_type: 'SHOP' }],
    ['recommendation_id', { recommendation_id: recommendation, student_id: student }],
  ])('a list uses the index of %s: %j', async (field, query) => {
    const oldest = (await plansOf({ ...query, cursor: uuidFloor(today - 3 * dayMs) }))[0];
    // People who are being erased are looked up by organisation only, and customers by their id.
    const list = oldest?.replaceAll(/(?:erasure_ids|on customers)[\s\S]*?Index Cond: .*/g, '');
    for (const condition of list?.match(/Index Cond: .*/g) ?? ['none'])
      expect(condition).toContain(`(${field} = `);
    expect(oldest).not.toContain('Seq Scan');
  });
});

it('a list finds nothing twice, although more is received between its statements', async () => {
  const { organisationId: busy } = await test.organisation('busy');
  const receive = (count: number, ageMs: number) =>
    test.pool.query(
      `insert into interactions (organisation_id, interaction_id, interaction_type, item_type, item_id, event_timestamp, event_time)
       select $1, (left(uuid_floor(now() - ($3::int + n) * interval '1 ms')::text, 14) || '7' || right(gen_random_uuid()::text, 21))::uuid,
         case when n % 200 = 0 then 'SHARE' else 'PAGE_VIEW' end, 'SHOP', gen_random_uuid(), '1', now()
       from generate_series(1, $2) as n`,
      [busy, count, ageMs],
    );
  await receive(25_000, 60_000);
  const sent = await test.pool.query<{ end: string }>(
    `select uuid_floor(now() - interval '30 seconds') as end`,
  );
  const receiving = poolWith(async (asked, values) => {
    const answer = await test.pool.query(asked as never, values as never);
    if (typeof asked === 'string') await receive(1_000, 0);
    return answer;
  });
  const asked = {
    interaction_type: 'SHARE',
    limit: 1_000,
    to: readDateTime(new Date(Date.now() + dayMs).toISOString())!,
  };
  const ids: string[] = [];
  // On a slow machine, a page may end early. The next page then continues.
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await listPage(receiving, busy, { ...asked, ...(cursor && { cursor }) });
    ids.push(...page.interactions.map(({ interaction_id }) => interaction_id));
    cursor = page.next_cursor;
  }
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(ids.toSorted().reverse());
  // These are the 125 interactions that existed before.
  const { rows } = await test.pool.query<{ id: string }>(
    `select interaction_id as id from interactions where organisation_id = $1 and interaction_type = 'SHARE'
       and interaction_id < $2`,
    [busy, sent.rows[0]!.end],
  );
  expect(rows.length).toBe(125);
  expect(ids).toEqual(expect.arrayContaining(rows.map(({ id }) => id)));
});

it('a slow list ends with what it has found, and its cursor continues', async () => {
  const far = poolWith(async (asked, values) => {
    await sleep(400);
    return test.pool.query(asked as never, values as never);
  });
  await expectInTime(async () => {
    const started = performance.now();
    const first = await listPage(far, organisationId, { interaction_type: 'SHARE', source: 'SERVICE' });
    expect(first).toMatchObject({ interactions: [], next_cursor: expect.any(String) });
    return [{ what: 'the first page', ms: performance.now() - started, promisedMs: 3_000 }];
  });
  const pages = await pagesOf({ item_id: item, interaction_type: 'DISCOUNT_CODE', limit: 1_000 }, far);
  expect(pages.length).toBeGreaterThan(1);
  expect(pages.flat()).toEqual(expectedOf({ item_id: item, interaction_type: 'DISCOUNT_CODE' }));
});

it('a single interaction is looked up only in its own day, and a list in few days', async () => {
  const opened: number[] = [];
  const explaining = poolWith(async (asked, values) => {
    if (typeof asked !== 'string') return test.pool.query(asked);
    const { rows } = await test.pool.query<{ 'QUERY PLAN': string }>(`explain ${asked}`, values);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    opened.push(new Set(plan.match(/ on interactions_\w+/g)).size);
    // Partitions that were not opened during planning appear as "Subplans Removed".
    expect(plan).not.toContain('Removed');
    return { rows: [] };
  });
  await findInteraction(explaining, organisationId, uuidFloor(Date.now()));
  expect(opened).toEqual([1]);
  await listPage(explaining, organisationId, { item_id: item, cursor: uuidFloor(today - 3 * dayMs) });
  expect(opened.length).toBeGreaterThan(1);
  expect(Math.max(...opened)).toBeLessThanOrEqual(limits.interactionDaysPerLookMax);
});

it('partitions exist from two days ago to 35 ahead, and creating them again changes nothing', async () => {
  const days = (count: number) => Array.from({ length: count }, (_, at) => dayName(at - 2));
  expect(await partitions()).toEqual(days(38));
  await Promise.all([doChores(), doChores()]);
  // A new day may have started since the database was created.
  const upToDate = await partitions();
  expect([days(38), days(39)]).toContainEqual(upToDate);
  await Promise.all([doChores(), doChores()]);
  expect(await partitions()).toEqual(upToDate);
});

it('maintenance removes idempotency keys after a day, and no sooner', async () => {
  await test.pool.query(
    `insert into interaction_idempotency_keys (organisation_id, idempotency_key, body_sha256, interaction_id, claimed_at)
     select $1, 'key-' || n, '', gen_random_uuid(), now() - n * interval '5 hours' from generate_series(0, 9) as n`,
    [organisationId],
  );
  await doChores();
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

  it('get their own answers, across organisations, with existing and missing references mixed', async () => {
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
