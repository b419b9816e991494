// @module-tag full
// @module-tag long

import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Random } from '../../test/fault/erasure-mixture/random.ts';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import type { NewInteraction } from '../src/index.ts';
import { allFaults, ChaosProxy } from './chaos/chaos-proxy.ts';
import {
  type Event,
  type Report,
  type Reported,
  type RunOf,
  runCommand,
  runRecord,
  runUpload,
} from './chaos/chaos-runs.ts';

/**
 * Checks from outside that the client stores interactions exactly once. Each run records interactions or uploads them, with the
 * library or the command, through a proxy that loses, doubles, delays, cuts and replaces requests and answers, to three
 * processes of the service with different limits. Commands are killed, cannot write, run twice, and get new keys. Afterwards,
 * the database must contain each interaction once if it was reported as stored, never if it was reported as failed, and at
 * most once if it was reported as unknown. A failure prints its seed.
 *
 * CHAOS_RUNS=200 CHAOS_SIZE=5000 is the long form. The first six runs suffice to start twice, rotate a key and fill a disk. CHAOS_CLIENT is the folder of another built client.
 */

const runs = Number(process.env.CHAOS_RUNS ?? 6);
const size = Number(process.env.CHAOS_SIZE ?? 600);
const isLong = runs >= 50;
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const client = process.env.CHAOS_CLIENT ?? fileURLToPath(new URL('../dist', import.meta.url));

let servers: readonly BuiltServer[];
let database: Client;

beforeAll(async () => {
  vi.spyOn(console, 'warn').mockReturnValue();
  const first = await startBuiltServer();
  const withLimit = (records: string) =>
    startBuiltServer({
      DATABASE_URL: first.databaseUrl,
      RECORDS_PER_REQUEST_MAX: records,
    });
  servers = [first, await withLimit('700'), await withLimit('90')];
  database = new Client(first.databaseUrl);
  await database.connect();
});

afterAll(async () => {
  await database.end();
  for (const server of servers) await server.stop();
});

const violations: string[] = [];
const total = { interactions: 0, stored: 0, failed: 0, unknown: 0 };
const faults = new Map<string, number>();
const note = (what: string, times = 1) => void faults.set(what, (faults.get(what) ?? 0) + times);

/** What certainly happens in a run. */
const certain: Readonly<Record<number, readonly Event[]>> = {
  2: ['started twice', 'full'],
  5: ['limited', 'key rotated'],
};
const certainlySeen = [
  'second run refused',
  'resumed',
  'key rotated',
  'could not write (limited)',
  'could not write (full)',
];

it(`${runs} runs of up to ${size} interactions store each of them as reported (seed ${seed})`, {
  timeout: 1_200_000 + runs * 20_000,
}, async () => {
  const library = await import(`${client}/index.js`);
  for (let at = 0; at < runs; at++) await runOne(at, library);
  const counted = { ...total, faults: Object.fromEntries(faults) };
  console.info(`Seed ${seed}: ${JSON.stringify(counted)}`);
  expect(violations).toEqual([]);
  const kinds = [
    ...(runs > 5 ? certainlySeen : []),
    ...(isLong ? ['killed', 'none', 'read disturbed', ...allFaults] : []),
  ];
  expect(kinds.filter((kind) => !faults.has(kind))).toEqual([]);
  expect(total.stored).toBeGreaterThan(isLong ? (runs * size) / 2 : total.interactions / 4);
});

async function runOne(at: number, library: RunOf['library']): Promise<void> {
  const random = new Random(seed + at * 7_919);
  const [server] = servers as [BuiltServer];
  const slug = `chaos-${at}`;
  const keys = [await server.createKey(slug), await server.createKey(slug)] as const;
  const shop = newShop();
  await new library.Intake({ url: server.url, key: keys[1] }).upload('shops', [shop]).finish();
  const proxy = new ChaosProxy(random.fork());
  await proxy.start();
  proxy.rate = random.pick([0.1, 0.3, 0.5, 0.7]);
  proxy.allowed = allFaults;
  const all = servers.map(({ url }) => url);
  proxy.targets = [random.pick(all)];
  // The limits change while requests are under way.
  const changing = setInterval(() => {
    proxy.targets = random.chance(0.5) ? [random.pick(all)] : all.slice(0, 1 + random.below(3));
  }, 200 + random.below(1_500));
  const share = certain[at] ? 1 : 0.4 + 0.6 * random.next();
  const interactions = many(
    Math.ceil(size * share),
    (index): NewInteraction => ({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: random.chance(0.01) ? random.uuid() : shop.shop_id,
      user_id: `${at}-${index}`,
      event_timestamp: index + 1,
    }),
  );
  const revoke = async () => void (await server.run('keys', 'revoke', keys[0].split('_')[1] ?? ''));
  const run: RunOf = {
    random: random.fork(),
    proxy,
    client,
    library,
    keys,
    processes: all,
    certain: certain[at] ?? [],
    revoke,
    interactions,
    note,
  };
  const what = ([runRecord, runUpload, runCommand] as const)[at % 3] as typeof runRecord;
  try {
    const report = await what(run);
    await proxy.settle();
    await check(`run ${at} (${what.name}, seed ${seed})`, slug, interactions, report);
  } finally {
    clearInterval(changing);
    for (const [fault, seen] of proxy.seen) note(fault, seen);
    await proxy.close();
  }
}

/** How often an interaction may be stored. */
const rightTimes: Readonly<Record<Reported, readonly number[]>> = {
  stored: [1],
  failed: [0],
  unknown: [0, 1],
};

async function check(
  run: string,
  slug: string,
  sent: readonly NewInteraction[],
  report: Report,
): Promise<void> {
  const { rows } = await database.query<{ user_id: string; times: number }>(
    `select user_id, count(*)::int as times from interactions
     where organisation_id = (select organisation_id from organisations where slug = $1) group by user_id`,
    [slug],
  );
  const stored = new Map(rows.map(({ user_id, times }) => [user_id, times]));
  const wrong = new Map<string, string[]>();
  for (const { user_id: name } of sent as readonly { user_id: string }[]) {
    const times = stored.get(name) ?? 0;
    stored.delete(name);
    const reported = report.get(name);
    total.interactions++;
    if (reported) total[reported]++;
    if (reported && rightTimes[reported].includes(times)) continue;
    const what = `reported as ${reported} and stored ${times} times`;
    if (!wrong.get(what)?.push(name)) wrong.set(what, [name]);
  }
  if (stored.size > 0) wrong.set('stored but not sent', [...stored.keys()]);
  if (report.size !== sent.length) wrong.set('reported but not sent', [...report.keys()].slice(sent.length));
  for (const [what, names] of wrong)
    violations.push(`${run}: ${names.length} of ${sent.length} are ${what}, such as ${names[0]}`);
}
