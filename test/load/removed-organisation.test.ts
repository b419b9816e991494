// @module-tag full

import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { Round as JobRound } from '../../src/jobs/round.ts';
import { runJobs } from '../../src/jobs/run-jobs.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { removeOrganisations } from '../../src/removal/remove-organisations.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { servingUrl } from '../support/database.ts';
import { exchange } from '../support/exchange.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/**
 * Removes an organisation with REMOVE_ROWS transactions while eight others upload. Their rate must stay at or above 0.9
 * times the rate without the removal, and their p99 may at most double. The removal alternately runs and pauses, so
 * that other load affects both phases. After REMOVE_ROUNDS rounds, the rest is removed without uploads.
 *
 * This test is not part of the checks, because it needs a quiet machine. To run it:
 * REMOVE_ROWS=10000000 npx vitest run test/load/removed-organisation.test.ts
 */
const rows = Number(process.env.REMOVE_ROWS ?? 0);
const roundsMax = Number(process.env.REMOVE_ROUNDS ?? Number.POSITIVE_INFINITY);
const others = 8;
const recordsPerUpload = 500;
const removingMs = 20_000;
const restingMs = 10_000;

let server: BuiltServer;
const agent = new Agent({ keepAlive: true });
const shop = newShop();

const ask = <Row extends object>(text: string, values: readonly unknown[] = []) =>
  queryDatabase<Row & Record<string, unknown>>(server.databaseUrl, text, values);

beforeAll(async () => {
  if (rows === 0) return;
  server = await startBuiltServer();
  await server.createKey('large');
  // Insert in parts, so that no statement takes too long.
  for (let left = rows; left > 0; left -= 1_000_000)
    await ask(
      `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, is_deleted)
       select organisation_id, gen_random_uuid(), $2, 'GB', 2.5, 22.49, false
       from organisations cross join generate_series(1, $1::integer) where slug = 'large'`,
      [Math.min(left, 1_000_000), shop.shop_id],
    );
  await ask('vacuum analyze transactions');
  await ask('checkpoint');
}, 3_600_000);
afterAll(async () => {
  agent.destroy();
  await server?.stop();
});

async function upload(key: string, type: string, records: unknown[]): Promise<number> {
  const { status, ms } = await exchange(`${server.url}/v1/data/${type}`, { agent, key, body: { records } });
  expect(status).toBe(200);
  return ms;
}

/** Uploads for each of the other organisations, one upload after another, while `work` runs. Returns the durations. */
async function uploadWhile(keys: readonly string[], work: Promise<unknown>): Promise<Round> {
  const startedMs = performance.now();
  const times: number[] = [];
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  const uploadOn = async (key: string) => {
    while (!isOver) {
      const records = many(recordsPerUpload, () => newTransaction(shop.shop_id));
      times.push(await upload(key, 'transactions', records));
    }
  };
  await Promise.all([...keys.map(uploadOn), ended]);
  const seconds = (performance.now() - startedMs) / 1_000;
  return { times, seconds, rate: (recordsPerUpload * times.length) / seconds };
}

interface Round {
  readonly times: readonly number[];
  readonly seconds: number;
  readonly rate: number;
}

const p99 = (times: readonly number[]) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] as number;

const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number;
const summed = (rounds: readonly Round[]) => ({
  seconds: rounds.reduce((sum, { seconds }) => sum + seconds, 0),
  rate: median(rounds.map(({ rate }) => rate)),
  p99: p99(rounds.flatMap(({ times }) => times)),
});

/** Returns the number of the large organisation's remaining transactions. */
async function rowsLeft(): Promise<number> {
  const [removal] = await ask<{ removed: string | null }>(
    `select rows->>'transactions' as removed from removals`,
  );
  return removal ? rows - Number(removal.removed) : 0;
}

/** Makes this process the leader, so that the test decides when the removal runs. */
async function takeLease(): Promise<void> {
  const taken = `holder = gen_random_uuid(), ends_at = now() + interval '1 day'`;
  await expect
    .poll(async () => (await ask(`update leases set ${taken} where name = 'maintenance' returning 1`)).length)
    .toBe(1);
  // Wait until the previous leader has finished.
  await sleep(10_000);
}

it.runIf(rows > 0)(
  'others upload as before while an organisation is removed',
  { timeout: 14_400_000 },
  async () => {
    const keys: string[] = [];
    for (const at of many(others, (index) => index)) {
      const key = await server.createKey(`other-${at}`);
      await upload(key, 'shops', [shop]);
      keys.push(key);
    }
    await takeLease();
    await ask(`update organisations set deleted_at = now() - interval '31 days' where slug = 'large'`);
    const pool = createPool(readConfig({ DATABASE_URL: servingUrl(server.databaseUrl) }), () => {});
    const removal = [removeOrganisations({ deletedOrganisationsKeptDays: 30 })];
    const isThere = async () => (await ask(`select from organisations where slug = 'large'`)).length > 0;
    const [removing, resting]: [Round[], Round[]] = [[], []];
    await uploadWhile(keys, sleep(restingMs));
    while (removing.length < roundsMax && (await isThere())) {
      resting.push(await uploadWhile(keys, sleep(restingMs)));
      removing.push(await uploadWhile(keys, runJobs(pool, removal, new JobRound(removingMs))));
      console.log(`${await rowsLeft()} of ${rows} rows left`);
    }
    const left = await rowsLeft();
    const aloneMs = performance.now();
    while (await isThere()) await runJobs(pool, removal, new JobRound(removingMs));
    console.log(
      `the last ${left} rows, without uploads, in ${((performance.now() - aloneMs) / 1_000).toFixed(0)} s`,
    );
    await pool.end();
    // In the last round, the removal ran only part of the time.
    if (left === 0 && removing.length > 1) removing.pop();
    const [during, without] = [summed(removing), summed(resting)];
    const share = during.rate / without.rate;
    const slower = during.p99 / without.p99;
    const shown = ({ rate, p99: ms }: typeof during) =>
      `${rate.toFixed(0)} records/s, p99 ${ms.toFixed(0)} ms`;
    console.log(
      `${rows - left} rows removed in ${during.seconds.toFixed(0)} s (${((rows - left) / during.seconds).toFixed(0)}/s). ` +
        `Without: ${shown(without)}. Meanwhile: ${shown(during)}. Rate ${share.toFixed(2)}, p99 ${slower.toFixed(2)}`,
    );
    expect(share).toBeGreaterThanOrEqual(0.9);
    expect(slower).toBeLessThanOrEqual(2);
  },
);
