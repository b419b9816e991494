import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { limits } from '../../src/limits.ts';
import { isConflict } from '../../src/postgres/pool.ts';
import { rollUpCounts } from '../../src/records/record-counts.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { purgeAll } from '../support/jobs.ts';
import { many, newShop } from '../support/new-records.ts';
import { allowingTriggers, countWaiting, queryDatabase } from '../support/query-database.ts';

/** Rejections are counted by kind as they are added and removed. The final counts are right despite concurrent changes. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

interface Asked {
  readonly method: 'POST' | 'DELETE';
  readonly url: string;
  readonly payload?: object;
}

async function client(slug: string) {
  const { key, organisationId } = await test.organisation(slug);
  const headers = { authorization: `Bearer ${key}` };
  const send = (asked: Asked) => test.app.inject({ ...asked, headers });
  return {
    organisationId,
    upload: (type: string, records: unknown[]) =>
      send({ method: 'POST', url: `/v1/data/${type}`, payload: { records } }),
    replay: () => send({ method: 'POST', url: '/v1/rejections/replay' }),
    discard: (filter: string) => send({ method: 'DELETE', url: `/v1/rejections?${filter}` }),
    overview: async () => (await test.app.inject({ url: '/v1/data', headers })).json(),
  };
}

/** Returns the stored count and the actual number of rejections, by kind. */
async function kindsOf(organisationId: string) {
  const { rows } = await test.pool.query<{ counted: string; there: string }>(
    `select k.rejections + coalesce(c.rejections, 0) as counted, coalesce(r.rejections, 0) as there
     from rejection_kinds k
     left join (select kind_id, sum(rejections) as rejections from rejection_count_changes
       where organisation_id = $1 group by kind_id) c using (kind_id)
     left join (select kind_id, count(*) as rejections from rejections
       where organisation_id = $1 group by kind_id) r using (kind_id)
     where k.organisation_id = $1 order by kind_id`,
    [organisationId],
  );
  const { rows: unknown } = await test.pool.query(
    `select from rejections where organisation_id = $1
       and kind_id not in (select kind_id from rejection_kinds where organisation_id = $1)`,
    [organisationId],
  );
  return { counted: rows.map(({ counted }) => counted), there: rows.map(({ there }) => there), unknown };
}

const newLink = (shop_id: string, tag_id: string) => ({ shop_tag_id: randomUUID(), shop_id, tag_id });

it('a rejection that is discarded while a replay changes its kind is not counted', async () => {
  const acme = await client('discarded');
  const [shop, tagId] = [newShop(), randomUUID()];
  const [good, bad] = [newLink(shop.shop_id, tagId), newLink(shop.shop_id, randomUUID())];
  await acme.upload('shop-tags', [good]);
  const { request_id } = (await acme.upload('shop-tags', [bad])).json();
  await acme.upload('shops', [shop]);
  await acme.upload('tags', [{ tag_id: tagId, name: 'x' }]);
  // The replay has read both records. Storing the good record blocks on this transaction, which inserts it and then
  // rolls back.
  const other = await test.pool.connect();
  await other.query('begin');
  await other.query(
    `insert into shop_tags (organisation_id, shop_tag_id, shop_id, tag_id, is_deleted, stored_at)
     values ($1, $2, $3, $4, false, now())`,
    [acme.organisationId, good.shop_tag_id, good.shop_id, good.tag_id],
  );
  const replayed = acme.replay();
  await expect.poll(() => countWaiting(test.databaseUrl)).toBeGreaterThan(0);
  expect((await acme.discard(`request_id=${request_id}`)).json()).toMatchObject({ discarded: 1 });
  await other.query('rollback');
  other.release();
  expect((await replayed).statusCode).toBeLessThan(500);
  expect(new Set((await kindsOf(acme.organisationId)).counted)).toEqual(new Set(['0']));
  const types = (await acme.overview()).types as { type: string }[];
  expect(types.find(({ type }) => type === 'shop-tags')).toMatchObject({ records: 1, open_rejections: 0 });
});

it('two uploads that fail for the same reason do not wait for each other', async () => {
  const acme = await client('side-by-side');
  await acme.upload('tags', [{ tag_id: randomUUID(), name: 7 }]);
  // Lock the kind, as a pending upload would if it updated the count.
  const other = await test.pool.connect();
  await other.query('begin');
  await other.query(`update rejection_kinds set rejections = rejections where organisation_id = $1`, [
    acme.organisationId,
  ]);
  const uploaded = acme
    .upload('tags', [{ tag_id: randomUUID(), name: 7 }])
    .then(({ statusCode }) => statusCode);
  expect(await Promise.race([uploaded, sleep(120_000, 'waits')])).toBe(400);
  await other.query('rollback');
  other.release();
});

/** Ignores conflicts, because two roll-ups without a pause conflict more often than they are retried. */
function throwUnlessConflict(error: unknown): void {
  if (!isConflict(error)) throw error;
}

it('the same failing upload eight times at once is kept once, and each gets the same answer', async () => {
  const acme = await client('eight');
  const broken = many(20, () => ({ tag_id: randomUUID(), name: 7 }));
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(many(8, () => acme.upload('tags', broken)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(many(8, () => 400));
    const { counted, there } = await kindsOf(acme.organisationId);
    expect([counted, there]).toEqual([['20'], ['20']]);
  }
});

it('concurrent uploads, replays, discards, the purge and the roll-up leave every count right', async () => {
  const acme = await client('busy');
  const shops = many(6, () => newShop());
  const tags = many(6, () => ({ tag_id: randomUUID(), name: 'x' }));
  const links = shops.flatMap(({ shop_id }) => tags.map(({ tag_id }) => newLink(shop_id, tag_id)));
  const broken = links.map((link, at) => ({ ...link, [at % 2 ? 'shop_id' : 'tag_id']: at % 3 ? 7 : null }));
  const statuses: Record<number, number> = {};
  let isOver = false;
  const doing = async (times: number, work: (round: number) => Promise<{ statusCode: number }>) => {
    for (let round = 0; round < times; round++) {
      const { statusCode } = await work(round);
      statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
    }
  };
  const untilOver = async (work: () => Promise<void>) => {
    while (!isOver) await work();
  };
  const shifted = (records: object[], by: number) => [...records.slice(by), ...records.slice(0, by)];
  const background = [
    untilOver(() => rollUpCounts(test.pool).catch(throwUnlessConflict)),
    untilOver(() => rollUpCounts(test.pool).catch(throwUnlessConflict)),
    untilOver(async () => {
      // Make some rejections expire.
      await test.pool.query(
        `update rejections set rejection_id = overlay(rejection_id::text placing $2 from 1 for 8)::uuid
         where (organisation_id, rejection_id) in (select organisation_id, rejection_id from rejections
           where organisation_id = $1 and index % 5 = 0 for update skip locked)`,
        [acme.organisationId, uuidFloor(Date.now() - 40 * 86_400_000).slice(0, 8)],
      );
      await purgeAll(test.pool, 30);
    }),
  ];
  await Promise.all([
    ...many(3, (at) => doing(15, (round) => acme.upload('shop-tags', shifted(links, (7 * round + at) % 36)))),
    ...many(3, (at) =>
      doing(15, (round) => acme.upload('shop-tags', shifted(broken, (5 * round + at) % 36))),
    ),
    ...many(2, () => doing(15, () => acme.replay())),
    doing(15, (round) =>
      acme.discard(['code=required', 'field=tag_id', 'type=shop-tags'][round % 3] as string),
    ),
    doing(6, async (round) => {
      await sleep(200);
      await acme.upload('shops', shops.slice(round, round + 1));
      return acme.upload('tags', tags.slice(round, round + 1));
    }),
  ]);
  isOver = true;
  await Promise.all(background);
  const before = await kindsOf(acme.organisationId);
  expect(before.unknown).toEqual([]);
  expect(before.counted).toEqual(before.there);
  await rollUpCounts(test.pool);
  expect((await kindsOf(acme.organisationId)).counted).toEqual(before.counted);
  expect(Object.keys(statuses).filter((status) => Number(status) >= 500)).toEqual([]);
});

it('an organisation whose records fail in very many ways has a bounded number of kinds', async () => {
  const acme = await client('inventive');
  await test.pool.query(
    `insert into rejection_kinds
     select $1, gen_random_uuid(), 'tags', array['name'], array['wrong_type'], array['made up'], now(), 0
     from generate_series(1, ${limits.rejectionKindsMax})`,
    [acme.organisationId],
  );
  await acme.upload('shops', [{ shop_id: randomUUID(), name: 7, region: 7 }]);
  const { rows } = await test.pool.query<{ fields: string[] }>(
    `select fields from rejection_kinds where organisation_id = $1 and type = 'shops'`,
    [acme.organisationId],
  );
  expect(rows).toEqual([{ fields: ['name'] }]);
});

it.each(['record_counts', 'rejection_kinds'])(
  'no difference is removed if its sum in %s is not written',
  async (table) => {
    const { upload, overview, organisationId } = await client(`lost-${randomUUID().slice(0, 8)}`);
    await upload('tags', [{ tag_id: randomUUID(), name: 'vegan' }, { tag_id: randomUUID() }]);
    const before = await overview();
    await test.pool.query(
      `create or replace function lose_row() returns trigger language plpgsql as 'begin return null; end'`,
    );
    const url = allowingTriggers(test.databaseUrl);
    await queryDatabase(
      url,
      `create trigger lose before insert or update on ${table} for each row execute function lose_row()`,
    );
    await expect(rollUpCounts(test.pool)).rejects.toThrow(/rows instead of/);
    await queryDatabase(url, `drop trigger lose on ${table}`);
    expect(await overview()).toEqual(before);
    await rollUpCounts(test.pool);
    expect(await overview()).toEqual(before);
    const { counted, there } = await kindsOf(organisationId);
    expect(counted).toEqual(there);
  },
);
