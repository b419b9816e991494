// @module-tag full
// @module-tag pooler

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { limits } from '../../src/limits.ts';
import { downloadAccess } from '../support/access-person.ts';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { KilledProcesses, kills } from '../support/killed-processes.ts';
import { overviewOf } from '../support/overview.ts';

/**
 * All kinds of jobs at once, except those with a test of their own. The process that does them is killed three times (or
 * KILLS times), each time after a step of all of them or in the middle of one.
 */

/** By organisation. Access requests wait while user ids are rewritten, so another organisation has them. */
const kinds = [
  ['settling', 'acme'],
  ['purging', 'acme'],
  ['rewriting', 'acme'],
  ['access requests', 'asked'],
] as const;
const stepMs = 300;
/** Enough steps for all kills, even if some are late. */
const steps = 8 + 5 * kills;

let processes: KilledProcesses;
let key: string;
let api: Api;
/** The other organisation's. */
let asked: Api;
let accessId: string;
beforeAll(async () => {
  processes = await KilledProcesses.create();
  const first = await processes.start();
  key = await first.createKey('acme', ...everyPermission);
  await first.createKey('other');
  const askedKey = await first.createKey('asked', ...everyPermission);
  await processes.slowSteps(stepMs);
  await requestAccess(apiOf(first.url, askedKey));
  await processes.kill();
  await addBatches();
  await addOldRejections();
  await addInteractions();
  const places = kinds.map(([kind, slug]) => placeOf(kind, slug));
  await processes.killOften(stepMs, ...places);
  await processes.endSlowSteps();
  const last = await processes.start();
  api = apiOf(last.url, key);
  asked = apiOf(last.url, askedKey);
  for (const place of places) while ((await place()) !== undefined) await sleep(10);
});
afterAll(() => processes.end());

async function ask<T extends object>(text: string, values: unknown[] = []): Promise<T[]> {
  return (await processes.admin.query<T>(text, values)).rows;
}

/** Returns a function that returns the turn of a job, or undefined when it has ended. */
function placeOf(kind: string, slug: string): () => Promise<string | undefined> {
  let isBegun = false;
  return async () => {
    const [job] = await ask<{ turn: string }>(
      `select turn from jobs join organisations using (organisation_id) where kind = $1 and slug = $2`,
      [kind, slug],
    );
    isBegun ||= job !== undefined;
    return isBegun ? job?.turn : '';
  };
}

/** Adds rejections, all for the same reason. `rows` selects the columns `id`, `record_id`, `updated` and `n`. */
async function addRejections(type: string, rows: string): Promise<void> {
  await ask(
    `insert into rejections (organisation_id, rejection_id, type, kind_id, request_id, index, record_id, updated)
     select organisation_id, id, '${type}', md5('${type}')::uuid, gen_random_uuid(), n, record_id, updated
     from organisations cross join (${rows}) as rejected where slug = 'acme'`,
  );
  await ask(
    `insert into rejection_kinds (organisation_id, kind_id, type, fields, codes, messages, used_at, rejections)
     select organisation_id, kind_id, type, '{name}', '{wrong_type}', '{must be a string}', now(), count(*)
     from rejections where type = '${type}' group by organisation_id, kind_id, type`,
  );
}

const openRejections = async (type: string) => (await overviewOf(api))[type]?.open_rejections;

const batches = limits.batchesPerSettling * steps;

async function addBatches(): Promise<void> {
  // Each batch stored two records that had failed before, but one of them failed again in a newer version.
  await addRejections(
    'tags',
    `select uuid_floor(now() - n * interval '1 second' - w * interval '1 ms') as id, md5(n || ' ' || w)::uuid as record_id,
       now() - interval '1 day' + w * interval '2 days' as updated, n
     from generate_series(1, ${batches}) n cross join generate_series(0, 1) w`,
  );
  await ask(
    `insert into unsettled_batches (organisation_id, type, batch_id, record_ids, updated)
     select organisation_id, 'tags', uuid_floor(now() - n * interval '1 ms'),
       array[md5(n || ' 0')::uuid, md5(n || ' 1')::uuid], array[now(), now()]
     from organisations cross join generate_series(1, ${batches}) n where slug = 'acme'`,
  );
}

it('settles each batch', async () => {
  expect(
    await ask(
      'select count(*)::integer, bool_and(updated > now()) as are_newer from rejections where type = $1',
      ['tags'],
    ),
  ).toEqual([{ count: batches, are_newer: true }]);
  expect(await openRejections('tags')).toBe(batches);
});

const kept = 100;

async function addOldRejections(): Promise<void> {
  await addRejections(
    'shops',
    `select uuid_floor(now() - case when n > ${kept} then 40 else 1 end * interval '1 day' - n * interval '1 ms') as id,
       null::uuid as record_id, null::timestamptz as updated, n
     from generate_series(1, ${kept + limits.purgeRowsMax * steps}) n`,
  );
}

it('purges each old rejection', async () => {
  expect(
    await ask('select count(*)::integer, max(index) as last from rejections where type = $1', ['shops']),
  ).toEqual([{ count: kept, last: kept }]);
  expect(await openRejections('shops')).toBe(kept);
});

const interactions = limits.erasureRowsPerStep * steps;

async function addInteractions(): Promise<void> {
  await ask(
    `insert into interactions (organisation_id, interaction_id, interaction_type, item_type, item_id, event_timestamp,
       event_time, user_id)
     select organisation_id, overlay(gen_random_uuid()::text placing left(uuid_floor(now())::text, 13) from 1)::uuid,
       'SHARE', 'TAG', gen_random_uuid(), '1700000000', now(), overlay(upper(gen_random_uuid()::text) placing 'A' from 1)
     from organisations cross join generate_series(1, ${interactions}) n where slug <> 'asked'`,
  );
  await ask(
    `update tenants t set user_ids_rewritten = false from organisations o
     where o.organisation_id = t.organisation_id and o.slug = 'acme'`,
  );
}

it('rewrites each user id', async () => {
  const count = interactions;
  const rewritten = await ask(
    `select slug, count(*)::integer, bool_and(user_id = lower(user_id)) as is_lower, bool_and(user_id ~ '^A') as is_upper
     from interactions join organisations using (organisation_id) group by slug order by slug`,
  );
  expect(rewritten).toEqual([
    { slug: 'acme', count, is_lower: true, is_upper: false },
    { slug: 'other', count, is_lower: false, is_upper: true },
  ]);
  expect(
    await ask(
      `select count(*)::integer, count(distinct id)::integer as different from changes cross join unnest(ids) as id
       where type = 'interactions'`,
    ),
  ).toEqual([{ count, different: count }]);
});

const transactions = (limits.erasureRowsPerStep * steps) / 2;

async function requestAccess(first: Api): Promise<void> {
  const student = randomUUID();
  // As if the organisation had been created days ago, so that nothing is left to rewrite.
  await ask('update tenants set user_ids_rewritten_from = null');
  await ask(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, is_deleted)
     select organisation_id, gen_random_uuid(), gen_random_uuid(), 'GB', 2.5, 22.49, $1, false
     from organisations cross join generate_series(1, ${transactions}) n`,
    [student],
  );
  const { status, body } = await first.post('/v1/access-requests', { customer_ids: [student] });
  expect(status).toBe(202);
  accessId = body.access_request_id;
}

it('collects each record for an access request', async () => {
  const { body } = await asked.get(`/v1/access-requests/${accessId}`);
  expect(body).toMatchObject({ state: 'done', records: { transactions } });
  const lines = await downloadAccess(asked, accessId);
  expect([lines.length, new Set(lines.map(({ id }) => id)).size]).toEqual([transactions, transactions]);
});
