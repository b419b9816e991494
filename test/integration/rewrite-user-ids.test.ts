// @module-tag postgres-15
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { collectRecords } from '../../src/access/collect-records.ts';
import { readConfig } from '../../src/config.ts';
import { requestErasure } from '../../src/erasure/request-erasure.ts';
import { erasePeople } from '../../src/erasure/sweep/erase-people.ts';
import {
  noteUserIdsRewritten,
  type Rewritten,
  rewriteUserIds,
  rewriting,
} from '../../src/erasure/sweep/rewrite-user-ids.ts';
import { indexPartitions } from '../../src/interactions/interaction-partitions.ts';
import { Round } from '../../src/jobs/round.ts';
import { runJobs, takeStep } from '../../src/jobs/run-jobs.ts';
import { limits } from '../../src/limits.ts';
import { createPool, type OwnPool, type Pool } from '../../src/postgres/pool.ts';
import { inTransaction } from '../../src/postgres/transactions.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { newShop } from '../support/new-records.ts';
import { untilPasses } from '../support/until-passes.ts';

let test: TestApp;
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

const suppressions = new Suppressions([erasureKey]);
const mixed = (id: string) => id.replace(/[a-f]/, (letter) => letter.toUpperCase());

/** Creates an organisation with interactions as an earlier release stored them. They have to be rewritten, unless it is new. */
async function organisationWith(userIds: readonly string[], isNew = false) {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const call = async (method: 'GET' | 'POST', url: string, payload?: object) => {
    const headers = { authorization: `Bearer ${key}` };
    return (await test.app.inject({ method, url, headers, ...(payload && { payload }) })).json();
  };
  const shop = newShop();
  await call('POST', '/v1/data/shops', { records: [shop] });
  const visit = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
  for (const user_id of userIds) {
    const { interaction_id } = await call('POST', '/user-interactions', { ...visit, user_id: 'x' });
    await test.pool.query(
      'update interactions set user_id = $3 where organisation_id = $1 and interaction_id = $2',
      [organisationId, interaction_id, user_id],
    );
  }
  if (!isNew)
    await test.pool.query(
      'update tenants set user_ids_rewritten = false, user_ids_rewritten_from = null where organisation_id = $1',
      [organisationId],
    );
  const stored = async () => {
    const { interactions } = await call('GET', '/user-interactions');
    return interactions.map(({ user_id }: { user_id: string }) => user_id).toReversed();
  };
  const found = async (user_id: string) => {
    const { interactions } = await call('GET', `/user-interactions?user_id=${encodeURIComponent(user_id)}`);
    return interactions.length;
  };
  const erase = (user_id: string) => call('POST', '/v1/erasures', { user_ids: [user_id] });
  const countErased = async (user_id: string) => {
    const counted = await call('POST', '/v1/erasures?dry_run=true', { user_ids: [user_id] });
    return { interactions: counted.rows.interactions, complete: counted.complete };
  };
  const access = async (user_id: string): Promise<() => Promise<unknown>> => {
    const { access_request_id } = await call('POST', '/v1/access-requests', { user_ids: [user_id] });
    return async () => {
      const { state, records } = await call('GET', `/v1/access-requests/${access_request_id}`);
      return { state, interactions: records.interactions };
    };
  };
  return { organisationId, stored, found, erase, countErased, access };
}

async function rewriteAll(organisationId: string) {
  const steps: Rewritten[] = [];
  do {
    const position = steps.at(-1)?.next ?? null;
    steps.push(await inTransaction(serving, (client) => rewriteUserIds(client, organisationId, position)));
  } while (steps.at(-1)?.next !== null);
  await inTransaction(serving, (client) => noteUserIdsRewritten(client, organisationId));
  for (const { changed } of steps) expect(changed.count).toBe(changed.ids.length);
  return {
    ids: steps.flatMap(({ changed }) => changed.ids),
    counts: steps.map(({ changed }) => changed.count),
  };
}

/** Completes the sweep, which waits for running transactions. */
const sweepAll = (organisationId: string) =>
  untilPasses(async () => {
    await runJobs(serving, [rewriting, erasePeople(suppressions)], new Round(10_000));
    const { rows } = await test.pool.query('select state from erasures where organisation_id = $1', [
      organisationId,
    ]);
    expect(rows).toEqual([{ state: 'swept' }]);
  });

async function aDayLater(organisationId: string): Promise<void> {
  await test.pool.query(
    `update tenants set user_ids_rewritten_from = now() - interval '25 hours' where organisation_id = $1`,
    [organisationId],
  );
}

async function rewritten(organisationId: string) {
  const text = 'select user_ids_rewritten, user_ids_rewritten_from from tenants where organisation_id = $1';
  return (await serving.query(text, [organisationId])).rows[0];
}

it('rewrites the UUIDs among stored user ids, and nothing else', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c01';
  const others = ['Anna', 'ANNA-BC', `${id.toUpperCase()}0`, id.toUpperCase().replace('A', 'G')];
  const before = [id.toUpperCase(), mixed(id), id, ...others];
  const { organisationId, stored } = await organisationWith(before);
  const other = await organisationWith([id.toUpperCase()]);
  expect(await stored()).toEqual(before);
  expect((await rewriteAll(organisationId)).ids).toHaveLength(2);
  expect(await stored()).toEqual([id, id, id, ...others]);
  expect(await other.stored()).toEqual([id.toUpperCase()]);
  expect((await rewriteAll(organisationId)).ids).toEqual([]);
});

it('a search finds every spelling of a user id before, while and after they are rewritten', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c02';
  const { organisationId, found } = await organisationWith([id.toUpperCase(), mixed(id), id, 'Anna']);
  const spellings = [id, id.toUpperCase(), mixed(id)];
  for (const spelling of spellings) expect(await found(spelling)).toBe(3);
  expect(await found('anna')).toBe(0);
  await inTransaction(serving, (client) => rewriteUserIds(client, organisationId, null));
  for (const spelling of spellings) expect(await found(spelling)).toBe(3);
  await rewriteAll(organisationId);
  for (const spelling of spellings) expect(await found(spelling)).toBe(3);
  expect(await found('Anna')).toBe(1);
});

it('a step rewrites a limited number of rows, and the next one continues after it', async () => {
  const id = 'AB3C2D1E-8A41-4C5B-9D77-2B1E6F8A9C03';
  const { organisationId, stored } = await organisationWith([id]);
  const extra = limits.erasureRowsPerStep + 10;
  await test.pool.query(
    `insert into interactions select i.*
     from interactions t cross join generate_series(1, $2) as n
     cross join lateral jsonb_populate_record(t, jsonb_build_object('interaction_id',
       left(t.interaction_id::text, 24) || lpad(to_hex(n), 12, '0'))) as i
     where t.organisation_id = $1`,
    [organisationId, extra],
  );
  const { ids, counts } = await rewriteAll(organisationId);
  expect(Math.max(...counts)).toBe(limits.erasureRowsPerStep);
  expect(new Set(ids).size).toBe(extra + 1);
  expect(new Set(await stored())).toEqual(new Set([id.toLowerCase()]));
});

it('user ids that a process of the release before stores afterwards are rewritten a day later', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c04';
  const { organisationId, stored } = await organisationWith([id.toUpperCase(), id]);
  const run = () => runJobs(serving, [rewriting], new Round(10_000));
  const spell = (spelling: string, which: 'min' | 'max') =>
    test.pool.query(
      `update interactions set user_id = $2 where organisation_id = $1 and interaction_id = (
         select ${which}(interaction_id::text)::uuid from interactions where organisation_id = $1)`,
      [organisationId, spelling],
    );
  await run();
  expect(await stored()).toEqual([id, id]);
  await spell(mixed(id), 'max');
  await run();
  expect(await stored()).toEqual([id, mixed(id)]);
  await aDayLater(organisationId);
  await run();
  expect(await stored()).toEqual([id, id]);
  // Nothing is left to do, so a third time changes nothing.
  await spell(mixed(id), 'min');
  await run();
  expect(await stored()).toEqual([mixed(id), id]);
});

it('an erasure finds every spelling that a process of the release before stored until it was requested', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c05';
  const { organisationId, erase } = await organisationWith([id.toUpperCase(), mixed(id), 'Anna']);
  await runJobs(serving, [rewriting], new Round(10_000));
  await test.pool.query(
    'update interactions set user_id = upper(user_id) where organisation_id = $1 and user_id = $2',
    [organisationId, id],
  );
  expect(await erase(id)).toMatchObject({ people: 1 });
  await untilPasses(async () => {
    await runJobs(serving, [rewriting, erasePeople(suppressions)], new Round(10_000));
    const { rows } = await test.pool.query('select user_id from interactions where organisation_id = $1', [
      organisationId,
    ]);
    expect(rows.map(({ user_id }) => user_id).toSorted()).toEqual(['Anna', null, null]);
  });
});

it('an erasure finds user ids that a process of the release before was storing when it was requested', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c11';
  const { organisationId, stored, erase } = await organisationWith(['Anna'], true);
  const storing = new pg.Client({ connectionString: test.databaseUrl });
  await storing.connect();
  onTestFinished(() => storing.end());
  await storing.query('begin');
  await storing.query('update interactions set user_id = $2 where organisation_id = $1', [
    organisationId,
    id.toUpperCase(),
  ]);
  await erase(id);
  while (await takeStep(serving, rewriting, organisationId));
  await storing.query('commit');
  await sweepAll(organisationId);
  expect(await stored()).toEqual([null]);
});

it('an erasure finds user ids that were rewritten before it committed', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c12';
  const { organisationId, stored } = await organisationWith(['Anna'], true);
  const request = {
    organisationId,
    keyId: 'key',
    mode: 'anonymise' as const,
    customerIds: [],
    userIds: [id],
  };
  const meanwhile = async () => {
    await test.pool.query('update tenants set user_ids_rewritten = false where organisation_id = $1', [
      organisationId,
    ]);
    await untilPasses(async () => {
      while (await takeStep(serving, rewriting, organisationId));
      expect(await rewritten(organisationId)).toMatchObject({ user_ids_rewritten: true });
    });
    await test.pool.query('update interactions set user_id = $2 where organisation_id = $1', [
      organisationId,
      id.toUpperCase(),
    ]);
    return serving.connect();
  };
  const hasher = await suppressions.hasherFor(serving, organisationId);
  await requestErasure({ query: serving.query.bind(serving), connect: meanwhile } as Pool, request, hasher);
  await sweepAll(organisationId);
  expect(await stored()).toEqual([null]);
});

it('an erasure does not wait until later ones are rewritten too', async () => {
  const { organisationId, erase } = await organisationWith([], true);
  const stateOf = async (erasureId: string) =>
    (await test.pool.query('select state from erasures where erasure_id = $1', [erasureId])).rows[0].state;
  const isDue = async () => (await rewriting.find(serving)).includes(organisationId);
  const { erasure_id: first } = await erase(randomUUID());
  // The time in an id has milliseconds.
  await sleep(2);
  await untilPasses(async () => {
    while (await takeStep(serving, rewriting, organisationId));
    expect(await isDue()).toBe(false);
  });
  const { erasure_id: second } = await erase(randomUUID());
  expect(await isDue()).toBe(true);
  await takeStep(serving, rewriting, organisationId);
  await takeStep(serving, erasePeople(suppressions), organisationId);
  expect([await stateOf(first), await stateOf(second)]).toEqual(['sweeping', 'requested']);
});

it('an erasure hides every spelling before user ids are rewritten', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c06';
  const all = [id.toUpperCase(), mixed(id), id, 'Anna', 'ANNA'];
  const { stored, found, erase } = await organisationWith(all);
  await erase(id);
  expect(await stored()).toEqual(['Anna', 'ANNA']);
  for (const spelling of all.slice(0, 3)) expect(await found(spelling)).toBe(0);
  // Only UUIDs have several spellings.
  await erase('Anna');
  expect(await stored()).toEqual(['ANNA']);
});

it('user ids of an organisation that was created during the upgrade are rewritten too', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c07';
  const { organisationId, stored, erase } = await organisationWith(
    [id.toUpperCase(), mixed(id), 'Anna'],
    true,
  );
  await erase(id);
  await sweepAll(organisationId);
  expect(await stored()).toEqual([null, null, 'Anna']);
  await aDayLater(organisationId);
  await runJobs(serving, [rewriting], new Round(10_000));
  expect(await rewritten(organisationId)).toEqual({
    user_ids_rewritten: true,
    user_ids_rewritten_from: null,
  });
});

it('a search and a dry run find every spelling until user ids are rewritten for the last time', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c08';
  const spelled = [id, id.toUpperCase(), mixed(id)];
  const { organisationId, stored, found, countErased } = await organisationWith([...spelled, 'Anna']);
  await indexPartitions(serving);
  const expectAll = async () => {
    for (const spelling of spelled) expect(await found(spelling)).toBe(3);
    expect(await countErased(id)).toEqual({ interactions: 3, complete: true });
  };
  await expectAll();
  await runJobs(serving, [rewriting], new Round(10_000));
  // A process of the release before stores two of them in the next day, the first on a day that has an index by now.
  for (const [spelling, hours] of [
    [id, 36],
    [id.toUpperCase(), 25],
    [mixed(id), 0],
  ])
    await test.pool.query(
      `update interactions set user_id = $3,
         interaction_id = overlay(interaction_id::text placing left(uuid_floor(now() - make_interval(hours => $4))::text, 13) from 1)::uuid
       where organisation_id = $1 and interaction_id = (
         select max(interaction_id::text)::uuid from interactions where organisation_id = $1 and user_id = $2)`,
      [organisationId, id, spelling, hours],
    );
  await test.pool.query(
    `update tenants set user_ids_rewritten_from = now() - interval '30 hours' where organisation_id = $1`,
    [organisationId],
  );
  await expectAll();
  while (await takeStep(serving, rewriting, organisationId)) await expectAll();
  await expectAll();
  expect((await stored()).toSorted()).toEqual(['Anna', id, id, id]);
  expect(await rewritten(organisationId)).toEqual({
    user_ids_rewritten: true,
    user_ids_rewritten_from: null,
  });
});

it('an access request waits until every spelling that was stored until then is rewritten', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c09';
  const { organisationId, access } = await organisationWith([id.toUpperCase(), mixed(id), 'Anna']);
  const collecting = collectRecords(suppressions);
  const first = await access(id);
  await runJobs(serving, [collecting], new Round(10_000));
  expect(await first()).toMatchObject({ state: 'pending' });
  const expectCollected = (request: () => Promise<unknown>) =>
    untilPasses(async () => {
      await runJobs(serving, [rewriting, collecting], new Round(10_000));
      expect(await request()).toEqual({ state: 'done', interactions: 2 });
    });
  await runJobs(serving, [rewriting], new Round(10_000));
  await expectCollected(first);
  await test.pool.query(
    'update interactions set user_id = upper(user_id) where organisation_id = $1 and user_id = $2',
    [organisationId, id],
  );
  await expectCollected(await access(id));
});

it('after a restore, keys work again and people are hidden before user ids are rewritten', async () => {
  const id = 'ab3c2d1e-8a41-4c5b-9d77-2b1e6f8a9c10';
  const { organisationId, stored, erase } = await organisationWith([id.toUpperCase(), mixed(id), 'Anna']);
  await erase(id);
  const erasures = async () =>
    (await test.pool.query('select state, step from erasures where organisation_id = $1', [organisationId]))
      .rows;
  // As after-restore repeats an erasure.
  await test.pool.query('delete from erasure_ids where organisation_id = $1', [organisationId]);
  await test.pool.query(`update erasures set step = 'identify customers' where organisation_id = $1`, [
    organisationId,
  ]);
  await test.pool.query(`insert into restores (target, looks_for_people) values ('a test', true)`);
  const sweep = erasePeople(suppressions);
  await runJobs(serving, [sweep], new Round(10_000));
  expect((await test.pool.query('select from restores where looks_for_people')).rowCount).toBe(0);
  expect(await stored()).toEqual(['Anna']);
  expect(await erasures()).toEqual([{ state: 'requested', step: 'fence' }]);
  await untilPasses(async () => {
    await runJobs(serving, [rewriting, sweep], new Round(10_000));
    expect(await erasures()).toMatchObject([{ state: 'swept' }]);
  });
  expect(await stored()).toEqual([null, null, 'Anna']);
});
