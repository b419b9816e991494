// @module-tag full

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { downloadAccess } from '../support/access-person.ts';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { linesIn, runMove } from '../support/move-organisation.ts';
import { newShop, newTransaction } from '../support/new-records.ts';
import { everyRowOf, queryDatabase } from '../support/query-database.ts';

/**
 * At LOG_LEVEL=trace, a person is stored, collected, exported, imported, and removed together with the organisation.
 * Their email address, birthdate and ids may appear only where they are requested. planted-secrets.test.ts covers
 * requests. The tests build on each other.
 */

const email = 'ada.planted@example.org';
const birthdate = '1915-12-10';
const [customer_id, user_id] = [randomUUID(), randomUUID()];
const planted = [email, 'ada.plan', birthdate, customer_id, user_id];
const tracesOf = (text: string) => planted.filter((trace) => text.toLowerCase().includes(trace));

const folder = mkdtempSync(join(tmpdir(), 'intake-planted-'));
let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer({ LOG_LEVEL: 'trace' });
  api = apiOf(server.url, await server.createKey('acme', ...everyPermission));
  const shop = newShop();
  const customer = { customer_id, user_id, region: 'GB', gender: email, birthdate };
  await api.upload('shops', [shop]);
  expect((await api.upload('customers', [customer])).status).toBe(200);
  expect((await api.upload('customers', [{ ...customer, region: 7 }])).status).toBe(400);
  const bought = newTransaction(shop.shop_id, { student_id: customer_id, discount_name: email });
  const key = { 'idempotency-key': `${email} ${customer_id}` };
  expect((await api.post('/v1/data/transactions', { records: [bought] }, key)).status).toBe(200);
  const visit = {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: 1_700_000_000,
    student_id: customer_id,
    user_id: email,
  };
  expect((await api.post('/user-interactions', visit)).status).toBe(201);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

async function tablesWithTraces(): Promise<string[]> {
  const rows = Object.entries(await everyRowOf(server.databaseUrl));
  return rows.flatMap(([table, all]) => (all.some((row) => tracesOf(row).length > 0) ? table : []));
}

/** Checks the log. It is written after the responses, so it is complete once it contains the last response. */
async function expectNothingLogged(): Promise<void> {
  const { headers } = await apiOf(server.url).get('/nowhere');
  const last = headers.get('x-request-id') as string;
  await expect.poll(() => server.log.some((line) => line.includes(last)), { interval: 5 }).toBe(true);
  expect(server.log.filter((line) => tracesOf(line).length > 0)).toEqual([]);
}

it('collected data of a person is only in the download', async () => {
  const sent = { customer_ids: [customer_id], user_ids: [email] };
  const { status, body } = await api.post('/v1/access-requests', sent);
  expect([status, tracesOf(JSON.stringify(body))]).toEqual([202, []]);
  const path = `/v1/access-requests/${body.access_request_id}`;
  await expect.poll(async () => (await api.get(path)).body.state).toBe('done');
  for (const shown of [path, '/v1/access-requests?limit=1000']) {
    const answer = await api.get(shown);
    expect(tracesOf(JSON.stringify([answer.body, ...answer.headers]))).toEqual([]);
  }
  const lines = await downloadAccess(api, body.access_request_id);
  expect(new Set(tracesOf(JSON.stringify(lines)))).toEqual(new Set(planted));
  await expectNothingLogged();
});

it('an export and an import show nothing of a person, except in the rows', async () => {
  for (const args of [
    ['export', 'acme', '--to', folder],
    ['import', 'copy', '--from', folder],
  ]) {
    const { exitCode, stdout, stderr } = await runMove(server.databaseUrl, ...args);
    expect({ args, exitCode, traces: tracesOf(stdout + stderr) }).toEqual({ args, exitCode: 0, traces: [] });
  }
  expect(new Set(tracesOf(JSON.stringify(await linesIn(folder))))).toEqual(new Set(planted));
  const manifest = readFileSync(join(folder, 'manifest.json'), 'utf8');
  expect(tracesOf(manifest + readdirSync(folder).join('\n'))).toEqual([]);
  const entries = await server.run('audit', '--json');
  expect(entries).toContain('organisation.imported');
  expect(tracesOf(entries)).toEqual([]);
});

it('a removal leaves nothing of a person in any table, and no line about them', async () => {
  expect((await tablesWithTraces()).length).toBeGreaterThan(8);
  for (const slug of ['acme', 'copy']) await server.run('organisations', 'delete', slug, '--confirm', slug);
  await expect.poll(async () => (await api.get('/v1/data')).status).toBe(410);
  await queryDatabase(
    server.databaseUrl,
    `update organisations set deleted_at = now() - interval '31 days' where deleted_at is not null`,
  );
  const left = () =>
    queryDatabase(server.databaseUrl, `select slug from organisations where slug in ('acme', 'copy')`);
  await expect.poll(left, { interval: 1_000 }).toEqual([]);
  expect(await tablesWithTraces()).toEqual([]);
  expect(tracesOf(await server.run('audit', '--json'))).toEqual([]);
  await expectNothingLogged();
});
