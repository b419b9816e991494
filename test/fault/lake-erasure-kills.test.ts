// @module-tag full

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { erasureKey } from '../support/app.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { servingUrl } from '../support/database.ts';
import { tracesInFolder } from '../support/lake-traces.ts';
import { many, newShop } from '../support/new-records.ts';
import { newInteractions, storedRows, WrittenLake } from '../support/written-lake.ts';

/** Kills `intake-server lake` repeatedly while people are being erased and interactions are being stored. */

const kills = Number(process.env.KILLS ?? 3);
const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const shop = newShop();
const lake = new WrittenLake();
let server: BuiltServer;
let admin: pg.Client;
let api: Api;
let organisationId: string;

beforeAll(async () => {
  mkdirSync(join(lake.folder, 'temporary'));
  server = await startBuiltServer();
  admin = new pg.Client({ connectionString: server.databaseUrl });
  await admin.connect();
  api = apiOf(
    server.url,
    await server.createKey('acme', 'data:write', 'data:read', 'data:erase', 'interactions:write'),
  );
  await api.upload('shops', [shop]);
  const { rows } = await admin.query(`select organisation_id from organisations where slug = 'acme'`);
  organisationId = rows[0].organisation_id;
  await server.run('organisations', 'set-lake', 'acme', 'on');
});
afterAll(async () => {
  await server.stop();
  await admin.end();
  await lake.close();
});

async function startLake(): Promise<ChildProcess> {
  // A killed process keeps its slots for 15 s. Free them so that the test does not have to wait.
  await admin.query(`update lake_slots set holder = null, ends_at = '-infinity'`);
  await admin.query('delete from lake_processes');
  const env = {
    ...process.env,
    DATABASE_URL: servingUrl(server.databaseUrl),
    LAKE_URL: lake.url,
    LAKE_DELAY_SECONDS: '1',
    ERASURE_KEYS: erasureKey,
    // The temporary folder is separate, so that the test finds the files that a killed process leaves behind.
    TMPDIR: join(lake.folder, 'temporary'),
  };
  const started = spawn(process.execPath, [main, 'lake'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(createInterface({ input: started.stdout }), 'line');
  return started;
}

/** Creates customers with interactions in several files. */
async function addPeople(count: number): Promise<string[]> {
  const ids = many(count, () => randomUUID());
  const customers = ids.map((customer_id) => ({ customer_id, user_id: randomUUID(), region: 'GB' }));
  await api.upload('customers', customers);
  for (const customer_id of ids) {
    const more = { student_id: customer_id, user_id: null };
    const records = newInteractions(20, shop.shop_id, more);
    const { status } = await api.post('/user-interactions/batch', { records });
    expect(status).toBe(200);
  }
  return ids;
}

it('erased people are in no byte afterwards, and nothing else is lost', async () => {
  const erased: string[] = [];
  const stays = await addPeople(10);
  const waiting = async () => {
    const { rows } = await admin.query(
      `select count(*)::integer as waiting from erasures where state <> 'swept' or lake_state <> 'done'`,
    );
    return rows[0].waiting;
  };
  let underWay = 0;
  let people = await addPeople(20);
  for (let killed = 0; killed < kills; killed++) {
    const running = await startLake();
    const customer_ids = people.splice(0, 10);
    erased.push(...customer_ids);
    const mode = killed % 2 === 0 ? 'anonymise' : 'delete';
    const { status } = await api.post('/v1/erasures', { customer_ids, mode });
    expect(status).toBe(202);
    await sleep(2_000 + Math.random() * 4_000);
    if ((await waiting()) > 0) underWay++;
    running.kill('SIGKILL');
    await once(running, 'exit');
    people = [...people, ...(await addPeople(10))];
  }
  expect(underWay).toBeGreaterThan(0);
  expect(await tracesInFolder(lake.folder, stays)).not.toEqual([]);
  const last = await startLake();
  await expect.poll(waiting, { interval: 500 }).toBe(0);
  const stored = await storedRows(admin, organisationId);
  const count = async () => (await lake.files(organisationId)).reduce((sum, { rows }) => sum + rows, 0);
  await expect.poll(count, { interval: 500 }).toBe(stored.length);
  expect(await lake.rows(organisationId)).toEqual(stored);
  const stopped = once(last, 'exit');
  last.kill('SIGTERM');
  expect(await stopped).toEqual([0, null]);
  expect(await tracesInFolder(lake.folder, erased)).toEqual([]);
  expect(await tracesInFolder(lake.folder, people.slice(0, 1))).not.toEqual([]);
});
