// @module-tag postgres-15

import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { requestErasure } from '../../src/erasure/request-erasure.ts';
import { LakeTaken } from '../../src/lake/lake-progress.ts';
import type { LakeWriter } from '../../src/lake/lake-writer.ts';
import { changeOrganisation } from '../../src/operator/audited-actions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { expireAll, sweepErasures } from '../support/jobs.ts';
import { newStandby, writeAll as writeLake } from '../support/lake-organisation.ts';
import { many, newShop } from '../support/new-records.ts';
import { addInteractions, addOldDay, type OldDay } from '../support/old-interactions.ts';
import { forgetChanges } from '../support/report-organisation.ts';
import { untilPasses } from '../support/until-passes.ts';
import { newInteractions, storedRows, WrittenLake } from '../support/written-lake.ts';

/** An organisation's lake matches the database row by row, even if writers crash or tables are lost. */

let test: TestApp;
/** A pool that connects as the serving role. */
let pool: OwnPool;
let lake: WrittenLake;
const days: OldDay[] = [];
const shop = newShop();
const never = new AbortController().signal;

beforeAll(async () => {
  test = await createTestApp();
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
  for (let daysAgo = 3; daysAgo <= 8; daysAgo++) days.push(await addOldDay(test.pool, daysAgo));
});
afterAll(async () => {
  await pool.end();
  await test.close();
});
beforeEach(() => {
  lake = new WrittenLake();
});
afterEach(() => lake.close());

async function newOrganisation() {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId, key } = await test.organisation(slug);
  await changeOrganisation(test.pool, { actor: 'test' }, slug, { lake: true });
  const post = async (url: string, payload: object) => {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await test.app.inject({ method: 'POST', url, headers, payload });
    expect(answer.statusCode, answer.body).toBeLessThan(300);
  };
  await post('/v1/data/shops', { records: [shop] });
  const send = (count: number, more: object = {}) =>
    post('/user-interactions/batch', { records: newInteractions(count, shop.shop_id, more) });
  return { slug, organisationId, post, send };
}

const writeAll = (writer: LakeWriter, organisationId: string) => writeLake(writer, pool, organisationId);

async function expectEqual(organisationId: string): Promise<number> {
  const [written, stored] = [await lake.rows(organisationId), await storedRows(pool, organisationId)];
  expect(written.length).toBe(stored.length);
  expect(written).toEqual(stored);
  return stored.length;
}

it('copies what is stored and follows what comes, in files of a day each', async () => {
  const { organisationId, send } = await newOrganisation();
  for (const day of days) await addInteractions(test.pool, organisationId, day, 40);
  await send(300);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  expect(await expectEqual(organisationId)).toBe(days.length * 40 + 300);
  for (let round = 1; round <= 5; round++) {
    await send(round * 10);
    await writer.step(organisationId, never);
    expect(await expectEqual(organisationId)).toBe(days.length * 40 + 300 + 5 * round * (round + 1));
  }
  const files = await lake.files(organisationId);
  expect(new Set(files.map(({ partition }) => partition)).size).toBe(days.length + 1);
  const { rows } = await pool.query(
    "select copied_after, as_of > now() - interval '1 minute' as is_recent from lake_progress where organisation_id = $1",
    [organisationId],
  );
  expect(rows).toEqual([{ copied_after: null, is_recent: true }]);
});

it('an organisation without interactions gets an empty table', async () => {
  const { organisationId } = await newOrganisation();
  await writeAll(lake.writer(pool), organisationId);
  expect(await lake.version(organisationId)).toBe(0);
  expect(await expectEqual(organisationId)).toBe(0);
});

it('what arrives while stored interactions are copied is written once', async () => {
  const { organisationId, send } = await newOrganisation();
  for (const day of days) await addInteractions(test.pool, organisationId, day, 100);
  const writer = lake.writer(pool, 150);
  let steps = 0;
  do {
    await send(20);
    // Add old ids as well, as a transaction that was slow to commit would.
    await addInteractions(test.pool, organisationId, days[steps % days.length]!, 5);
    await writer.step(organisationId, never);
    const { rows } = await pool.query('select copied_after from lake_progress where organisation_id = $1', [
      organisationId,
    ]);
    if (rows[0]?.copied_after === null) break;
  } while (++steps < 50);
  expect(steps).toBeGreaterThanOrEqual(3);
  await writeAll(writer, organisationId);
  await expectEqual(organisationId);
});

it('nothing is lost or written twice if a process ends at any moment', async () => {
  const { organisationId, send } = await newOrganisation();
  for (const day of days.slice(0, 3)) await addInteractions(test.pool, organisationId, day, 50);
  let ends = 0;
  for (let round = 0; round < 60; round++) {
    await send(1 + (round % 7));
    // The process crashes before or after one of the calls that store or fetch a file.
    let left = round % 4;
    const moment = round % 2 === 0 ? 'before' : 'after';
    lake.fault = (call, at) => {
      if (at === moment && !call.startsWith('read ') && left-- === 0) throw new Error('the process ends');
    };
    const writer = lake.writer(pool, 40);
    await writer.step(organisationId, never).catch((error: Error) => {
      if (error.message !== 'the process ends') throw error;
      ends++;
    });
  }
  lake.fault = () => {};
  expect(ends).toBeGreaterThan(20);
  await writeAll(lake.writer(pool), organisationId);
  await expectEqual(organisationId);
});

it('a commit that PostgreSQL was not told of is found in the table', async () => {
  const { organisationId, send } = await newOrganisation();
  await send(10);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  await send(10);
  const { rows: before } = await pool.query('select * from lake_progress where organisation_id = $1', [
    organisationId,
  ]);
  await writer.step(organisationId, never);
  const version = await lake.version(organisationId);
  await test.pool.query('update lake_progress set number = $2, positions = $3 where organisation_id = $1', [
    organisationId,
    before[0].number,
    before[0].positions,
  ]);
  await lake.writer(pool).step(organisationId, never);
  expect(await lake.version(organisationId)).toBe(version);
  expect(await expectEqual(organisationId)).toBe(20);
});

it('two processes that write the same lake at once write nothing twice', async () => {
  const { organisationId, send } = await newOrganisation();
  await send(200);
  const writers = many(3, () => lake.writer(pool, 30));
  let taken = 0;
  for (let round = 0; round < 15; round++) {
    await send(10);
    const results = await Promise.allSettled(writers.map((writer) => writer.step(organisationId, never)));
    for (const result of results)
      if (result.status === 'rejected') {
        expect(result.reason).toBeInstanceOf(LakeTaken);
        taken++;
      }
  }
  expect(taken).toBeGreaterThan(0);
  await writeAll(lake.writer(pool), organisationId);
  expect(await expectEqual(organisationId)).toBe(350);
});

it('an outage longer than the log is kept starts a new copy, which adds what is missing', async () => {
  const { organisationId, send } = await newOrganisation();
  await send(100);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  await send(50);
  await forgetChanges(test, organisationId);
  await send(5);
  await writeAll(writer, organisationId);
  expect(await expectEqual(organisationId)).toBe(155);
});

it('after a standby without the last changes took over, the lake has none of them', async () => {
  const { organisationId, send } = await newOrganisation();
  await send(30);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  const failOver = await newStandby(test, organisationId);
  const lostAfter = randomUUIDv7();
  for (let round = 0; round < 5; round++) {
    await send(2);
    await writeAll(writer, organisationId);
  }
  expect(await expectEqual(organisationId)).toBe(40);
  await failOver();
  await test.pool.query('delete from interactions where organisation_id = $1 and interaction_id > $2', [
    organisationId,
    lostAfter,
  ]);
  await send(3);
  await writeAll(writer, organisationId);
  expect(await expectEqual(organisationId)).toBe(33);
});

it('files that were there before the lake are removed first', async () => {
  const { organisationId, send } = await newOrganisation();
  const failOver = await newStandby(test, organisationId);
  await send(5);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  const before = await lake.files(organisationId);
  // An older state of the database is restored, in which the lake was not switched on.
  await failOver();
  await test.pool.query('delete from interactions where organisation_id = $1', [organisationId]);
  await send(2);
  await writeAll(writer, organisationId);
  expect(await expectEqual(organisationId)).toBe(2);
  for (const { path } of before)
    expect(existsSync(join(lake.tableFolder(organisationId, 'interactions'), path))).toBe(false);
});

it('a process that writes a lake again does not rely on what it knew before', async () => {
  const { organisationId, send } = await newOrganisation();
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  await send(10);
  await writeAll(writer, organisationId);
  const ids = (await storedRows(pool, organisationId)).map((row) => JSON.parse(row)[0]);
  // Another process removes the rows, and then the log lists them again, as it does after an erasure.
  const table = await lake.table(organisationId);
  await table!.commit({ remove: table!.files });
  await test.pool.query(
    `insert into changes (organisation_id, change_id, type, size, ids) values ($1, $2, 'interactions', $3, $4)`,
    [organisationId, randomUUIDv7(), ids.length, ids],
  );
  await writeAll(writer, organisationId);
  expect(await expectEqual(organisationId)).toBe(10);
});

it('a process that has lost its slot stores nothing more', async () => {
  const { organisationId, send } = await newOrganisation();
  let isHeld = true;
  const writer = lake.writer(pool, undefined, () => isHeld);
  await writeAll(writer, organisationId);
  for (const day of days) await addInteractions(test.pool, organisationId, day, 3);
  const loseSlotAfter = (method: string) => {
    lake.calls.length = 0;
    lake.fault = (call, moment) => {
      if (call.startsWith(method) && moment === 'after') isHeld = false;
    };
  };
  const changes = () => lake.calls.filter((call) => /^(create|putFile|remove) /.test(call));
  loseSlotAfter('putFile ');
  await expect(writer.step(organisationId, never)).rejects.toBeInstanceOf(LakeTaken);
  expect(changes()).toEqual([expect.stringMatching(/^putFile .*parquet$/)]);
  lake.fault = () => {};
  isHeld = true;
  for (let file = 0; file < 8; file++) {
    await send(1);
    await writer.step(organisationId, never);
  }
  loseSlotAfter('getFile ');
  await expect(writer.tend(organisationId)).rejects.toBeInstanceOf(LakeTaken);
  expect(lake.calls.join()).toContain('getFile ');
  expect(changes()).toEqual([]);
});

it.each(['the process that wrote it', 'another process'])(
  'a table that was deleted is filled again by %s',
  async (who) => {
    const { organisationId, send } = await newOrganisation();
    await send(100);
    const writer = lake.writer(pool);
    await writeAll(writer, organisationId);
    rmSync(join(lake.folder, 'lake', organisationId), { recursive: true });
    await send(1);
    await writeAll(who === 'another process' ? lake.writer(pool) : writer, organisationId);
    expect(await expectEqual(organisationId)).toBe(101);
  },
);

it('people who are being erased are not written, and what is left of their rows is written once', async () => {
  const { organisationId, post, send } = await newOrganisation();
  const suppressions = new Suppressions([erasureKey]);
  const customer_id = randomUUID();
  await post('/v1/data/customers', { records: [{ customer_id, user_id: randomUUID(), region: 'GB' }] });
  await send(6, { student_id: customer_id, user_id: null });
  await send(4);
  const request = {
    organisationId,
    keyId: 'key',
    mode: 'anonymise' as const,
    customerIds: [customer_id],
    userIds: [],
  };
  await requestErasure(pool, request, await suppressions.hasherFor(pool, organisationId));
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  expect(await lake.rows(organisationId)).toHaveLength(4);
  await untilPasses(async () => {
    await sweepErasures(pool, suppressions);
    expect((await storedRows(pool, organisationId)).join()).not.toContain(customer_id);
  });
  await writeAll(writer, organisationId);
  expect(await expectEqual(organisationId)).toBe(10);
});

it('days that have expired are removed', async () => {
  const { slug, organisationId, send } = await newOrganisation();
  const other = await newOrganisation();
  for (const day of days) {
    await addInteractions(test.pool, organisationId, day, 10);
    await addInteractions(test.pool, other.organisationId, day, 1);
  }
  await send(5);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  await changeOrganisation(test.pool, { actor: 'test' }, slug, { interactions_kept_days: 5 });
  await expireAll(test.pool);
  await writeAll(writer, organisationId);
  const left = await expectEqual(organisationId);
  expect(left).toBeLessThan(5 + days.length * 10);
  expect(left).toBeGreaterThan(5);
});

it('many small commits become few files, and old versions are checkpointed', async () => {
  const { organisationId, send } = await newOrganisation();
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  for (let round = 0; round < 30; round++) {
    await send(3);
    await writer.step(organisationId, never);
    await writer.tend(organisationId);
  }
  expect(await expectEqual(organisationId)).toBe(90);
  expect((await lake.files(organisationId)).length).toBeLessThan(12);
  expect(lake.calls.some((call) => call.includes('_last_checkpoint') && call.startsWith('putFile'))).toBe(
    true,
  );
});
