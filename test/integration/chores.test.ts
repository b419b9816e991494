// @module-tag postgres-15

import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { jobKind } from '../../src/jobs/job.ts';
import { jobLimits } from '../../src/jobs/limits.ts';
import { Round } from '../../src/jobs/round.ts';
import { runJobs, takeStep } from '../../src/jobs/run-jobs.ts';
import { limits } from '../../src/limits.ts';
import { choresOf, counting } from '../../src/maintenance/chores.ts';
import { startMaintenance } from '../../src/maintenance/maintenance.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { purgeRejections } from '../../src/retention/purge-rejections.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { purgeAll } from '../support/jobs.ts';
import { many } from '../support/new-records.ts';

let test: TestApp;
let key: string;
beforeAll(async () => {
  test = await createTestApp();
  ({ key } = await test.organisation('acme'));
});
afterAll(() => test.close());

const dayMs = 86_400_000;

async function doChores(daysKept = 30): Promise<void> {
  for (const chore of choresOf(test.pool, { ...config, receiptsKeptDays: daysKept }, suppressions))
    await chore.run();
}

const config = {
  receiptsKeptDays: 30,
  changesKeptDays: 7,
  deletedOrganisationsKeptDays: 30,
  databaseTimeoutMs: 30_000,
};
const suppressions = new Suppressions([]);
const rollUp = () => choresOf(test.pool, config, suppressions)[0]!.run();
const headers = () => ({ authorization: `Bearer ${key}` });

async function upload(type: string, records: unknown[]) {
  const answer = await test.app.inject({
    method: 'POST',
    url: `/v1/data/${type}`,
    headers: headers(),
    payload: { records },
  });
  return answer.json();
}

async function overview() {
  const answer = await test.app.inject({ url: '/v1/data', headers: headers() });
  return answer.json();
}

async function rowsOf(query: string): Promise<Record<string, unknown>[]> {
  return (await test.pool.query(query)).rows;
}

const tag = (updated?: string) => ({ tag_id: randomUUID(), name: 'x', ...(updated && { updated }) });

it('differences are rolled up, even twice at once, and the overview is the same before and after', async () => {
  await upload('tags', [tag('2026-01-02T03:04:05.000006Z'), tag()]);
  await upload('tags', [tag('2025-01-01T00:00:00Z'), { tag_id: 'no' }]);
  const before = await overview();
  expect(before.types).toMatchObject([
    { type: 'tags', records: 3, newest_updated: '2026-01-02T03:04:05.000006Z', open_rejections: 1 },
  ]);
  expect(await rowsOf('select from record_count_changes')).toHaveLength(2);
  await Promise.all([rollUp(), rollUp()]);
  expect(await rowsOf('select from record_count_changes')).toEqual([]);
  expect(await rowsOf('select from rejection_count_changes')).toEqual([]);
  expect(await rowsOf('select from record_counts')).toHaveLength(1);
  expect(await overview()).toEqual(before);
  await upload('tags', [tag()]);
  await rollUp();
  expect((await overview()).types).toMatchObject([{ records: 4, open_rejections: 1 }]);
});

it('partitions exist for last week and four weeks ahead, and creating them again changes nothing', async () => {
  const partitions = () =>
    rowsOf(`select inhparent::regclass::text as parent, count(*)::int as partitions from pg_inherits
            where inhparent in ('receipts'::regclass, 'receipt_batches'::regclass) group by 1 order by 1`);
  const expected = (count: number) => [
    { parent: 'receipt_batches', partitions: count },
    { parent: 'receipts', partitions: count },
  ];
  expect(await partitions()).toEqual(expected(6));
  await doChores();
  // A new week may have started since the database was created.
  const upToDate = await partitions();
  expect([expected(6), expected(7)]).toContainEqual(upToDate);
  await doChores();
  expect(await partitions()).toEqual(upToDate);
});

it('rejections older than the days to keep are removed and no longer counted, and their kind too if nothing fails for it', async () => {
  const shops = async () => (await overview()).types.find((one: { type: string }) => one.type === 'shops');
  await upload('shops', [
    { shop_id: randomUUID(), name: 7, region: 'GB' },
    { shop_id: 'no', name: 'x', region: 'GB' },
  ]);
  expect(await shops()).toMatchObject({ open_rejections: 2 });
  await test.pool.query(
    `update rejections set rejection_id = $1 where type = 'shops' and record_id is not null`,
    [uuidFloor(Date.now() - 31 * dayMs)],
  );
  await doChores(32);
  expect(await shops()).toMatchObject({ open_rejections: 2 });
  await doChores(30);
  expect(await shops()).toMatchObject({ open_rejections: 1 });
  const kinds = () => rowsOf(`select rejections from rejection_kinds where type = 'shops' order by 1`);
  await rollUp();
  expect(await kinds()).toEqual([{ rejections: '0' }, { rejections: '1' }]);
  await test.pool.query(`update rejection_kinds set used_at = now() - interval '8 days'`);
  await doChores();
  expect(await kinds()).toEqual([{ rejections: '1' }]);
});

it('old rejections are removed in parts, and the next process finishes it', async () => {
  await test.pool.query(
    `insert into rejections (organisation_id, rejection_id, type, kind_id, request_id, index)
     select organisation_id, overlay($1 placing lpad(n::text, 12, '0') from 25)::uuid, 'tags', gen_random_uuid(), $2::uuid, n
     from organisations cross join generate_series(1, 7000) n`,
    [uuidFloor(Date.now() - 40 * dayMs), uuidFloor(0)],
  );
  const old = () => rowsOf(`select from rejections where request_id = '${uuidFloor(0)}'`);
  const { organisation_id } = (await rowsOf('select organisation_id from organisations'))[0]!;
  await takeStep(test.pool, purgeRejections(30), organisation_id as string);
  expect(await old()).toHaveLength(2_000);
  await purgeAll(test.pool, 30);
  expect(await old()).toHaveLength(0);
});

it('work of more organisations than fit into a round continues at once', async () => {
  const organisationIds = many(jobLimits.jobsPerRound + 1, () => randomUUID());
  const done: string[] = [];
  const kind = jobKind<'only'>({
    name: 'test',
    first: 'only',
    find: async () => organisationIds.filter((id) => !done.includes(id)),
    steps: {
      only: {
        async work(_, { organisationId }) {
          done.push(organisationId);
          return { next: 'ended' };
        },
      },
    },
  });
  const round = () => runJobs(test.pool, [kind], new Round(50_000));
  while ((await round()) === 'more');
  expect(done.toSorted()).toEqual(organisationIds.toSorted());
});

it('a key of an upload expires after a day', async () => {
  const sent = {
    method: 'POST' as const,
    url: '/v1/data/tags',
    headers: { ...headers(), 'idempotency-key': 'k' },
  };
  const first = (await test.app.inject({ ...sent, payload: { records: [tag()] } })).json();
  expect((await test.app.inject({ ...sent, payload: { records: [tag()] } })).statusCode).toBe(422);
  await test.pool.query(`update upload_idempotency_keys set claimed_at = now() - interval '25 hours'`);
  const second = await test.app.inject({ ...sent, payload: { records: [tag()] } });
  expect(second.statusCode).toBe(200);
  expect(second.json().request_id).not.toBe(first.request_id);
  await test.pool.query(`update upload_idempotency_keys set claimed_at = now() - interval '25 hours'`);
  await doChores();
  expect(await rowsOf('select from upload_idempotency_keys')).toEqual([]);
});

it('no loop waits for the connection of another', () => {
  const loops = new Set(choresOf(test.pool, config, suppressions).map(({ loop }) => loop));
  expect(limits.choreConnectionsMax).toBe(loops.size);
});

it('quotas and settling do not wait for slow numbering, keys or partitions', async () => {
  const slow = await createTestApp();
  const { organisationId } = await slow.organisation('slow');
  await slow.pool.query(
    `insert into changes (organisation_id, change_id, type, size, ids) values ($1, $2, 'tags', 1, array[$1::uuid])`,
    [organisationId, randomUUIDv7()],
  );
  const holder = await slow.pool.connect();
  await holder.query(
    `begin; set local idle_in_transaction_session_timeout = 0; lock table change_counters in exclusive mode;
     lock table upload_idempotency_keys; select pg_advisory_xact_lock(1)`,
  );
  for (const partitions of [
    'ensure_weekly_partitions(weeks_ahead integer) returns void',
    'index_interaction_partition() returns boolean',
  ])
    await slow.pool.query(
      `create or replace function ${partitions} language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(1); end $$`,
    );
  const pool = createPool(
    {
      ...readConfig({ DATABASE_URL: slow.databaseUrl }),
      databaseConnectionsMax: limits.choreConnectionsMax,
      databaseTimeoutMs: 110_000,
    },
    () => {},
  );
  const ended: string[] = [];
  const maintenance = startMaintenance(
    slow.pool,
    [...choresOf(pool, config, suppressions), ...counting(pool, config, () => {})],
    { elected() {}, held() {}, done: (chore) => ended.push(chore), failed: (chore) => ended.push(chore) },
  );
  onTestFinished(async () => {
    await holder.query('rollback');
    holder.release();
    await maintenance.stop();
    await pool.end();
    await slow.close();
  });
  const runsOf = (name: string) => ended.filter((chore) => chore === name).length;
  await expect.poll(() => runsOf('settle rejections')).toBeGreaterThan(2);
  await expect
    .poll(() => ended)
    .toEqual(expect.arrayContaining(['measure quotas', 'count quotas', 'erase people']));
  for (const name of ['number changes', 'forget idempotency keys', 'make partitions'])
    expect(ended).not.toContain(name);
});

const spread = 'from organisations cross join generate_series(1, 6000) n';
it.each([
  {
    name: 'forget idempotency keys',
    add: `insert into upload_idempotency_keys (organisation_id, idempotency_key, type, body_sha256, request_id, claimed_at)
          select organisation_id, 'old ' || n, 'tags', '', gen_random_uuid(), now() - interval '25 hours' ${spread}`,
    left: 'select from upload_idempotency_keys',
    partMax: limits.purgeRowsMax,
  },
  {
    name: 'remove old rejections',
    add: `insert into rejection_kinds (organisation_id, kind_id, type, fields, codes, messages, used_at, rejections)
          select organisation_id, gen_random_uuid(), 'test', '{}', '{}', '{}', now() - interval '8 days', 0 ${spread}`,
    left: `select from rejection_kinds where type = 'test'`,
    partMax: limits.purgeRowsMax,
  },
  {
    name: 'number changes',
    add: `insert into changes (organisation_id, change_id, type, size, ids)
          select organisation_id, overlay('${randomUUIDv7()}' placing lpad(n::text, 12, '0') from 25)::uuid, 'tags', 1,
            array[organisation_id] ${spread}`,
    left: 'select from changes where number is null',
    partMax: limits.changesNumberedAtOnce,
  },
])('when a round of "$name" is over, the next one continues', async ({ name, add, left, partMax }) => {
  const chore = choresOf(test.pool, config, suppressions).find((one) => one.name === name)!;
  const count = async () => (await rowsOf(left)).length;
  while ((await chore.run()) === 'more');
  await test.pool.query(add);
  expect(await count()).toBe(6_000);
  for (let before = 6_000; before > partMax; before -= partMax) {
    expect(await chore.run(new Round(0))).toBe('more');
    expect(await count()).toBe(before - partMax);
  }
  while ((await chore.run(new Round(0))) === 'more');
  expect(await count()).toBe(0);
});

it('others do not wait for a long chore', async () => {
  let runs = 0;
  const maintenance = startMaintenance(
    test.pool,
    [
      {
        name: 'long',
        everyMs: 1_000,
        loop: 'long',
        run: (round) =>
          new Promise<void>((resolve) => round?.stopping?.addEventListener('abort', () => resolve())),
      },
      { name: 'short', everyMs: 100, run: async () => void runs++ },
    ],
    { elected() {}, held() {}, done() {}, failed() {} },
  );
  await expect.poll(() => runs).toBeGreaterThan(1);
  await maintenance.stop();
});

it('a chore that has more to do runs again at once, after the others of its loop', async () => {
  const runs: string[] = [];
  const maintenance = startMaintenance(
    test.pool,
    [
      {
        name: 'large',
        everyMs: 3_600_000,
        async run() {
          runs.push('large');
          return runs.length < 3 ? 'more' : 'all';
        },
      },
      { name: 'other', everyMs: 0, run: async () => void runs.push('other') },
    ],
    { elected() {}, held() {}, done() {}, failed() {} },
  );
  await expect.poll(() => runs.length).toBeGreaterThan(5);
  await maintenance.stop();
  expect(runs.slice(0, 6)).toEqual(['large', 'other', 'large', 'other', 'other', 'other']);
});

it('the metrics include open rejections and the partitions ahead', async () => {
  const told = { rejectionsOpen: 0, partitionsAheadDays: 0 };
  const chores = counting(test.pool, config, (state) => void Object.assign(told, state));
  const count = async () => {
    for (const chore of chores) await chore.run();
    return { ...told };
  };
  const before = await count();
  expect(before.partitionsAheadDays).toBeGreaterThan(30);
  await test.pool.query(
    `insert into rejection_count_changes (organisation_id, kind_id, rejections)
     select organisation_id, gen_random_uuid(), 3 from organisations limit 1`,
  );
  expect((await count()).rejectionsOpen - before.rejectionsOpen).toBe(3);
});

it('keys in use that expire within a week are counted until a successor is used', async () => {
  const [counter] = counting(test.pool, config, (state) => void Object.assign(told, state)).filter(
    ({ name }) => name === 'count expiring keys',
  );
  const told = { keysExpiring: -1 };
  const count = async () => {
    await counter?.run();
    return told.keysExpiring;
  };
  const add = (id: string, fields: string) =>
    test.pool.query(
      `insert into api_keys (key_id, organisation_id, key_sha256, permissions, created_at, expires_at, last_used_at, successor_of)
       select '${id}', organisation_id, '', '{}', ${fields} from organisations limit 1`,
    );
  const [old, soon, used] = [`now() - interval '90 days'`, `now() + interval '3 days'`, 'now()'];
  expect(await count()).toBe(0);
  await add('ends', `${old}, ${soon}, ${used}, null`);
  expect(await count()).toBe(1);
  await add('later', `${old}, now() + interval '30 days', ${used}, null`);
  await add('for-days', `now(), ${soon}, ${used}, null`);
  await add('unused', `${old}, ${soon}, null, null`);
  await add('next', `now(), null, null, 'ends'`);
  expect(await count()).toBe(1);
  await test.pool.query(`update api_keys set last_used_at = now() where key_id = 'next'`);
  expect(await count()).toBe(0);
  await test.pool.query(
    `update api_keys set successor_of = null where key_id = 'next';
     update api_keys set revoked_at = now() where key_id = 'ends'`,
  );
  expect(await count()).toBe(0);
});

it('partitions that an operator creates by hand are counted within a minute or so', () => {
  const chores = counting(test.pool, config, () => {});
  const partitions = chores.find(({ name }) => name === 'count partitions ahead');
  expect(partitions?.everyMs).toBeLessThanOrEqual(60_000);
});
