// @module-tag full

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Attack, Attacked } from '../support/attacker.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { exchange } from '../support/exchange.ts';
import { expectInTime } from '../support/in-time.ts';
import { many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import { forgetPeak, residentMegabytes } from '../support/process-state.ts';
import { queryDatabase } from '../support/query-database.ts';
import { rawPost } from '../support/raw-http.ts';

/**
 * Sends sixteen concurrent malicious requests of each kind to a process with a small heap. In the meantime, the process
 * must respond, and another organisation's uploads must be as fast as ever.
 */
/** All attacks run on the same process, so that the memory left by one kind affects the next. */
const attacks = Number(process.env.ATTACKS ?? 16);
/** The number of stored rejections, which four clients replay at the same time. */
const rejections = attacks < 1_000 ? 10_000 : 100_000;
const heapMb = 512;
const liveMsMax = 250;
const neighbourMsMax = 1_000;

let server: BuiltServer;
let hostile: string;
let neighbour: string;
let attacker: ChildProcess;
let quietMedianMs: number;
const folder = mkdtempSync(join(tmpdir(), 'intake-attack-'));
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  server = await startBuiltServer({ NODE_OPTIONS: `--max-old-space-size=${heapMb}` });
  [hostile, neighbour] = [await server.createKey('hostile'), await server.createKey('neighbour')];
  attacker = fork(new URL('../support/attacker.ts', import.meta.url));
  const { uploads } = await watch(() => sleep(1_500));
  quietMedianMs = median(uploads.map(({ ms }) => ms));
});
afterAll(async () => {
  agent.destroy();
  attacker.kill();
  await server.stop();
  rmSync(folder, { recursive: true });
});

const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;

interface Answered {
  readonly status: number;
  readonly ms: number;
}

/** Runs `work` while a neighbour uploads ten records at a time and the liveness probe is polled. */
async function watch(work: () => Promise<unknown>): Promise<{ uploads: Answered[]; probes: Answered[] }> {
  let isOver = false;
  const repeat = async (ask: () => Promise<Answered>) => {
    const answers: Answered[] = [];
    while (!isOver) {
      answers.push(await ask());
      await sleep(25);
    }
    return answers;
  };
  const uploads = repeat(() =>
    exchange(`${server.url}/v1/data/tags`, {
      agent,
      key: neighbour,
      body: { records: many(10, () => newTag()) },
    }),
  );
  const probes = repeat(() => exchange(`${server.url}/health/live`, { agent }));
  await work().finally(() => {
    isOver = true;
  });
  return { uploads: await uploads, probes: await probes };
}

async function attack(name: string, request: Buffer, more: Partial<Attack> = {}): Promise<Attacked> {
  const file = join(folder, name);
  writeFileSync(file, request);
  attacker.send({ url: server.url, file, count: attacks, atOnce: 16, ...more });
  const [statuses] = (await once(attacker, 'message')) as [Attacked];
  return statuses;
}

/** Checks that other organisations are not affected while one organisation misbehaves. */
async function expectUnharmed(name: string, work: () => Promise<unknown>): Promise<void> {
  await expectInTime(async () => {
    const { uploads, probes } = await watch(work);
    const slowest = (answers: readonly Answered[]) => Math.max(...answers.map(({ ms }) => ms));
    console.log(
      `${name}: alive within ${slowest(probes).toFixed(0)} ms (${probes.length} times), the neighbour's uploads within ` +
        `${slowest(uploads).toFixed(0)} ms (${uploads.length} times; quiet median ${quietMedianMs.toFixed(0)} ms)`,
    );
    expect(server.process.exitCode).toBeNull();
    expect(new Set(uploads.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(probes.map(({ status }) => status))).toEqual(new Set([200]));
    return [
      { what: 'alive', ms: slowest(probes), promisedMs: liveMsMax },
      { what: 'upload', ms: slowest(uploads), promisedMs: Math.max(neighbourMsMax, 3 * quietMedianMs) },
    ];
  });
}

/**
 * Checks that all statuses are allowed, and that at least one of `allowed` occurs. Requests that had to wait for the
 * attacker's other requests may also get 429 or 503.
 */
function expectStatuses(statuses: Attacked, allowed: readonly number[]): void {
  const met = Object.keys(statuses).map(Number);
  expect(met.filter((status) => ![...allowed, 429, 503].includes(status))).toEqual([]);
  expect(met.filter((status) => allowed.includes(status))).not.toEqual([]);
}

function post(path: string, body: string | Buffer, ...headers: string[]): Buffer {
  const all = [
    `Authorization: Bearer ${hostile}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  return rawPost(path, all, body);
}

function compressed(path: string, text: string): Buffer {
  return post(path, gzipSync(text), 'Content-Encoding: gzip');
}

function get(path: string): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${hostile}\r\n\r\n`);
}

/** Returns eleven million empty objects, which are 32 MB, or 32 KB compressed. */
const empties = () => `${'{},'.repeat(11_000_000)}{}`;
const records = (all: readonly unknown[]) => JSON.stringify({ records: all });

it.each<[string, number[], () => Buffer]>([
  [
    'an interaction of millions of objects',
    [413],
    () => compressed('/user-interactions', `{"x":[${empties()}]}`),
  ],
  [
    'an upload of millions of records',
    [400],
    () => compressed('/v1/data/tags', `{"records":[${empties()}]}`),
  ],
  [
    'an upload with millions of objects next to its records',
    [400],
    () => compressed('/v1/data/tags', `{"x":[${empties()}],"records":[${JSON.stringify(newTag())}]}`),
  ],
  [
    'a record with millions of objects in an unknown field',
    [400],
    () => compressed('/v1/data/tags', records([newTag()]).replace('}', `,"x":[${empties()}]}`)),
  ],
  [
    'records with as many objects as possible',
    [207],
    () => {
      const full = JSON.stringify({ ...newTag(), x: [] }).replace('[]', `[${'{},'.repeat(21_000)}{}]`);
      return compressed('/v1/data/tags', `{"records":[${Array(500).fill(full).join()},{}]}`);
    },
  ],
  [
    'records of a thousand unknown fields',
    [200],
    () => {
      const names = Array.from({ length: 900 }, (_, at) => `"k${at}":1`).join();
      const wide = JSON.stringify(newTag()).replace('}', `,${names}}`);
      return compressed('/v1/data/tags', `{"records":[${Array(3_500).fill(wide).join()}]}`);
    },
  ],
  ['empty records', [400], () => post('/v1/data/tags', records(many(5_000, () => ({}))))],
  [
    'large records that fail',
    [400],
    () =>
      compressed(
        '/v1/data/tags',
        records(many(480, () => ({ ...newTag(), name: 7, x: 'x'.repeat(65_000) }))),
      ),
  ],
  [
    'one id five thousand times',
    [200],
    () => {
      const tag = newTag();
      return post('/v1/data/tags', records(many(5_000, (at) => ({ ...tag, name: `name ${at}` }))));
    },
  ],
])('%s', { timeout: 800_000 }, async (name, allowed, make) => {
  const request = make();
  await expectUnharmed(name, async () => {
    const statuses = await attack('request', request);
    console.log(name, statuses);
    expectStatuses(statuses, allowed);
  });
});

it('summaries and replays of a great many rejections', async () => {
  await queryDatabase(
    server.databaseUrl,
    `insert into rejection_kinds select organisation_id, gen_random_uuid(), 'transactions', array['shop_id'],
       array['reference_not_found'], array['is missing'], now(), ${rejections} from organisations where slug = 'hostile';
     insert into rejections (organisation_id, rejection_id, type, kind_id, request_id, index, record_id, record)
     select organisation_id, uuidv7(), 'transactions', kind_id, uuidv7(), n, gen_random_uuid(), '{}'
     from rejection_kinds cross join generate_series(1, ${rejections}) n where type = 'transactions'`,
  );
  await expectUnharmed('summaries', async () => {
    const statuses = await attack('summary', get('/v1/rejections/summary'), {
      count: Math.max(attacks, 60),
      atOnce: 30,
    });
    console.log('summaries', statuses);
    expectStatuses(statuses, [200]);
  });
  const large = many(500, () => newTransaction(newShop().shop_id, { source: 'x', note: 'x'.repeat(60_000) }));
  const stored = await exchange(`${server.url}/v1/data/transactions`, {
    agent,
    key: hostile,
    body: { records: large },
  });
  expect(stored.status).toBe(400);
  await expectUnharmed('replays', async () => {
    const statuses = await attack('replay', post('/v1/rejections/replay?type=transactions', ''), {
      count: 4,
      atOnce: 4,
    });
    console.log('replays', statuses);
    expectStatuses(statuses, [200, 207, 400]);
  });
});

it('unread pages', async () => {
  const { databaseUrl: DATABASE_URL } = server;
  await server.stop();
  // With plenty of memory, V8 does not collect garbage. A 512 MB heap limits the garbage, and is too small for all
  // pages (1,600 MB).
  server = await startBuiltServer({
    DATABASE_URL,
    NODE_OPTIONS: '--max-old-space-size=512',
    BYTES_IN_FLIGHT_MAX: String(64 * 2 ** 20),
  });
  // Each page contains records that failed in the test above, and is 4 MB large.
  const first = await exchange(`${server.url}/v1/rejections?code=wrong_type&limit=1000`, {
    agent,
    key: hostile,
  });
  expect(first.body.length).toBeGreaterThan(2_000_000);
  forgetPeak(server.process.pid);
  const before = residentMegabytes(server.process.pid, 'VmRSS');
  await expectUnharmed('unread pages', async () => {
    await attack('pages', get('/v1/rejections?code=wrong_type&limit=1000'), {
      count: 400,
      atOnce: 50,
      unread: true,
    });
    await sleep(1_000);
  });
  const growthMb = residentMegabytes(server.process.pid, 'VmHWM') - before;
  console.log(`400 unread pages take ${growthMb.toFixed(0)} MB`);
  // The limit covers the organisation's bytes in flight, the memory for building a few pages, and garbage.
  expect(growthMb).toBeLessThan(800);
});
