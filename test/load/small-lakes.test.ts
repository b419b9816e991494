// @module-tag full

import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { readConfig } from '../../src/config.ts';
import { LakeKeeper } from '../../src/lake/keep-lake.ts';
import { organisationsWaiting } from '../../src/lake/lake-progress.ts';
import { LakeSlots } from '../../src/lake/lake-slots.ts';
import { lakeLimits } from '../../src/lake/limits.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { type CountingPostgres, startCountingPostgres } from '../support/counting-postgres.ts';
import { servingUrl } from '../support/database.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { newInteractions, runRound, storedRows, WrittenLake } from '../support/written-lake.ts';

/**
 * LAKE_ORGANISATIONS small organisations send a little data every hour for a day, and their lakes are written just as
 * often. Each lake must end up with few files. Once the organisations are idle, they must cause no requests to the
 * store and no database queries of their own.
 *
 * This test is not part of the checks. With 10 organisations, it takes a minute. The full run is:
 * LAKE_ORGANISATIONS=1000 npx vitest run test/load/small-lakes.test.ts
 */
const count = Number(process.env.LAKE_ORGANISATIONS ?? 0);
const hours = 24;
const filesMax = 50;
const idleRounds = 20;

let postgres: CountingPostgres;
let test: TestApp;
let pool: OwnPool;
const lake = new WrittenLake();
const shop = newShop();
const organisations: { readonly organisationId: string; readonly key: string }[] = [];

beforeAll(async () => {
  if (count === 0) return;
  postgres = await startCountingPostgres();
  test = await createTestApp(postgres.url);
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(postgres.url) }), () => {});
  for (let at = 0; at < count; at++) {
    const organisation = await test.organisation(`small-${at}`);
    organisations.push(organisation);
    await upload(organisation.key, '/v1/data/shops', [shop]);
  }
  await queryDatabase(postgres.url, 'update organisations set lake = true');
}, 3_600_000);
afterAll(async () => {
  await pool?.end();
  await test?.close();
  await postgres?.stop();
  await lake.close();
});

async function upload(key: string, url: string, records: object[]): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  const { statusCode, body } = await test.app.inject({ method: 'POST', url, headers, payload: { records } });
  expect(statusCode, body).toBe(200);
}

/** Returns the number of files in the current version of each table. */
function liveFiles(organisationId: string): Map<string, number> {
  const base = join(fileURLToPath(lake.url), organisationId);
  return new Map(
    readdirSync(base).map((table) => {
      const log = join(base, table, '_delta_log');
      const files = new Set<string>();
      for (const name of readdirSync(log)
        .filter((one) => one.endsWith('.json'))
        .sort())
        for (const line of readFileSync(join(log, name), 'utf8').trim().split('\n')) {
          const { add, remove } = JSON.parse(line);
          if (remove) files.delete(remove.path);
          if (add) files.add(add.path);
        }
      return [table, files.size];
    }),
  );
}

it.runIf(count > 0)(
  'small lakes have few files, and cost nothing while nothing comes',
  { timeout: 86_400_000 },
  async () => {
    const slots = new LakeSlots(pool);
    const failures: unknown[] = [];
    const keeper = new LakeKeeper({
      pool,
      slots,
      writer: lake.writer(pool),
      // Each round represents an hour, so it writes all new rows immediately.
      delayMs: 0,
      log: {
        looked: () => {},
        stepped: () => {},
        recovered: () => {},
        failed: (error) => failures.push(error),
      },
    });
    // A round takes longer than the time for which a process holds its slots without renewing them.
    await slots.renew();
    const renewing = setInterval(
      () => slots.renew().catch((error) => failures.push(error)),
      lakeLimits.slotRenewMs,
    );
    const transactions = many(10, () => newTransaction(shop.shop_id));
    for (let hour = 0; hour < hours; hour++) {
      for (const { key } of organisations) {
        await upload(key, '/user-interactions/batch', newInteractions(5, shop.shop_id));
        const changed = transactions[hour % transactions.length] as object;
        await upload(key, '/v1/data/transactions', [
          { ...changed, amount: hour + 1 },
          { ...newTransaction(shop.shop_id), transaction_id: randomUUID() },
        ]);
      }
      await numberForAll(test.pool);
      const startedMs = performance.now();
      await runRound(keeper);
      console.log(`hour ${hour + 1}: written in ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`);
    }
    expect(failures).toEqual([]);
    const files = organisations.map(({ organisationId }) => liveFiles(organisationId));
    const sums = files.map((tables) => [...tables.values()].reduce((sum, some) => sum + some, 0));
    console.log(
      `at most ${Math.max(...sums)} files of an organisation: ${JSON.stringify([...(files[0] ?? [])])}`,
    );
    expect(Math.max(...sums)).toBeLessThan(filesMax);
    const [first] = organisations;
    const stored = await storedRows(test.pool, first?.organisationId ?? '');
    expect(stored).toHaveLength(5 * hours);
    expect(await lake.rows(first?.organisationId ?? '')).toEqual(stored);

    // Finish any remaining work first.
    for (let round = 0; round < 3; round++) await runRound(keeper);
    const ids = organisations.map(({ organisationId }) => organisationId);
    expect(await organisationsWaiting(pool, ids)).toEqual([]);
    clearInterval(renewing);
    await slots.renew();
    expect(ids.filter((id) => !slots.isHeld(id))).toEqual([]);
    lake.calls.length = 0;
    await postgres.reset();
    for (let round = 0; round < idleRounds; round++) await runRound(keeper);
    const calls = await postgres.calls();
    const statements = calls.reduce((sum, { calls: some }) => sum + some, 0);
    console.log(
      `${count} idle lakes: ${lake.calls.length} requests to the store, ${statements} statements in ${idleRounds} rounds`,
    );
    expect(lake.calls).toEqual([]);
    // Each round has one query for all organisations, and occasionally one that lists the lakes.
    expect(statements).toBeGreaterThanOrEqual(idleRounds);
    expect(statements).toBeLessThanOrEqual(3 * idleRounds);
    expect(failures).toEqual([]);
  },
);
