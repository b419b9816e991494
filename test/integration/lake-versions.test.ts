// @module-tag full

import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { requestErasure } from '../../src/erasure/request-erasure.ts';
import { LakeTaken } from '../../src/lake/lake-progress.ts';
import type { LakeWriter } from '../../src/lake/lake-writer.ts';
import { changeOrganisation } from '../../src/operator/audited-actions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { type ResourceType, resourceTypes } from '../../src/registry/resources.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { ChangingRecords } from '../support/changing-records.ts';
import { servingUrl } from '../support/database.ts';
import { sweepErasures } from '../support/jobs.ts';
import { newStandby, writeAll as writeLake } from '../support/lake-organisation.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { forgetChanges } from '../support/report-organisation.ts';
import { untilPasses } from '../support/until-passes.ts';
import { currentRecords, storedRecords } from '../support/version-rows.ts';
import { WrittenLake } from '../support/written-lake.ts';

/**
 * The current state of every record type in the lake matches the database row by row, even if writers crash or tables are
 * lost.
 */

let test: TestApp;
/** A pool that connects as the serving role. */
let pool: OwnPool;
let lake: WrittenLake;
const never = new AbortController().signal;

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
afterEach(() => lake.close());

async function newOrganisation() {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId, key } = await test.organisation(slug);
  await changeOrganisation(test.pool, { actor: 'test' }, slug, { lake: true });
  const post = async (url: string, payload: object) => {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await test.app.inject({ method: 'POST', url, headers, payload });
    expect(answer.statusCode, answer.body).toBeLessThan(300);
    return answer.json();
  };
  const upload = async (type: string, records: readonly object[]) => {
    const { batches } = await post(`/v1/data/${type}`, { records });
    expect(batches[0].data.counts.failed, JSON.stringify(batches).slice(0, 500)).toBe(0);
  };
  const records = new ChangingRecords();
  /** Adds and changes records of the given types. */
  const change = async (types: readonly ResourceType[] = ChangingRecords.types, added = 3, changed = 5) => {
    for (const type of types) await upload(type, records.batch(type, added, changed));
  };
  return { organisationId, post, upload, change };
}

const writeAll = (writer: LakeWriter, organisationId: string) => writeLake(writer, pool, organisationId);

async function storedOf(organisationId: string): Promise<Map<ResourceType, string[]>> {
  const stored = new Map<ResourceType, string[]>();
  for (const type of resourceTypes) stored.set(type, await storedRecords(pool, organisationId, type));
  return stored;
}

/** Checks that the lake matches the database. Returns the number of records. */
async function expectEqual(organisationId: string): Promise<number> {
  const stored = await storedOf(organisationId);
  for (const [type, rows] of stored) expect(await lake.current(organisationId, type), type).toEqual(rows);
  return [...stored.values()].reduce((sum, rows) => sum + rows.length, 0);
}

const versionsOf = async (organisationId: string) =>
  Object.fromEntries(
    await Promise.all(
      resourceTypes.map(async (type) => [type, await lake.version(organisationId, type)] as const),
    ),
  ) as Record<ResourceType, number>;

it('the current state at every version that was noted is what was stored then', async () => {
  const { organisationId, change } = await newOrganisation();
  await change(ChangingRecords.types, 40, 10);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  expect(await expectEqual(organisationId)).toBeGreaterThan(100);
  const noted: { versions: Record<ResourceType, number>; stored: Map<ResourceType, string[]> }[] = [];
  for (let round = 0; round < 6; round++) {
    const types = ChangingRecords.types.filter((_, at) => (round + at) % 3 > 0);
    await change(types, round % 3, 6);
    await change(types, 0, 3);
    const before = await versionsOf(organisationId);
    await writer.step(organisationId, never);
    const versions = await versionsOf(organisationId);
    // Types without changes get no commit.
    for (const type of resourceTypes)
      expect(versions[type] - before[type], type).toBe((types as readonly string[]).includes(type) ? 1 : 0);
    noted.push({ versions, stored: await storedOf(organisationId) });
    await writer.tend(organisationId);
  }
  await expectEqual(organisationId);
  // Files have since been merged and old versions dropped, but earlier versions of the tables are still readable.
  for (const { versions, stored } of noted)
    for (const [type, rows] of stored)
      expect(await currentRecords(lake.tableFolder(organisationId, type), type, versions[type])).toEqual(
        rows,
      );
});

it('a copy of what is stored is replaced by what changes while it is made', async () => {
  const { organisationId, change } = await newOrganisation();
  await change(ChangingRecords.types, 60, 0);
  const writer = lake.writer(pool, 50);
  const copied = new Set<string | null>();
  for (let step = 0; step < 20 && !copied.has(null); step++) {
    await change(ChangingRecords.types, 1, 20);
    await writer.step(organisationId, never);
    const { rows } = await pool.query('select copied_type from lake_progress where organisation_id = $1', [
      organisationId,
    ]);
    copied.add(rows[0].copied_type);
  }
  expect(copied.size).toBeGreaterThan(3);
  await writeAll(writer, organisationId);
  await expectEqual(organisationId);
});

it('nothing is lost if a process ends at any moment, and a step that is repeated adds nothing to the tables that have it', async () => {
  const { organisationId, change } = await newOrganisation();
  await change(ChangingRecords.types, 20, 0);
  let ends = 0;
  for (let round = 0; round < 40; round++) {
    await change(
      ChangingRecords.types.filter((_, at) => (round + at) % 4 === 0),
      1,
      3,
    );
    // The process crashes before or after one of the calls that store or fetch a file, often after it has committed
    // only some of the tables.
    let left = round % 7;
    const moment = round % 2 === 0 ? 'before' : 'after';
    lake.fault = (call, at) => {
      if (at === moment && !call.startsWith('read ') && left-- === 0) throw new Error('the process ends');
    };
    const writer = lake.writer(pool, 60);
    const work = async () => {
      await writer.step(organisationId, never);
      await writer.tend(organisationId);
    };
    await work().catch((error: Error) => {
      if (error.message !== 'the process ends') throw error;
      ends++;
    });
  }
  lake.fault = () => {};
  expect(ends).toBeGreaterThan(15);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  await expectEqual(organisationId);
  // Simulate a process that crashed after its commits by restoring the previous progress in PostgreSQL.
  const { rows } = await pool.query('select * from lake_progress where organisation_id = $1', [
    organisationId,
  ]);
  await change(['shops', 'tags'], 2, 2);
  await writer.step(organisationId, never);
  const versions = await versionsOf(organisationId);
  await test.pool.query('update lake_progress set number = $2, positions = $3 where organisation_id = $1', [
    organisationId,
    rows[0].number,
    rows[0].positions,
  ]);
  await lake.writer(pool).step(organisationId, never);
  expect(await versionsOf(organisationId)).toEqual(versions);
  await expectEqual(organisationId);
});

it('two processes that write the same lake at once lose nothing', async () => {
  const { organisationId, change } = await newOrganisation();
  await change(ChangingRecords.types, 20, 0);
  const writers = many(3, () => lake.writer(pool, 40));
  let taken = 0;
  for (let round = 0; round < 6; round++) {
    await change(['shops', 'transactions'], 2, 5);
    const results = await Promise.allSettled(
      writers.map(async (writer) => {
        await writer.step(organisationId, never);
        await writer.tend(organisationId);
      }),
    );
    for (const result of results)
      if (result.status === 'rejected') {
        expect(result.reason).toBeInstanceOf(LakeTaken);
        taken++;
      }
  }
  expect(taken).toBeGreaterThan(0);
  await writeAll(lake.writer(pool), organisationId);
  await expectEqual(organisationId);
});

it('after an outage longer than the log is kept, the tables are replaced', async () => {
  const { organisationId, change } = await newOrganisation();
  await change(ChangingRecords.types, 10, 0);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  await change(ChangingRecords.types, 2, 5);
  await forgetChanges(test, organisationId);
  await change(['tags'], 1, 1);
  await writeAll(writer, organisationId);
  await expectEqual(organisationId);
});

it.each([
  ['a table that lost changes', 'shops', 'the process that wrote them'],
  ['another table', 'tags', 'another process'],
])(
  'after a standby without the last changes took over, its changes to %s reach the lake',
  async (_, changed, who) => {
    const { organisationId, upload, change } = await newOrganisation();
    const [kept, lost] = [newShop({ name: 'Kept' }), newShop({ name: 'Lost' })];
    await upload('shops', [kept]);
    await change(ChangingRecords.types, 5, 0);
    const writer = lake.writer(pool);
    await writeAll(writer, organisationId);
    const failOver = await newStandby(test, organisationId);
    for (let round = 0; round < 5; round++) await upload('shops', [{ ...kept, name: `Lost ${round}` }, lost]);
    await change(['tags'], 3, 3);
    await writeAll(writer, organisationId);
    expect((await lake.current(organisationId, 'shops')).join()).toContain('Lost 4');
    // The standby lacks these changes, and assigns their numbers again in another epoch.
    await failOver();
    await test.pool.query('delete from shops where organisation_id = $1 and shop_id = $2', [
      organisationId,
      lost.shop_id,
    ]);
    await test.pool.query('delete from tags where organisation_id = $1', [organisationId]);
    if (changed === 'shops') await upload('shops', [{ ...kept, name: 'Newest' }]);
    else await upload('tags', [{ tag_id: randomUUID(), name: 'new' }]);
    await writeAll(who === 'another process' ? lake.writer(pool) : writer, organisationId);
    await expectEqual(organisationId);
  },
);

it.each([
  ['the folder of the organisation', 'shops'],
  ['one table', 'shops'],
  ['one table', 'tags'],
] as const)('%s that was deleted is filled again, after changes to %s', async (what, changed) => {
  const { organisationId, change } = await newOrganisation();
  await change(ChangingRecords.types, 10, 0);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  // Commit twice. The first commit records where the copy started, and changes after that position are always read.
  await change(['shops'], 1, 1);
  await writeAll(writer, organisationId);
  const folder =
    what === 'one table'
      ? lake.tableFolder(organisationId, 'shops')
      : join(lake.folder, 'lake', organisationId);
  rmSync(folder, { recursive: true });
  await change([changed], 1, 1);
  await writeAll(writer, organisationId);
  await expectEqual(organisationId);
  expect(lake.lost).toEqual([what === 'one table' ? 'shops' : expect.any(String)]);
});

it('people who are being erased are not written; their records become those without them', async () => {
  const { organisationId, upload } = await newOrganisation();
  const suppressions = new Suppressions([erasureKey]);
  const [customer_id, user_id] = [randomUUID(), randomUUID()];
  const shop = newShop();
  const [bought, other] = [
    newTransaction(shop.shop_id, { student_id: customer_id }),
    newTransaction(shop.shop_id),
  ];
  await upload('shops', [shop]);
  await upload('customers', [{ customer_id, user_id, region: 'GB' }]);
  await upload('transactions', [bought, other]);
  const writer = lake.writer(pool);
  await writeAll(writer, organisationId);
  expect(await lake.current(organisationId, 'transactions')).toHaveLength(2);
  const people = { customerIds: [customer_id], userIds: [] };
  await requestErasure(
    pool,
    { organisationId, keyId: 'key', mode: 'anonymise' as const, ...people },
    await suppressions.hasherFor(pool, organisationId),
  );
  // Log a change to each hidden record.
  for (const [type, id] of Object.entries({ transactions: bought.transaction_id, customers: customer_id }))
    await test.pool.query(
      'insert into changes (organisation_id, change_id, type, size, ids) values ($1, $2, $3, 1, array[$4::uuid])',
      [organisationId, randomUUIDv7(), type, id],
    );
  await writeAll(writer, organisationId);
  expect(await lake.current(organisationId, 'transactions')).toHaveLength(1);
  const versionOfCustomers = await lake.version(organisationId, 'customers');
  await untilPasses(async () => {
    await sweepErasures(pool, suppressions);
    expect(await storedRecords(pool, organisationId, 'customers')).toEqual([]);
  });
  await writeAll(writer, organisationId);
  expect(await lake.current(organisationId, 'transactions')).toEqual(
    await storedRecords(pool, organisationId, 'transactions'),
  );
  // The log entry for deleting the customer contains the customer's id, which must not be written again.
  expect(await lake.version(organisationId, 'customers')).toBe(versionOfCustomers);
});
