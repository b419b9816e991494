// @module-tag full

import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { exchange } from '../support/exchange.ts';
import { takenMax, watchOthers } from '../support/in-time.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/**
 * Tests two organisations, one of which has erased a million people (ERASED_PEOPLE, by default 200,000). Its uploads
 * must be at least 0.9 times as fast as the other's. Then a thousand people are erased from many transactions
 * (ERASE_FROM rows), and uploads must continue at no less than 0.6 times their earlier rate. On a quiet machine, the
 * goals are 0.97 and 0.9.
 */
const erased = Number(process.env.ERASED_PEOPLE ?? 200_000);
const stored = Number(process.env.ERASE_FROM ?? 100_000);
const people = Math.min(1_000, stored / 40);
const attemptsMax = 3;
const shareMin = 0.6;
const rounds = 20;
const roundsMax = 10 * rounds;

let server: BuiltServer;
const agent = new Agent({ keepAlive: true });
const keys: Record<string, string> = {};
const shop = newShop();
const scopes = ['data:write', 'data:read', 'data:erase'];

beforeAll(async () => {
  server = await startBuiltServer();
  for (const slug of ['nobody', 'many', 'large']) {
    keys[slug] = await server.createKey(slug, ...scopes);
    await upload(slug, 'shops', [shop]);
  }
  await ask(
    `insert into suppressions (organisation_id, hash, filter, erasure_id, version)
     select organisation_id, sha256(n::text::bytea), hashtextextended(n::text, 7), gen_random_uuid(), 1
     from organisations cross join generate_series(1, $1::integer) n where slug = 'many'`,
    [erased],
  );
  await ask(
    `update tenants set suppressions_version = 1 where organisation_id = (select organisation_id from organisations where slug = 'many')`,
  );
});
afterAll(async () => {
  agent.destroy();
  await server.stop();
});

const ask = <Row extends object>(text: string, values: readonly unknown[] = []) =>
  queryDatabase<Row & Record<string, unknown>>(server.databaseUrl, text, values);

async function upload(slug: string, type: string, records: unknown[]): Promise<number> {
  const { status, ms } = await exchange(`${server.url}/v1/data/${type}`, {
    agent,
    key: keys[slug] as string,
    body: { records },
  });
  expect(status).toBe(200);
  return ms;
}

const uploadPurchases = (slug: string) =>
  upload(
    slug,
    'transactions',
    many(1_000, () => newTransaction(shop.shop_id, { student_id: randomUUID() })),
  );

const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number;

it('uploads with many erased people are as fast as without', async () => {
  const times: Record<string, number[]> = { nobody: [], many: [] };
  // The first upload loads the hashes of the erased people.
  for (const slug of Object.keys(times)) await uploadPurchases(slug);
  let share = 0;
  for (let round = 1; round <= roundsMax && (round <= rounds || share < 0.9); round++) {
    for (const [slug, took] of Object.entries(times)) took.push(await uploadPurchases(slug));
    share = median(times.nobody as number[]) / median(times.many as number[]);
  }
  console.log(`with ${erased} erased people: ${share.toFixed(2)} of the rate without`);
  expect(share).toBeGreaterThanOrEqual(0.9);
});

it('a thousand people are erased from many rows while uploads continue', async () => {
  await ask(
    `insert into customers (organisation_id, customer_id, user_id, region, is_deleted)
     select organisation_id, md5('customer ' || n)::uuid, md5('user ' || n)::uuid, 'GB', false
     from organisations cross join generate_series(1, $1::integer) n where slug = 'large'`,
    [stored / 10],
  );
  await ask(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, is_deleted)
     select organisation_id, gen_random_uuid(), $2, 'GB', 2.5, 22.49, md5('customer ' || 1 + n % $3)::uuid, false
     from organisations cross join generate_series(1, $1::integer) n where slug = 'large'`,
    [stored, shop.shop_id, stored / 10],
  );
  const shareTaken = watchOthers();
  let share = 0;
  // Other load can only make an attempt slower, so one good attempt is enough.
  for (let attempt = 0; attempt < attemptsMax && share < shareMin; attempt++)
    share = await shareWhileErasing(1 + attempt * people);
  if (share < shareMin && shareTaken() > takenMax)
    return console.log('rates need a machine of which others take less');
  expect(share).toBeGreaterThanOrEqual(shareMin);
});

/** Erases people, from this number on, and returns at which share of the rate before it records are uploaded meanwhile. */
async function shareWhileErasing(first: number): Promise<number> {
  const before = many(15, () => 0);
  for (const at of before.keys()) before[at] = await uploadPurchases('large');
  const chosen = await ask<{ id: string }>(
    `select md5('customer ' || n)::uuid as id from generate_series($1::integer, $2::integer) n`,
    [first, first + people - 1],
  );
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${keys.large}` };
  const startedMs = performance.now();
  const answer = await fetch(`${server.url}/v1/erasures`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ customer_ids: chosen.map(({ id }) => id) }),
  });
  const { erasure_id, known } = (await answer.json()) as { erasure_id: string; known: number };
  expect(known).toBe(people);
  const during: number[] = [];
  let erasure = { state: 'pending', rows: {} as Record<string, number> };
  while (erasure.state !== 'swept') {
    during.push(await uploadPurchases('large'));
    erasure = (await (
      await fetch(`${server.url}/v1/erasures/${erasure_id}`, { headers })
    ).json()) as typeof erasure;
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  const share = median(before) / median(during);
  console.log(
    `${people} people erased from ${stored} transactions in ${seconds.toFixed(0)} s, uploads meanwhile at ${share.toFixed(2)}`,
  );
  expect(erasure.rows).toMatchObject({ customers: people, transactions: people * 10 });
  expect(seconds).toBeLessThan(600);
  return share;
}
