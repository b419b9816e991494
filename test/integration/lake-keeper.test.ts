import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { readConfig } from '../../src/config.ts';
import { LakeKeeper } from '../../src/lake/keep-lake.ts';
import { lakeLagSeconds } from '../../src/lake/lake-progress.ts';
import { LakeSlots, slotOf } from '../../src/lake/lake-slots.ts';
import { lakeLimits } from '../../src/lake/limits.ts';
import { changeOrganisation } from '../../src/operator/audited-actions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { newLakeOrganisation } from '../support/lake-organisation.ts';
import { many, newShop } from '../support/new-records.ts';
import { newInteractions, runRound, storedRows, WrittenLake } from '../support/written-lake.ts';

/** Tests which lakes a process writes, and when. */

let test: TestApp;
let pool: OwnPool;
let lake: WrittenLake;
const shop = newShop();
beforeAll(async () => {
  test = await createTestApp();
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await pool.end();
  await test.close();
});
beforeEach(() => {
  lake = new WrittenLake();
});
afterEach(async () => {
  await lake.close();
  await test.pool.query(`update organisations set lake = false`);
  await test.pool.query('delete from lake_progress');
  await test.pool.query(`update lake_slots set holder = null, ends_at = '-infinity'`);
  await test.pool.query('delete from lake_processes');
});

async function newOrganisation(lakeIsOn = true) {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId, key } = await test.organisation(slug);
  await changeOrganisation(test.pool, { actor: 'test' }, slug, { lake: lakeIsOn });
  const post = async (url: string, payload: object) => {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await test.app.inject({ method: 'POST', url, headers, payload });
    expect(answer.statusCode, answer.body).toBeLessThan(300);
  };
  await post('/v1/data/shops', { records: [shop] });
  return {
    slug,
    organisationId,
    send: async (count: number) => {
      await post('/user-interactions/batch', { records: newInteractions(count, shop.shop_id) });
      await numberForAll(test.pool);
    },
  };
}

async function newKeeper(delayMs: number, slots = new LakeSlots(pool)) {
  await slots.renew();
  const failures: unknown[] = [];
  const steps: string[] = [];
  const writer = lake.writer(pool);
  const keeper = new LakeKeeper({
    pool,
    slots,
    writer,
    delayMs,
    log: {
      looked: () => {},
      stepped: (organisationId) => steps.push(organisationId),
      recovered: () => {},
      failed: (error) => failures.push(error),
    },
  });
  /** Runs a round. On a slow machine, several rounds take longer than slots are held. */
  const run = async () => {
    await slots.renew();
    await runRound(keeper);
  };
  return { keeper, run, slots, writer, failures, steps };
}

/** Backdates the changes that are not in the lake yet. */
async function age(organisationId: string, ms: number): Promise<void> {
  const { rows } = await test.pool.query<{ change_id: string }>(
    `select change_id from changes where organisation_id = $1
       and number > (select number from lake_progress where organisation_id = $1) order by number`,
    [organisationId],
  );
  for (const { change_id } of rows)
    await test.pool.query('update changes set change_id = $3 where organisation_id = $1 and change_id = $2', [
      organisationId,
      change_id,
      uuidFloor(Date.now() - ms).slice(0, 14) + change_id.slice(14),
    ]);
}

it('writes only the lakes that are on', async () => {
  const [on, off] = [await newOrganisation(), await newOrganisation(false)];
  for (const one of [on, off]) await one.send(3);
  const { run, failures } = await newKeeper(0);
  await run();
  await run();
  expect(failures).toEqual([]);
  expect(await lake.rows(on.organisationId)).toEqual(await storedRows(pool, on.organisationId));
  expect(lake.calls.some((call) => call.includes(off.organisationId))).toBe(false);
});

it('an idle organisation causes no request to the store, and none of its own to the database', async () => {
  const organisations = [await newOrganisation(), await newOrganisation(), await newOrganisation()];
  for (const { send } of organisations) await send(3);
  const { keeper, run, slots, steps } = await newKeeper(0);
  for (let round = 0; round < 3; round++) await run();
  await slots.renew();
  lake.calls.length = 0;
  steps.length = 0;
  const statements: string[] = [];
  const { query } = pool;
  pool.query = ((...given: Parameters<typeof query>) => {
    statements.push(String(given[0]));
    return query.apply(pool, given);
  }) as typeof query;
  for (let round = 0; round < 5; round++) await runRound(keeper);
  pool.query = query;
  expect([lake.calls, steps]).toEqual([[], []]);
  // There is one query per round for all organisations, plus a few every ten seconds.
  expect(statements.filter((text) => text.includes('from tenants t'))).toHaveLength(5);
  expect(statements.length).toBeLessThanOrEqual(10);
  for (const { organisationId } of organisations) expect(statements.join()).not.toContain(organisationId);
});

it('a table that was deleted is copied again within a day, even if nothing changes', async () => {
  const { organisationId, send } = await newOrganisation();
  await send(3);
  const { run, slots, failures } = await newKeeper(0);
  for (let round = 0; round < 2; round++) await run();
  rmSync(lake.tableFolder(organisationId, 'shops'), { recursive: true });
  const setBack = (column: string) =>
    test.pool.query(
      `update lake_progress set ${column} = ${column} - interval '25 hours' where organisation_id = $1`,
      [organisationId],
    );
  await setBack('as_of');
  await run();
  expect(lake.lost).toEqual(['shops']);
  expect(failures).toEqual([]);
  await setBack('removing_since');
  // A keeper remembers for ten seconds which lakes are removed.
  for (let round = 0; round < 3; round++) {
    const next = await newKeeper(0, slots);
    await next.run();
    expect(next.failures).toEqual([]);
  }
  expect(await lake.current(organisationId, 'shops')).toHaveLength(1);
});

it('writes a few new rows after the longest delay, and many after a minute', async () => {
  const [small, busy] = [await newOrganisation(), await newOrganisation()];
  const { run, steps, slots } = await newKeeper(3_600_000);
  await run();
  await run();
  await small.send(10);
  await busy.send(lakeLimits.rowsOfBusy);
  steps.length = 0;
  await run();
  expect(steps).toEqual([]);
  // A keeper caches the age of the oldest change, so a new keeper has to check the backdated changes.
  for (const { organisationId } of [small, busy]) await age(organisationId, 90_000);
  const second = await newKeeper(3_600_000, slots);
  await second.run();
  expect(second.steps).toEqual([busy.organisationId]);
  expect(await lakeLagSeconds(pool)).toBeGreaterThan(80);
  await age(small.organisationId, 3_700_000);
  const third = await newKeeper(3_600_000, slots);
  await third.run();
  expect(third.steps).toEqual([small.organisationId]);
  expect(await lakeLagSeconds(pool)).toBeCloseTo(0, 0);
});

it('a store that is away holds up nothing else, and is tried again', async () => {
  const [one, other] = [await newOrganisation(), await newOrganisation()];
  for (const { send } of [one, other]) await send(3);
  const { run, failures } = await newKeeper(0);
  lake.fault = (call) => {
    if (call.includes(one.organisationId)) throw new Error('away');
  };
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
  onTestFinished(() => void clock.mockRestore());
  await run();
  expect(failures).toHaveLength(1);
  expect(await lake.rows(other.organisationId)).toHaveLength(3);
  // The organisation is in back-off.
  await run();
  expect(failures).toHaveLength(1);
  clock.mockRestore();
  lake.fault = () => {};
  await expect
    .poll(async () => {
      await run();
      return (await lake.rows(one.organisationId)).length;
    })
    .toBe(3);
});

it('an erasure that keeps failing is tried less and less often, and does not hurry new rows', async () => {
  const { organisationId, send, newPerson, visit, erase } = await newLakeOrganisation(test);
  const person = await newPerson();
  await visit(person);
  const { run, writer, failures, steps } = await newKeeper(3_600_000);
  await run();
  await erase('anonymise', person);
  const erasing = vi.spyOn(writer, 'erase').mockImplementation(async () => {
    await test.pool.query(`update erasures set lake_state = 'running' where organisation_id = $1`, [
      organisationId,
    ]);
    throw new Error('away');
  });
  const { now } = performance;
  let aheadMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + aheadMs);
  onTestFinished(() => void clock.mockRestore());
  steps.length = 0;
  for (let round = 0; round < 20; round++) {
    aheadMs += lakeLimits.pollMs;
    await send(1);
    await run();
  }
  expect(failures.length).toBeGreaterThan(3);
  expect(failures.length).toBeLessThan(8);
  expect(steps).toEqual([organisationId]);
  erasing.mockRestore();
  aheadMs += lakeLimits.pauseMsMax;
  await run();
  const { rows } = await test.pool.query('select lake_state from erasures where organisation_id = $1', [
    organisationId,
  ]);
  expect(rows).toEqual([{ lake_state: 'done' }]);
});

it('organisations whose work takes long hold up no others, and a process that stops begins nothing', async () => {
  const slow = [await newLakeOrganisation(test), await newLakeOrganisation(test)];
  const [one, other] = [await newOrganisation(), await newOrganisation()];
  const first = await newKeeper(0);
  for (const { newPerson, visit, erase } of slow) {
    const person = await newPerson();
    await visit(person);
    await first.run();
    await erase('anonymise', person);
  }
  const { keeper, slots, writer } = await newKeeper(0, first.slots);
  const released = Promise.withResolvers<void>();
  const erased = vi.spyOn(writer, 'erase').mockReturnValue(released.promise);
  const tended = vi.spyOn(writer, 'tend');
  for (const { send } of [one, other]) {
    await send(3);
    await slots.renew();
    await keeper.look();
    await expect.poll(() => erased.mock.calls.length).toBe(1);
  }
  await expect
    .poll(async () => {
      await slots.renew();
      return (await lake.rows(other.organisationId)).length;
    })
    .toBe(3);
  // Stop while a step is in progress.
  lake.fault = (call) => (call.includes(one.organisationId) ? released.promise : undefined);
  lake.calls.length = 0;
  await one.send(3);
  await expect
    .poll(async () => {
      await slots.renew();
      await keeper.look();
      return lake.calls.some((call) => call.includes(one.organisationId));
    })
    .toBe(true);
  tended.mockClear();
  const stopped = keeper.stop();
  released.resolve();
  await stopped;
  expect([tended.mock.calls, erased.mock.calls.length]).toEqual([[], 1]);
});

it('processes share the slots, and take over those of one that has ended', async () => {
  const slots = many(3, () => new LakeSlots(pool));
  const organisations = many(500, () => randomUUID());
  const holders = (id: string) => slots.filter((one) => one.isHeld(id)).length;
  await slots[0]!.renew();
  expect(slots[0]!.count).toBe(lakeLimits.slots);
  for (let round = 0; round < 3; round++) for (const one of slots) await one.renew();
  expect(slots.map(({ count }) => count).toSorted()).toEqual([20, 22, 22]);
  for (const id of organisations) expect(holders(id)).toBe(1);
  await slots[1]!.release();
  for (let round = 0; round < 2; round++) for (const one of [slots[0]!, slots[2]!]) await one.renew();
  expect(slots.map(({ count }) => count)).toEqual([32, 0, 32]);
  for (const id of organisations) expect(holders(id)).toBe(1);
  // Simulate a killed process whose slots have expired.
  await test.pool.query(`update lake_processes set ends_at = now() - interval '1 second'`);
  await test.pool.query(`update lake_slots set ends_at = now() - interval '1 second'`);
  await slots[2]!.renew();
  expect(slots[2]!.count).toBe(lakeLimits.slots);
});

it('organisations are spread evenly over the slots', async () => {
  const counts = new Array<number>(lakeLimits.slots).fill(0);
  for (const id of many(64_000, () => randomUUID())) counts[slotOf(id)]!++;
  expect(Math.min(...counts)).toBeGreaterThan(800);
  expect(Math.max(...counts)).toBeLessThan(1_200);
});
