// @module-tag full

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fingerprintOf } from '../../src/suppression/suppression-key.ts';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { servingUrl } from '../support/database.ts';
import { tracesInFolder } from '../support/lake-traces.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { expectReady } from '../support/ready.ts';
import { newInteractions, WrittenLake } from '../support/written-lake.ts';

/** Changes the erasure keys of two processes and a lake, one after another, while erased people are uploaded again. */

const [oldKey, newKey] = ['an old key of 32 characters or more', 'the new key of 32 characters or more'];
const newFingerprint = fingerprintOf(newKey).toString('hex');
const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const shop = newShop();
let lake: WrittenLake;
let databaseUrl: string;
let key: string;
const servers = new Map<string, BuiltServer>();
let lakeProcess: { readonly process: ChildProcess; readonly log: string[] } | undefined;

beforeAll(async () => {
  lake = new WrittenLake();
  const first = await startBuiltServer({ ERASURE_KEYS: oldKey, LAKE_URL: lake.url });
  servers.set('one', first);
  ({ databaseUrl } = first);
  key = await first.createKey('acme', ...everyPermission);
  await first.run('organisations', 'set-lake', 'acme', 'on');
  await api('one').upload('shops', [shop]);
});
afterAll(async () => {
  for (const server of servers.values()) await server.stop();
  await stopLake();
  await lake.close();
});

const api = (name: string): Api => apiOf(servers.get(name)?.url ?? '', key);

async function restart(name: string, keys: string): Promise<void> {
  await servers.get(name)?.stop();
  const env = { DATABASE_URL: databaseUrl, ERASURE_KEYS: keys, LAKE_URL: lake.url };
  servers.set(name, await startBuiltServer(env));
}

async function stopLake(): Promise<void> {
  if (!lakeProcess) return;
  const exited = once(lakeProcess.process, 'exit');
  lakeProcess.process.kill('SIGTERM');
  await exited;
  lakeProcess = undefined;
}

async function restartLake(keys: string): Promise<string[]> {
  await stopLake();
  const env = {
    ...process.env,
    DATABASE_URL: servingUrl(databaseUrl),
    LAKE_URL: lake.url,
    LAKE_DELAY_SECONDS: '1',
    ERASURE_KEYS: keys,
  };
  const started = spawn(process.execPath, [main, 'lake'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const log: string[] = [];
  createInterface({ input: started.stdout }).on('line', (line) => log.push(line));
  lakeProcess = { process: started, log };
  return log;
}

const newCustomer = () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' });
type Customer = ReturnType<typeof newCustomer>;

/** Creates customers whose interactions are in the lake's files. */
async function newPeople(name: string, count: number): Promise<Customer[]> {
  const people = many(count, newCustomer);
  expect((await api(name).upload('customers', people)).status).toBe(200);
  const records = people.flatMap(({ customer_id: student_id, user_id }) =>
    newInteractions(1, shop.shop_id, { student_id, user_id }),
  );
  expect((await api(name).post('/user-interactions/batch', { records })).status).toBe(200);
  return people;
}

const inFiles = (people: readonly Customer[]) =>
  tracesInFolder(
    lake.folder,
    people.flatMap(({ customer_id, user_id }) => [customer_id, user_id]),
  );

const erase = async (name: string, people: readonly Customer[]): Promise<string> => {
  const customer_ids = people.map(({ customer_id }) => customer_id);
  const { status, body } = await api(name).post('/v1/erasures', { customer_ids });
  expect([status, body.erasure_id]).toEqual([202, expect.any(String)]);
  return body.erasure_id;
};

const erasureOf = async (name: string, id: string) => (await api(name).get(`/v1/erasures/${id}`)).body;

it('with a new key in only one process, nobody is stored again and nothing is reported as done', async () => {
  const people = await newPeople('one', 20);
  await restartLake(oldKey);
  await expect.poll(() => inFiles(people)).not.toEqual([]);
  await restart('two', `${newKey},${oldKey}`);
  const erasureId = await erase('two', people);
  // From the response on, the process without the key accepts no people, erased or not.
  for (const records of [people, [newCustomer()]]) {
    const { status, body } = await api('one').upload('customers', records);
    expect([status, body.code]).toEqual([503, 'erasure_key_missing']);
    expect(body.message).toContain(newFingerprint);
  }
  const [interaction] = newInteractions(1, shop.shop_id, { student_id: people[0]?.customer_id });
  expect((await api('one').post('/user-interactions', interaction)).status).toBe(503);
  await expect.poll(async () => (await api('one').get('/health/ready')).status).toBe(503);
  expect((await api('one').get('/health/ready')).body.message).toContain(newFingerprint);
  await expectReady(servers.get('two')?.url ?? '');
  expect(servers.get('one')?.log.filter((line) => line.includes('lacks a key'))).toHaveLength(1);

  await expect.poll(async () => (await erasureOf('two', erasureId)).state).toBe('swept');
  const lacking = () => lakeProcess?.log.some((line) => line.includes(newFingerprint));
  await expect.poll(lacking).toBe(true);
  expect((await erasureOf('two', erasureId)).lake).toBe('pending');
  const certificate = (name: string) => api(name).get(`/v1/erasures/${erasureId}/certificate`);
  expect((await certificate('one')).body.code).toBe('erasure_key_missing');
  expect((await certificate('two')).body.certificate.erasure.lake).toBe('pending');
  expect(await inFiles(people)).not.toEqual([]);

  // Appending the key is enough.
  await restart('one', `${oldKey},${newKey}`);
  await expectReady(servers.get('one')?.url ?? '');
  await restartLake(`${oldKey},${newKey}`);
  await expect.poll(async () => (await erasureOf('one', erasureId)).lake).toBe('done');
  expect(await inFiles(people)).toEqual([]);
  expect(await api('one').batch('customers', people)).toMatchObject({ counts: { created: 0, failed: 20 } });
});

it('if the new key is first appended everywhere and then moved to the front, nobody notices', async () => {
  const newest = 'the newest key of 32 characters or more';
  await servers.get('two')?.stop();
  servers.delete('two');
  const stages = [`${oldKey},${newKey}`, `${oldKey},${newKey},${newest}`, `${newest},${oldKey},${newKey}`];
  const erased: Customer[] = [];
  const answers: Record<string, number> = {};
  let isStopped = false;
  const names = ['one', 'two'];
  await restart('two', stages[0]!);
  const uploading = names.map(async (name) => {
    while (!isStopped) {
      const people = erased.slice(-50);
      if (people.length === 0) await sleep(20);
      else {
        // A process that is being restarted does not answer.
        const answer = await api(name)
          .upload('customers', people)
          .catch(() => undefined);
        const counts = answer?.body.batches?.[0].data.counts;
        const text =
          answer === undefined ? 'none' : `${answer.status} ${counts?.created ?? answer.body.code}`;
        answers[text] = (answers[text] ?? 0) + 1;
      }
    }
  });
  const erasures: string[] = [];
  const eraseSome = async () => {
    for (const name of names) {
      const people = await newPeople(name, 5);
      erasures.push(await erase(name, people));
      erased.push(...people);
    }
  };
  for (const keys of stages) {
    for (const name of names) {
      await restart(name, keys);
      await eraseSome();
    }
    await restartLake(keys);
  }
  await eraseSome();
  for (const id of erasures) await expect.poll(async () => (await erasureOf('one', id)).lake).toBe('done');
  isStopped = true;
  await Promise.all(uploading);
  expect(answers['400 0']).toBeGreaterThan(0);
  expect(
    Object.keys(answers).filter((text) => !['400 0', 'none', '503 shutting_down'].includes(text)),
  ).toEqual([]);
  const ids = erased.map(({ customer_id }) => customer_id);
  expect(
    await queryDatabase(databaseUrl, 'select from customers where customer_id = any ($1::uuid[])', [ids]),
  ).toEqual([]);
  expect(await inFiles(erased)).toEqual([]);
  const used = await queryDatabase<{ keys: number }>(
    databaseUrl,
    'select count(distinct fingerprint)::integer as keys from erasure_keys',
  );
  expect(used).toEqual([{ keys: 3 }]);
});
