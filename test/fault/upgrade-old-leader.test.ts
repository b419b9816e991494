// @module-tag full

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createEmptyDatabase } from '../support/database.ts';
import { type Delay, holdFirst, startDelayingProxy } from '../support/delaying-proxy.ts';
import { expectSwept, requestErasure } from '../support/erase-people.ts';
import { newShop, newTransaction } from '../support/new-records.ts';
import { hasPreviousVersion, previousVersion } from '../support/previous-version.ts';
import { runCommand } from '../support/run-command.ts';
import { tablesWith } from '../support/tables-with.ts';

/**
 * A rolling upgrade while a process of the previous version is the leader. That version inferred people from interactions:
 * a user of the same device as a person was erased too.
 */

const shop = newShop();
const newPerson = (user_id = randomUUID()) => ({ customer_id: randomUUID(), user_id, region: 'GB' });
const anna = newPerson();
/** Anna once more, under another customer id. */
const twin = newPerson(anna.user_id);
const [bob, carl, stranger] = [newPerson(), newPerson(), newPerson()];
const [library, kiosk] = [`library-pc ${randomUUID()}`, `kiosk ${randomUUID()}`];
const isCluster = inject('citus') !== null || inject('poolerPort') !== null;

/** Interactions. Anna used the stranger's device and one in a library, and Bob used a kiosk. */
const visits = {
  anna: { student_id: anna.customer_id, user_id: stranger.user_id },
  library: { student_id: anna.customer_id, user_id: library },
  bob: { student_id: bob.customer_id, user_id: kiosk },
  stranger: { student_id: stranger.customer_id, user_id: stranger.user_id },
  device: { user_id: stranger.user_id },
  visitor: { user_id: library },
  passer: { student_id: stranger.customer_id, user_id: kiosk },
  nobody: { user_id: kiosk },
};

async function fill(api: Api): Promise<void> {
  const people = [anna, twin, bob, carl, stranger];
  const bought = people.map(({ customer_id }) => newTransaction(shop.shop_id, { student_id: customer_id }));
  for (const [type, records] of [
    ['shops', [shop]],
    ['customers', people],
    ['transactions', bought],
  ] as const)
    expect((await api.upload(type, records)).status).toBe(200);
  const visit = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
  for (const [city, fields] of Object.entries(visits)) {
    const { status } = await api.post('/user-interactions', { ...visit, ...fields, city });
    expect(status).toBe(201);
  }
}

/** Starts the previous version, and lets the test decide which of its statements wait. */
async function startPrevious(databaseUrl: string, delay: Delay): Promise<BuiltServer> {
  const previous = await previousVersion();
  const env = { ...process.env, DATABASE_URL: databaseUrl };
  await promisify(execFile)(process.execPath, [previous.main, 'migrate'], { env });
  const proxy = await startDelayingProxy(databaseUrl, delay);
  const server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl }, previous.main);
  onTestFinished(async () => {
    await server.stop();
    await proxy.close();
    previous.remove();
  });
  return server;
}

async function newKey({ run }: BuiltServer): Promise<string> {
  await run('organisations', 'create', 'acme');
  const scopes = everyPermission.flatMap((permission) => ['--scope', permission]);
  return JSON.parse(await run('keys', 'issue', '--organisation', 'acme', '--json', ...scopes)).key;
}

async function connected(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

it.skipIf(isCluster || !hasPreviousVersion())(
  'an old leader finds nothing to do in the new schema, and the new one erases and collects whom was asked for only',
  async () => {
    const databaseUrl = await createEmptyDatabase();
    const [admin, reader] = [await connected(databaseUrl), await connected(databaseUrl)];
    // The leader pauses when it looks for users who were seen together with the erased people.
    const inferring = holdFirst(/array\[s\.user_id, s\.student_id::text\]/);
    const collected = Promise.withResolvers<void>();
    const migrated = Promise.withResolvers<void>();
    const looks = { erasures: 0, access: 0 };
    let isCollecting = false;
    const previous = await startPrevious(databaseUrl, (bytes, connection) => {
      const text = bytes.toString('latin1');
      if (text.includes("from erasures where state in ('pending', 'running') group by")) looks.erasures++;
      if (text.includes("a.state in ('pending', 'running') group by")) looks.access++;
      if (!isCollecting || !text.includes('begin')) return inferring.delay(bytes, connection);
      return reader.query('select from access_request_ids where is_inferred').then(({ rows }) => {
        if (rows.length === 0) return undefined;
        collected.resolve();
        return migrated.promise;
      });
    });
    const key = await newKey(previous);
    const old = apiOf(previous.url, key);
    await fill(old);

    // An open transaction stops the sweep at the fence that follows.
    inferring.arm();
    const erasures = [await requestErasure(old, { customer_ids: [anna.customer_id], mode: 'delete' })];
    await inferring.reached;
    const open = await connected(databaseUrl);
    await open.query('begin');
    inferring.release();
    const idsOf = async (table: string) =>
      (await admin.query<{ id: string }>(`select distinct lower(id) as id from ${table}`)).rows.map(
        ({ id }) => id,
      );
    await expect.poll(() => idsOf('erasure_ids')).toContain(stranger.user_id);
    erasures.push(await requestErasure(old, { customer_ids: [carl.customer_id] }));
    isCollecting = true;
    const asked = await old.post('/v1/access-requests', { customer_ids: [bob.customer_id] });
    expect(asked.status).toBe(202);
    await collected.promise;

    const before = { ...looks };
    const { stderr, exitCode } = await runCommand(['migrate'], { DATABASE_URL: databaseUrl });
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    isCollecting = false;
    migrated.resolve();
    await expect
      .poll(() => Math.min(looks.erasures - before.erasures, looks.access - before.access))
      .toBeGreaterThan(3);
    const requested = [anna.customer_id, anna.user_id, carl.customer_id, carl.user_id];
    expect(new Set(await idsOf('erasure_ids'))).toEqual(new Set(requested));
    expect(new Set(await idsOf('access_request_ids'))).toEqual(new Set([bob.customer_id, bob.user_id]));
    expect((await admin.query('select from access_request_records')).rows).toEqual([]);
    for (const table of ['erasures', 'access_requests'])
      expect((await admin.query(`select distinct state from ${table}`)).rows).toEqual([
        { state: 'requested' },
      ]);
    for (const { customer_id } of [anna, carl])
      expect((await old.get(`/v1/data/customers/${customer_id}`)).status).toBe(404);

    const server = await startBuiltServer({ DATABASE_URL: databaseUrl });
    onTestFinished(() => server.stop());
    const api = apiOf(server.url, key);
    await previous.stop();
    await open.query('commit');
    for (const erasure of erasures) await expectSwept(api, erasure);
    const path = `/v1/access-requests/${asked.body.access_request_id}`;
    await expect.poll(async () => (await api.get(path)).body.state).toBe('done');

    const erased = [anna, twin, carl].flatMap(({ customer_id, user_id }) => [customer_id, user_id]);
    const { changes, ...left } = await tablesWith(admin, erased);
    expect(left).toEqual({});
    const { interactions } = (await api.get('/user-interactions?limit=10')).body;
    const { anna: _, library: __, ...kept } = visits;
    expect(interactions.toReversed()).toMatchObject(
      Object.entries(kept).map(([city, fields]) => ({ student_id: null, ...fields, city })),
    );
    for (const { customer_id } of [bob, stranger])
      expect((await api.get(`/v1/data/customers/${customer_id}`)).status).toBe(200);
    expect(await api.batch('customers', [stranger])).toMatchObject({ counts: { unchanged: 1 } });
    const lines: string[] = (await api.get(`${path}/records`)).body.trim().split('\n');
    const types = lines.map((line) => JSON.parse(line).type);
    expect(types.toSorted()).toEqual(['customers', 'interactions', 'transactions', 'users-seen-together']);
    expect(lines.join()).not.toContain(stranger.customer_id);
  },
);
