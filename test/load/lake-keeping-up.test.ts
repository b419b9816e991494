// @module-tag full

import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { lakeLagSeconds } from '../../src/lake/lake-progress.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { servingUrl } from '../support/database.ts';
import { exchange } from '../support/exchange.ts';
import { childrenOf } from '../support/freezable-postgres.ts';
import {
  cpuSecondsOf,
  idleShare,
  LakeConnections,
  type OwnPostgres,
  processorTicks,
  startLakeProcess,
  startOwnPostgres,
} from '../support/lake-process.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/**
 * Four organisations send LAKE_RATE interactions per second, first without the lake for a third of LAKE_MINUTES, then
 * with the lake for LAKE_MINUTES. The test prints the lag, the CPU time and bytes per interaction, and how much slower
 * uploads become. After that, it prints the full speed of uploads with and without the lake. The targets apply to a
 * quiet machine, at a rate that leaves a quarter of its CPU idle without the lake.
 *
 * This test is not part of the checks. With LAKE_MINUTES=0.4, it takes two minutes. The full run is:
 * LAKE_MINUTES=15 LAKE_RATE=18000 npx vitest run test/load/lake-keeping-up.test.ts
 */
const minutes = Number(process.env.LAKE_MINUTES ?? 0);
const rate = Number(process.env.LAKE_RATE ?? 1_000);
const organisations = 4;
const perRequest = 100;
const rounds = minutes >= 5 ? 8 : 2;
const roundMs = minutes >= 5 ? 30_000 : 5_000;
/** The targets are checked only if there are at least this many rows. With fewer, the start-up cost would distort them. */
const rowsToJudge = 500_000;

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const folder = mkdtempSync(join(tmpdir(), 'intake-lake-rate-'));
const lakeUrl = pathToFileURL(folder).href;
const shops = many(500, () => newShop());
let postgres: OwnPostgres;
let server: BuiltServer;
let pool: OwnPool;
const keys: string[] = [];

const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)] as T;

/** Returns an interaction. Its values vary like real ones, because repeated rows would compress much better. */
function newInteraction(): object {
  return {
    interaction_type: pick(['PAGE_VIEW', 'PAGE_VIEW', 'SHARE', 'DISCOUNT_CODE', 'FILTER_CLICK']),
    user_id: `visitor-${Math.floor(Math.random() * 200_000)}`,
    item_type: 'SHOP',
    item_id: pick(shops).shop_id,
    city: pick(['Leeds', 'Manchester', 'Bristol', 'Dublin', 'Utrecht', 'Glasgow', 'Cork', 'Leiden']),
    country: pick(['GB', 'IE', 'NL']),
    platform: pick(['ANDROID', 'IOS', 'WEB']),
    event_timestamp: new Date(Date.now() - Math.floor(Math.random() * 5_000)).toISOString(),
    ...(Math.random() < 0.3 && { source: 'SERVICE', recommendation_id: randomUUID() }),
  };
}

beforeAll(async () => {
  if (minutes === 0) return;
  postgres = await startOwnPostgres({ max_wal_size: '4GB', shared_buffers: '512MB' });
  server = await startBuiltServer({ DATABASE_URL: postgres.url });
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(postgres.url) }), () => {});
  for (let at = 0; at < organisations; at++) {
    const key = await server.createKey(`busy-${at}`);
    await exchange(`${server.url}/v1/data/shops`, { agent, key, body: { records: shops } });
    keys.push(key);
  }
});
afterAll(async () => {
  agent.destroy();
  await pool?.end();
  await server?.stop();
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function send(at: number): Promise<number> {
  const key = keys[at % keys.length] as string;
  const body = { records: many(perRequest, newInteraction) };
  const { status, ms } = await exchange(`${server.url}/user-interactions/batch`, { agent, key, body });
  expect(status).toBe(200);
  return ms;
}

interface Sent {
  readonly rows: number;
  readonly perSecond: number;
  readonly p99Ms: number;
  readonly idle: number;
}

const p99 = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length * 0.99)] ?? 0;
const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** Sends at a constant rate: each request starts on schedule, whether or not the previous requests have been answered. */
async function sendAtRate(ms: number): Promise<Sent> {
  const [startedMs, ticks] = [performance.now(), processorTicks()];
  const times: number[] = [];
  const sent: Promise<unknown>[] = [];
  for (let at = 0; performance.now() - startedMs < ms; at++) {
    const dueMs = startedMs + (at * perRequest * 1_000) / rate;
    if (dueMs > performance.now()) await sleep(dueMs - performance.now());
    sent.push(send(at).then((took) => times.push(took)));
  }
  await Promise.all(sent);
  const seconds = (performance.now() - startedMs) / 1_000;
  const rows = times.length * perRequest;
  return { rows, perSecond: rows / seconds, p99Ms: p99(times), idle: idleShare(ticks, processorTicks()) };
}

/** Sends as fast as eight clients can. Returns interactions per second. */
async function sendAllOut(ms: number): Promise<number> {
  const startedMs = performance.now();
  let requests = 0;
  const client = async (first: number) => {
    for (let at = first; performance.now() - startedMs < ms; at++) {
      await send(at);
      requests++;
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, at) => client(at)));
  return (requests * perRequest * 1_000) / (performance.now() - startedMs);
}

const shown = ({ perSecond, p99Ms, idle }: Sent) =>
  `${perSecond.toFixed(0)}/s, p99 ${p99Ms.toFixed(0)} ms, ${(100 * idle).toFixed(0)} % of the machine idle`;

/** Sends a signal to a process and its children. */
function signal({ pid = 0 }: ChildProcess, name: 'SIGSTOP' | 'SIGCONT'): void {
  for (const one of [pid, ...childrenOf(pid)]) process.kill(one, name);
}

/** Returns the total size of all lakes: data files and log files. */
function bytesOfLakes(): { data: number; log: number } {
  const bytes = { data: 0, log: 0 };
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (file.isFile()) {
      const { size } = statSync(join(file.parentPath, file.name));
      bytes[file.parentPath.includes('_delta_log') ? 'log' : 'data'] += size;
    }
  return bytes;
}

it.runIf(minutes > 0)('the lake keeps up, and costs little', { timeout: 14_400_000 }, async () => {
  await sendAtRate(5_000);
  const without = await sendAtRate((minutes * 60_000) / 3);
  console.log(`${rate} interactions/s in requests of ${perRequest}. Without the lake: ${shown(without)}`);
  for (let at = 0; at < organisations; at++)
    await server.run('organisations', 'set-lake', `busy-${at}`, 'on');
  const running = await startLakeProcess(postgres, lakeUrl);
  // Wait for the initial copy, which is not part of the measurement.
  const copying = () =>
    queryDatabase(
      postgres.url,
      `select from organisations left join lake_progress p using (organisation_id)
       where lake and (p.organisation_id is null or copied_after is not null)`,
    );
  await expect.poll(copying, { timeout: 600_000, interval: 500 }).toEqual([]);
  const rowsInLakes = async () =>
    Number(
      (
        await queryDatabase<{ rows: string }>(
          postgres.url,
          `select sum(size) as rows from changes c join lake_progress p using (organisation_id)
         where c.type = 'interactions' and c.number <= p.number`,
        )
      )[0]?.rows,
    );
  const connections = new LakeConnections(postgres.url);
  await connections.look();
  const [cpuBefore, rowsBefore, bytesBefore] = [
    cpuSecondsOf(running.pid ?? 0),
    await rowsInLakes(),
    bytesOfLakes(),
  ];
  const lags: number[] = [];
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      lags.push(await lakeLagSeconds(pool));
      await connections.look();
      await sleep(1_000);
    }
  })();
  const during = await sendAtRate(minutes * 60_000);
  // The last rows reach the lake after a minute.
  await expect
    .poll(async () => await lakeLagSeconds(pool), { timeout: 600_000, interval: 1_000 })
    .toBeLessThan(5);
  isOver = true;
  await watching;
  const rows = (await rowsInLakes()) - rowsBefore;
  const cpu = cpuSecondsOf(running.pid ?? 0) - cpuBefore;
  const ofPostgres = connections.seconds;
  const bytes = bytesOfLakes();
  const perRow = (sum: number) => ((sum * 1e6) / rows).toFixed(1);
  const written = bytes.data + bytes.log - bytesBefore.data - bytesBefore.log;
  console.log(
    `With the lake: ${shown(during)}. ${rows} interactions: lag p99 ${p99(lags).toFixed(0)} s, at most ` +
      `${Math.max(...lags).toFixed(0)} s; ${perRow(cpu)} µs of CPU in the lake process, ${perRow(ofPostgres)} µs in PostgreSQL; ` +
      `${(written / rows).toFixed(1)} bytes, of which the log ${((bytes.log - bytesBefore.log) / rows).toFixed(1)} ` +
      '(files that were merged and wait for the vacuum included)',
  );
  const [beside, alone]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    beside.push(await sendAllOut(roundMs));
    signal(running, 'SIGSTOP');
    alone.push(await sendAllOut(roundMs));
    signal(running, 'SIGCONT');
  }
  const share = median(beside) / median(alone);
  console.log(
    `As fast as possible: ${median(alone).toFixed(0)}/s without the lake, ${median(beside).toFixed(0)}/s with it (${share.toFixed(2)})`,
  );
  const ended = once(running, 'exit');
  running.kill('SIGTERM');
  await ended;
  expect(p99(lags)).toBeLessThanOrEqual(120);
  if (rows < rowsToJudge) return;
  expect((1e6 * (cpu + ofPostgres)) / rows).toBeLessThanOrEqual(30);
  expect(during.perSecond / without.perSecond).toBeGreaterThanOrEqual(0.9);
});
