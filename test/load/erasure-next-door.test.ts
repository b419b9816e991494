// @module-tag full

import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectSwept, requestErasure } from '../support/erase-people.ts';
import { exchange } from '../support/exchange.ts';
import { fillVisits } from '../support/fill-visits.ts';
import { takenMax, watchOthers } from '../support/in-time.ts';
import { many, newShop, newTag } from '../support/new-records.ts';
import { slowness } from '../support/slowness.ts';

/**
 * An organisation has 50,000 open ids, among them a student who was seen with a million user ids (ERASED_USERS, by default
 * 300,000). Meanwhile another organisation uploads and erases single people.
 */

const users = Number(process.env.ERASED_USERS ?? 300_000);
const openIds = 50_000;
const idsPerErasure = 5_000;
const sweptMsMax = 10_000;
const attemptsMax = 5;
const roundMs = 2_000;
/** A slow machine would be busy with uploads alone. */
const perSecond = 40 / slowness();

let server: BuiltServer;
let large: Api;
let small: Api;
let smallKey: string;
const shop = newShop();
const agent = new Agent({ keepAlive: true });
beforeAll(async () => {
  const watch = new URL('../support/watch-loop.ts', import.meta.url);
  server = await startBuiltServer({ NODE_OPTIONS: `--import=${watch.href}` });
  large = apiOf(server.url, await server.createKey('large', ...everyPermission));
  smallKey = await server.createKey('small', ...everyPermission);
  small = apiOf(server.url, smallKey);
  for (const api of [large, small]) await api.upload('shops', [shop]);
});
afterAll(async () => {
  agent.destroy();
  await server.stop();
});

const p99Of = (times: readonly number[]) =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] as number;
const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number;

/** Uploads at a steady rate for a round, whatever the responses are. Returns the 99th percentile of the durations. */
async function p99(): Promise<number> {
  const uploads: ReturnType<typeof exchange>[] = [];
  const startMs = performance.now();
  for (let at = 0; at < (roundMs / 1_000) * perSecond; at++) {
    await sleep(Math.max(0, startMs + (at * 1_000) / perSecond - performance.now()));
    const body = { records: many(2, () => newTag()) };
    uploads.push(exchange(`${server.url}/v1/data/tags`, { agent, key: smallKey, body }));
  }
  const answers = await Promise.all(uploads);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  return p99Of(answers.map(({ ms }) => ms));
}

/** Erases a customer of the small organisation, and returns how long it takes until they are swept. */
async function eraseOne(): Promise<number> {
  const customer = { customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' };
  await small.upload('customers', [customer]);
  const startMs = performance.now();
  await expectSwept(small, await requestErasure(small, { customer_ids: [customer.customer_id] }));
  return performance.now() - startMs;
}

/** Returns the id of a new student of the large organisation, who was seen with all the user ids. */
async function newStudent(): Promise<string> {
  const student = randomUUID();
  await large.upload('customers', [{ customer_id: student, user_id: randomUUID(), region: 'GB' }]);
  await fillVisits(server.databaseUrl, { slug: 'large', student, shopId: shop.shop_id, users });
  return student;
}

interface Measured {
  /** The 99th percentiles of uploads before and during large erasures. */
  readonly before: number[];
  readonly during: number[];
  /** How long single erasures took meanwhile. */
  readonly sweptMs: number[];
  /** How long the event loop was blocked, for too long each time. */
  readonly blocked: string[];
}

async function measure(): Promise<Measured> {
  const student = await newStudent();
  for (let round = 0; round < 3; round++) await p99();
  const before: number[] = [];
  const sweptBeforeMs: number[] = [];
  const measureInto = async (percentiles: number[], swept: number[]) => {
    const [taken, one] = await Promise.all([p99(), eraseOne()]);
    percentiles.push(taken);
    swept.push(one);
  };
  for (let round = 0; round < 7; round++) await measureInto(before, sweptBeforeMs);

  const linesBefore = server.log.length;
  const erasures = [await requestErasure(large, { customer_ids: [student] })];
  // Some of the ids are swept before the last ones are requested, so there are never more than 50,000.
  for (let at = 0; at < openIds / idsPerErasure - 1; at++)
    erasures.push(
      await requestErasure(large, { user_ids: many(idsPerErasure, () => `visitor-${randomUUID()}`) }),
    );
  const isOpen = async () => {
    const { body } = await large.get(`/v1/erasures/${erasures[0]}`);
    return body.state === 'running' || body.state === 'pending';
  };
  const during: number[] = [];
  const sweptMs: number[] = [];
  while ((await isOpen()) && sweptMs.length < 10) await measureInto(during, sweptMs);
  const blocked = server.log.slice(linesBefore).filter((line) => line.startsWith('blocked for'));
  const shown = (numbers: readonly number[]) => numbers.map((ms) => ms.toFixed(0)).join(', ');
  console.log(
    `p99 before: ${shown(before)} ms, during: ${shown(during)} ms; ` +
      `one person swept before: ${shown(sweptBeforeMs)} ms, during: ${shown(sweptMs)} ms; ` +
      `${blocked.length === 0 ? 'never blocked' : blocked.join(', ')}`,
  );
  // Otherwise the large erasure was over before anything was measured.
  expect(sweptMs.length).toBeGreaterThanOrEqual(3);
  // Otherwise these erasures would still run in the next attempt, and there would be more than 50,000 ids.
  for (const erasure of erasures) await expectSwept(large, erasure);
  // The machine may have become slower since the process started.
  const blockedMsMin = 50 * slowness();
  return {
    before,
    during,
    sweptMs,
    blocked: blocked.filter((line) => Number(/\d+/.exec(line)?.[0]) > blockedMsMin),
  };
}

it('an organisation that erases as much as it may does not hold up another one', {
  timeout: 3_600_000,
}, async () => {
  const shareTaken = watchOthers();
  for (let attempt = 1; ; attempt++) {
    const { before, during, sweptMs, blocked } = await measure();
    const promisedMs = sweptMsMax * slowness();
    const isSlow =
      Math.max(...sweptMs) >= promisedMs || median(during) > 2 * median(before) || blocked.length > 0;
    // Other load can only make an attempt slower, so one good attempt is enough. A machine that is paused looks as if the
    // process had computed, but what blocks the event loop by itself does so in every attempt.
    if (isSlow && attempt < attemptsMax) continue;
    expect(blocked).toEqual([]);
    if (isSlow && shareTaken() > takenMax)
      return console.log('times need a machine of which others take less');
    expect(Math.max(...sweptMs)).toBeLessThan(promisedMs);
    return expect(median(during)).toBeLessThanOrEqual(2 * median(before));
  }
});
