// @module-tag full

import { afterAll, beforeAll, expect, inject, it, onTestFinished, vi } from 'vitest';
import { limits } from '../../src/limits.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests discarding many rejections: a call returns in time, reports whether any remain, and reads each rejection once. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

/** Creates an organisation whose rejections are spread evenly over several kinds. Each kind has one code. */
async function organisationWith(
  slug: string,
  rejections: number,
  kinds: number,
  { app, pool, organisation } = test,
) {
  const { key, organisationId } = await organisation(slug);
  await pool.query(
    `insert into rejection_kinds
     select $1, md5('kind ' || k)::uuid, 'tags', array['name'], array['required'], array['message ' || k], now(), $2::bigint / $3
     from generate_series(0, $3::integer - 1) k`,
    [organisationId, rejections, kinds],
  );
  await pool.query(
    `insert into rejections (organisation_id, rejection_id, type, kind_id, request_id, index, record)
     select $1, uuid_floor(now() - interval '20 days' + n * interval '1 second'), 'tags',
       md5('kind ' || n % $3)::uuid, md5('request')::uuid, n, '{}'
     from generate_series(0, $2::integer - 1) n`,
    [organisationId, rejections, kinds],
  );
  return {
    async discard(filter: string): Promise<{ discarded: number; has_more: boolean }> {
      const headers = { authorization: `Bearer ${key}` };
      const answer = await app.inject({ method: 'DELETE', url: `/v1/rejections?${filter}`, headers });
      expect(answer.statusCode, answer.body).toBe(200);
      return answer.json();
    },
    async left(): Promise<number> {
      const { rows } = await pool.query('select from rejections where organisation_id = $1', [
        organisationId,
      ]);
      return rows.length;
    },
  };
}

/** Makes every query appear to take this long on the process's clock. */
function slowDown(perStatementMs: number): void {
  vi.useFakeTimers({ toFake: ['performance'] });
  const advance = () => vi.advanceTimersByTime(perStatementMs);
  test.pool.on('acquire', advance);
  onTestFinished(() => {
    test.pool.off('acquire', advance);
    vi.useRealTimers();
  });
}

it.each([
  ['all', ''],
  ['type', 'type=tags'],
  ['code', 'code=required'],
])('a call that runs out of time reports it, and the next one continues: by %s', async (slug, filter) => {
  const count = 2.5 * limits.rejectionsPerDiscard;
  const acme = await organisationWith(slug, count, 5);
  slowDown(limits.discardRejectionsMs);
  let discarded = 0;
  for (let more = true; more; ) {
    const answer = await acme.discard(filter);
    discarded += answer.discarded;
    expect(await acme.left()).toBe(count - discarded);
    if (answer.has_more) expect(answer.discarded).toBeGreaterThan(0);
    if (discarded < count) expect(answer.has_more).toBe(true);
    expect(answer.discarded).toBeLessThanOrEqual(limits.rejectionsPerDiscard);
    more = answer.has_more;
  }
  expect(discarded).toBe(count);
});

it('an organisation that was added after the last analyze is discarded as fast', async () => {
  const own = await createTestApp();
  await own.pool.query('alter table rejections set (autovacuum_enabled = off)');
  await organisationWith('gone', limits.rejectionsPerDiscard, 1, own);
  await own.pool.query('delete from rejections');
  await own.pool.query('analyze rejections');
  const grown = await organisationWith('grown', 3 * limits.rejectionsPerDiscard, 1, own);
  // PostgreSQL expects one row here. A subquery planned for one row must not run again for each of 10,000 rows.
  expect(await grown.discard('')).toEqual({ discarded: 3 * limits.rejectionsPerDiscard, has_more: false });
  await own.close();
});

it('a call that has time for all of them reports that there are no more', async () => {
  const acme = await organisationWith('quick', 2 * limits.rejectionsPerDiscard + 5, 3);
  expect(await acme.discard('field=name')).toEqual({
    discarded: 2 * limits.rejectionsPerDiscard + 5,
    has_more: false,
  });
  expect(await acme.discard('')).toEqual({ discarded: 0, has_more: false });
});

// On Citus, the rows are read and counted on the workers.
it.skipIf(inject('citus') !== null)(
  'each rejection is looked up once, however many kinds match',
  async () => {
    const own = await createTestApp();
    const count = 6 * limits.rejectionsPerDiscard;
    const acme = await organisationWith('acme', count, 1_000, own);
    let discarded = 0;
    // On a slow machine, a call may run out of time, and the next one continues.
    for (let more = true; more; ) {
      const answer = await acme.discard('code=required');
      discarded += answer.discarded;
      more = answer.has_more;
    }
    expect(discarded).toBe(count);
    await own.close();
    // A session reports its reads only when it ends.
    const sessions = () =>
      queryDatabase(
        own.databaseUrl,
        'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      );
    await expect.poll(async () => (await sessions()).length).toBe(0);
    const [index] = await queryDatabase<{ read: string }>(
      own.databaseUrl,
      `select idx_tup_read as read from pg_stat_user_indexes where indexrelname = 'rejections_by_kind'`,
    );
    expect(Number(index?.read)).toBeGreaterThanOrEqual(count);
    expect(Number(index?.read)).toBeLessThan(1.5 * count);
  },
);
