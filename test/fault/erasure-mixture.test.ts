// @module-tag full
// @module-tag long

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { everyPermission } from '../support/api.ts';
import { erasureKey } from '../support/app.ts';
import { createTestDatabase } from '../support/database.ts';
import { bytesInFolder } from '../support/lake-traces.ts';
import { lakeFolder } from '../support/running-lake.ts';
import { checkLake, checkStatistics, checkTables } from './erasure-mixture/check-tables.ts';
import { startErasures } from './erasure-mixture/erasing.ts';
import { drawWorld } from './erasure-mixture/people.ts';
import { Processes } from './erasure-mixture/processes.ts';
import { Random } from './erasure-mixture/random.ts';
import { browserOrigin, Round } from './erasure-mixture/round.ts';
import { fillTables, startWorkers } from './erasure-mixture/workers.ts';

/**
 * Checks erasure from outside. In each round, twenty workers upload, record, replay and use browser keys on the same 2,000
 * people, while a quarter of the people are erased in overlapping erasures, some of which are lifted. Processes are killed
 * and frozen, the leader moves, and statements are held back. Afterwards, the tables must be as an oracle says, which
 * knows every answer, and no table, statistic or file of the lake may contain an erased person. A failure prints its seed.
 * Set ERASURE_ROUNDS=100 for the long form.
 */

const rounds = Number(process.env.ERASURE_ROUNDS ?? 2);
const seed = Number(process.env.ERASURE_SEED ?? Math.floor(Math.random() * 2 ** 31));
const roundMs = Number(process.env.ERASURE_ROUND_MS ?? 10_000);

let databaseUrl: string;
let admin: pg.Client;
let processes: Processes;
const lake = lakeFolder();
const random = new Random(seed);
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  admin = new pg.Client({ connectionString: databaseUrl });
  await admin.connect();
  const settings = { LAKE_URL: lake.url, ERASURE_KEYS: erasureKey };
  processes = await Processes.start(databaseUrl, admin, random.fork(), settings);
});
afterAll(async () => {
  await processes.stop();
  lake.remove();
  await admin.end();
});

/** Creates an organisation with its people and shops, before anything goes wrong. */
async function beginRound(at: number): Promise<Round> {
  const slug = `round-${at}`;
  const { first } = processes;
  const own = await first.createKey(slug, ...everyPermission);
  const issued = ['keys', 'issue', '--organisation', slug, '--json', '--browser', '--origin', browserOrigin];
  const browser = JSON.parse(await first.run(...issued)).key;
  if (at % 3 === 1) await first.run('organisations', 'set-report', slug, 'on');
  const hasLake = at % 2 === 0;
  if (hasLake) await first.run('organisations', 'set-lake', slug, 'on');
  const { rows } = await admin.query('select organisation_id from organisations where slug = $1', [slug]);
  const world = drawWorld(random);
  const round = new Round(rows[0].organisation_id, world, { own, browser }, processes, hasLake);
  const records = world.shops.map((shop_id) => ({ shop_id, name: 'Shop', region: 'GB' }));
  const { status } = await round.askUntilAnswered(random, 'POST', '/v1/data/shops', { records });
  expect(status).toBe(200);
  await fillTables(round, random);
  return round;
}

/** Fills the planner's statistics of all tables with rows, as autovacuum does, and of whole partitioned tables. */
async function analyse(): Promise<void> {
  const { rows } = await admin.query(
    `select string_agg(case relkind when 'p' then 'only ' else '' end || relname, ', ') as tables from pg_class
     where relnamespace = 'public'::regnamespace and (relkind = 'p' or relkind = 'r' and pg_relation_size(oid) > 0)`,
  );
  await admin.query(`analyze ${rows[0].tables}`);
}

/** Waits until no transaction runs that began before the round ended. A killed process may have left one. */
async function untilQuiet(): Promise<void> {
  const { rows: now } = await admin.query('select clock_timestamp() as at');
  const old = `select from pg_stat_activity
    where datname = current_database() and xact_start < $1 and pid <> pg_backend_pid()`;
  while (((await admin.query(old, [now[0].at])).rowCount ?? 0) > 0) await sleep(50);
}

async function playRound(at: number): Promise<Round> {
  const round = await beginRound(at);
  await analyse();
  processes.isSlow = true;
  const working = startWorkers(round, random.fork());
  const disturbing = processes.disturb(() => round.isOver, random.fork(), round.hasLake);
  const erasing = startErasures(round, random.fork(), roundMs * 0.8);
  await sleep(roundMs / 2);
  round.areShopsComplete = true;
  await sleep(roundMs / 2);
  round.isOver = true;
  await Promise.all([working, disturbing]);
  processes.isSlow = false;
  // The last erasures have not reached the lake yet, or are in the middle of it.
  if (round.hasLake) await processes.killLake();
  const erasures = await erasing;
  if (round.violations.some(({ kind }) => kind === 'not swept')) console.log(await findCause());
  await untilQuiet();
  await checkTables(round, admin);
  if (round.hasLake) await checkLake(round, bytesInFolder(join(lake.path, round.organisationId)));
  await checkStatistics(round, admin);
  const { length: records } = round.writes;
  const { length: violations } = round.violations;
  console.log(
    `round ${at}: ${records} records, ${erasures} erasures, ${JSON.stringify(processes.counts)}, ` +
      `${processes.pauses} pauses, ${violations} violations`,
  );
  return round;
}

/** Returns what the processes were waiting for when erasures did not end. */
async function findCause(): Promise<string> {
  const { rows } = await admin.query(
    `select 'job' as what, to_jsonb(j)::text as state from jobs j
     union all select 'lease', to_jsonb(l)::text from leases l
     union all select 'slots', concat(holder, ' ', count(*), ' until ', max(ends_at)) from lake_slots group by holder
     union all select 'erasures', concat(state, ' ', step, ' lake: ', lake_state, ' ', lake_after, ' ', count(*))
       from erasures group by state, step, lake_state, lake_after
     union all select 'transaction', concat(pid, ' ', state, ' ', wait_event, ' ', now() - xact_start, ' ', regexp_replace(left(query, 600), '\\s+', ' ', 'g'))
       from pg_stat_activity where datname = current_database() and xact_start < now() - interval '1 second'`,
  );
  return [...rows.map(({ what, state }) => `${what}: ${state}`), processes.logs(20)].join('\n');
}

it(`${rounds} rounds erase the right people, all of them and nobody else`, {
  timeout: 1_200_000 + rounds * (roundMs + 300_000),
}, async () => {
  console.log(`ERASURE_SEED=${seed}`);
  for (let at = 1; at <= rounds; at++) {
    const { violations } = await playRound(at);
    const kinds = Map.groupBy(violations, ({ kind }) => kind);
    for (const [kind, [one]] of kinds) console.log(`VIOLATION ${kind}: ${one?.detail.slice(0, 2_000)}`);
    const counts = Object.fromEntries([...kinds].map(([kind, all]) => [kind, all.length]));
    expect(counts, `ERASURE_SEED=${seed}, round ${at}`).toEqual({});
  }
});
