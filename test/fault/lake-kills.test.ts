// @module-tag full

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { resourceTypes } from '../../src/registry/resources.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { ChangingRecords } from '../support/changing-records.ts';
import { servingUrl } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { newShop } from '../support/new-records.ts';
import { addInteractions, addOldDay } from '../support/old-interactions.ts';
import { scrapeMetrics } from '../support/scrape-metrics.ts';
import { storedRecords } from '../support/version-rows.ts';
import { newInteractions, storedRows, WrittenLake } from '../support/written-lake.ts';

/** Kills `intake-server lake` repeatedly while interactions and records are being stored. */

const kills = Number(process.env.KILLS ?? 4);
const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const shop = newShop();
const lake = new WrittenLake();
let server: BuiltServer;
let admin: pg.Client;
let api: Api;
let organisationId: string;
let metricsPort: number;

beforeAll(async () => {
  server = await startBuiltServer();
  admin = new pg.Client({ connectionString: server.databaseUrl });
  await admin.connect();
  api = apiOf(server.url, await server.createKey('acme'));
  await api.upload('shops', [shop]);
  const { rows } = await admin.query(`select organisation_id from organisations where slug = 'acme'`);
  organisationId = rows[0].organisation_id;
  await addInteractions(admin, organisationId, await addOldDay(admin, 4), 30_000);
  await server.run('organisations', 'set-lake', 'acme', 'on');
  metricsPort = await freePort();
});
afterAll(async () => {
  await server.stop();
  await admin.end();
  await lake.close();
});

async function startLake(): Promise<{ process: ChildProcess; log: string[] }> {
  // A killed process keeps its slots for 15 s. Free them so that the test does not have to wait.
  await admin.query(`update lake_slots set holder = null, ends_at = '-infinity'`);
  await admin.query('delete from lake_processes');
  const env = {
    ...process.env,
    DATABASE_URL: servingUrl(server.databaseUrl),
    LAKE_URL: lake.url,
    LAKE_DELAY_SECONDS: '1',
    METRICS_PORT: String(metricsPort),
  };
  const started = spawn(process.execPath, [main, 'lake'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const log: string[] = [];
  const lines = createInterface({ input: started.stdout });
  lines.on('line', (line) => log.push(line));
  await Promise.race([
    once(lines, 'line'),
    once(started, 'exit').then(() => {
      throw new Error(`the lake ended:\n${log.join('\n')}`);
    }),
  ]);
  return { process: started, log };
}

/** Says what the process and the database know, because a process that makes no progress is rare. */
const explain = (log: readonly string[]) => async (error: Error) => {
  const { rows: progress } = await admin.query('select * from lake_progress');
  const { rows: slots } = await admin.query(
    'select holder, max(ends_at) as ends_at, count(*)::integer from lake_slots group by holder',
  );
  const { rows: active } = await admin.query(
    `select state, wait_event, left(query, 80) as query from pg_stat_activity
     where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`,
  );
  const known = JSON.stringify({ progress, slots, active });
  throw new Error(`${error.message}\n${log.slice(-3).join('\n')}\n${known}`);
};

it('the lake equals the database in the end, with nothing lost and nothing twice', async () => {
  let isOver = false;
  let sent = 0;
  const records = new ChangingRecords();
  const sending = (async () => {
    for (let round = 0; !isOver; round++) {
      for (const type of ChangingRecords.types.filter((_, at) => round === 0 || (round + at) % 4 === 0))
        expect((await api.batch(type, records.batch(type, 10, 20))).counts.failed).toBe(0);
      const { status } = await api.post('/user-interactions/batch', {
        records: newInteractions(200, shop.shop_id),
      });
      expect(status).toBe(200);
      sent += 200;
      await sleep(50);
    }
  })();
  const version = () => lake.version(organisationId, 'interactions');
  for (let killed = 0; killed < kills; killed++) {
    const before = await version();
    const running = await startLake();
    // Every other process makes progress before it is killed.
    if (killed % 2 > 0)
      await expect.poll(version, { interval: 200 }).not.toBe(before).catch(explain(running.log));
    await sleep(Math.random() * 5_000);
    running.process.kill('SIGKILL');
    await once(running.process, 'exit');
  }
  isOver = true;
  await sending;
  const last = await startLake();
  const count = async () => (await lake.files(organisationId)).reduce((sum, { rows }) => sum + rows, 0);
  await expect
    .poll(count, { interval: 500 })
    .toBe(30_000 + sent)
    .catch(explain(last.log));
  expect(await lake.rows(organisationId)).toEqual(await storedRows(admin, organisationId));
  for (const type of resourceTypes)
    await expect
      .poll(() => lake.current(organisationId, type), { interval: 500 })
      .toEqual(await storedRecords(admin, organisationId, type));
  // The API process must not load DuckDB, which only the lake needs.
  expect(readFileSync(`/proc/${server.process.pid}/maps`, 'utf8')).not.toContain('duckdb');
  const metrics = await scrapeMetrics(`http://127.0.0.1:${metricsPort}/metrics`);
  expect(metrics.get('process_cpu_seconds_total')).toBeGreaterThan(0);
  const held = async () =>
    (await admin.query('select count(*)::integer as slots from lake_slots where holder is not null')).rows;
  expect(await held()).toEqual([{ slots: 64 }]);
  const stopped = once(last.process, 'exit');
  last.process.kill('SIGTERM');
  expect(await stopped).toEqual([0, null]);
  expect(await held()).toEqual([{ slots: 0 }]);
});
