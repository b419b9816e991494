// @module-tag full
// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { dropPartitions } from '../../src/jobs/time-partitions.ts';
import { createPool, isLockTimeout, type OwnPool } from '../../src/postgres/pool.ts';
import { receiptPartitions } from '../../src/receipts/receipts.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { badTag, newTag } from '../support/new-records.ts';
import { addOldWeek, type OldWeek } from '../support/old-week.ts';
import { countDeadlocks } from '../support/query-database.ts';

/** Tests dropping old weeks of receipts while other sessions read and write the remaining weeks. */

let test: TestApp;
let key: string;
let organisationId: string;
/** A pool that uses the service's login. */
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  ({ key, organisationId } = await test.organisation('acme'));
  serving = createPool(
    readConfig({
      DATABASE_URL: servingUrl(test.pool.options.connectionString as string),
      DATABASE_CONNECTIONS_MAX: '4',
    }),
    () => {},
  );
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

const headers = () => ({ authorization: `Bearer ${key}` });
const get = (url: string) => test.app.inject({ url, headers: headers() });

/** Returns the tables of old weeks, whether or not they are attached. */
async function oldTables({ name }: OldWeek): Promise<string[]> {
  const { rows } = await test.pool.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relname ~ $1 order by 1`,
    [`${name}$`],
  );
  return rows.map(({ name }) => name);
}

async function detachAll(): Promise<void> {
  const detach = () => serving.query('select detach_weekly_partition(30) as detached');
  while ((await detach()).rows[0].detached);
}

/** Drops old weeks, and retries as maintenance does if another session holds a lock for too long. */
async function dropUntilDone(pool: OwnPool, daysKept: number): Promise<void> {
  for (let isDone = false; !isDone; )
    isDone = await dropPartitions(pool, receiptPartitions, daysKept).then(
      () => true,
      (error: unknown) => {
        if (!isLockTimeout(error)) throw error;
        return false;
      },
    );
}

describe('an old week', () => {
  let week: OldWeek;
  beforeEach(async () => {
    week = await addOldWeek(test.pool, organisationId, 8);
  });

  const expectGone = async () => {
    expect(await oldTables(week)).toEqual([]);
    expect((await get(`/v1/requests/${week.requestId}`)).statusCode).toBe(404);
  };

  it('is dropped, with its receipts and answers', async () => {
    expect((await get(`/v1/requests/${week.requestId}`)).statusCode).toBe(200);
    await dropPartitions(serving, receiptPartitions, 60);
    expect((await get(`/v1/requests/${week.requestId}`)).statusCode).toBe(200);
    await dropPartitions(serving, receiptPartitions, 30);
    await expectGone();
  });

  it('is dropped once if two processes drop it at the same time', async () => {
    await Promise.all([dropUntilDone(serving, 30), dropUntilDone(test.pool, 30), dropUntilDone(serving, 30)]);
    await dropPartitions(serving, receiptPartitions, 30);
    await expectGone();
  });

  it('is finished by the next run if a process ends after detaching', async () => {
    await detachAll();
    expect(await oldTables(week)).toEqual([
      `to_drop_receipt_batches_${week.name}`,
      `to_drop_receipts_${week.name}`,
    ]);
    await dropPartitions(serving, receiptPartitions, 30);
    await expectGone();
    await dropPartitions(serving, receiptPartitions, 30);
    await expectGone();
  });

  it('is found completely or not at all while its tables are dropped one after the other', async () => {
    const found: number[] = [];
    for (let detached = true; detached; ) {
      found.push((await get(`/v1/requests/${week.requestId}`)).statusCode);
      ({ detached } = (await serving.query('select detach_weekly_partition(30) as detached')).rows[0]);
    }
    expect(found).toEqual([200, 404, 404]);
    await dropPartitions(serving, receiptPartitions, 30);
  });

  it('is left alone if somebody removed it by hand', async () => {
    await test.pool.query(`alter table receipts detach partition receipts_${week.name}`);
    await test.pool.query(`create table to_drop_mine_${week.name} ()`);
    await dropPartitions(serving, receiptPartitions, 30);
    expect(await oldTables(week)).toEqual([`receipts_${week.name}`, `to_drop_mine_${week.name}`]);
    await test.pool.query(`drop table receipts_${week.name}, to_drop_mine_${week.name}`);
  });
});

it('a receipt whose answers are gone is not found', async () => {
  const week = await addOldWeek(test.pool, organisationId, 8);
  await test.pool.query(`drop table receipt_batches_${week.name}`);
  expect((await get(`/v1/requests/${week.requestId}`)).statusCode).toBe(404);
  await dropPartitions(serving, receiptPartitions, 30);
});

it.each(['shops', 'rejections', 'to_drop_shops', 'to_drop_receipts_2026_01_05; drop table shops'])(
  'the serving role cannot drop %s',
  async (name) => {
    await expect(serving.query('select drop_detached_partition($1)', [name])).rejects.toThrow(
      /not a detached week/,
    );
  },
);

it('queries over all weeks and uploads continue while weeks are dropped: no error and no deadlock', async () => {
  const busy = await createTestApp();
  const { key: busyKey, organisationId: busyId } = await busy.organisation('busy');
  const authorization = `Bearer ${busyKey}`;
  const weeks: OldWeek[] = [];
  for (let weeksAgo = 3; weeksAgo < 23; weeksAgo += 1)
    weeks.push(await addOldWeek(busy.pool, busyId, weeksAgo));
  let done = false;
  const answered = new Map<string, number>();
  const repeat = async (request: () => { url: string; payload?: object; headers?: object }) => {
    while (!done) {
      const { url, payload, headers: more } = request();
      const answer = await busy.app.inject({
        method: payload ? 'POST' : 'GET',
        url,
        headers: { authorization, ...more },
        ...(payload && { payload }),
      });
      const what = `${payload ? 'POST' : 'GET'} ${url.split('?')[0]?.replace(/[\da-f-]{36}/, 'id')} ${answer.statusCode}`;
      answered.set(what, (answered.get(what) ?? 0) + 1);
      if (url.startsWith('/v1/requests/') && answer.statusCode === 200)
        expect(answer.json().batches).toHaveLength(1);
    }
  };
  const upload = () => ({ url: '/v1/data/tags', payload: { records: [newTag(), badTag()] } });
  const load = [
    repeat(() => ({ url: '/v1/requests?limit=100' })),
    repeat(() => ({ url: '/v1/rejections?limit=100' })),
    repeat(() => ({ url: '/v1/rejections/summary' })),
    repeat(() => ({ url: `/v1/requests/${weeks[Math.floor(Math.random() * weeks.length)]?.requestId}` })),
    repeat(() => ({ url: '/v1/data' })),
    repeat(upload),
    repeat(() => ({ ...upload(), headers: { 'idempotency-key': randomUUID() } })),
  ];
  const isAnswered = (what: string) => expect.poll(() => answered.has(what)).toBe(true);
  try {
    await isAnswered('GET /v1/requests/id 200');
    // Drop the oldest weeks first, one week at a time.
    for (let weeksKept = 22; weeksKept >= 2; weeksKept -= 1) {
      await dropUntilDone(busy.pool, 7 * weeksKept);
      await sleep(50);
    }
    await isAnswered('GET /v1/requests/id 404');
  } finally {
    done = true;
    await Promise.all(load);
  }
  const remaining = await busy.pool.query('select from pg_class where relname ~ $1', [
    `(${weeks.map(({ name }) => name).join('|')})$`,
  ]);
  expect(remaining.rows).toEqual([]);
  // PostgreSQL has all of a session's statistics once its connection is closed.
  await busy.close();
  expect(await countDeadlocks(busy.databaseUrl)).toBe(0);
  expect([...answered.keys()].toSorted()).toEqual([
    'GET /v1/data 200',
    'GET /v1/rejections 200',
    'GET /v1/rejections/summary 200',
    'GET /v1/requests 200',
    'GET /v1/requests/id 200',
    'GET /v1/requests/id 404',
    'POST /v1/data/tags 207',
  ]);
});
