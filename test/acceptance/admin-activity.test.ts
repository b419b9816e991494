import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { type Api, apiOf } from '../support/api.ts';
import { expectError } from '../support/expect-error.ts';
import { newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/** Operators can see the service's state and an organisation's uploads without a key for that organisation. */

let server: AdminServer;
let admin: Api;
let acme: Api;
beforeAll(async () => {
  server = await startAdminServer({ RECEIPTS_KEPT_DAYS: '60', DELETED_ORGANISATIONS_KEPT_DAYS: '14' });
  admin = server.admin;
  for (const slug of ['acme', 'other']) await admin.post('/admin/v1/organisations', { slug });
  const { body } = await admin.post('/admin/v1/keys', { organisation: 'acme' });
  acme = apiOf(server.url, body.key);
});
afterAll(() => server.stop());

it('shows the process that answers, and its partitions', async () => {
  await expect
    .poll(async () => (await admin.get('/admin/v1/service')).body.processes)
    .toEqual([expect.objectContaining({ version: expect.stringMatching(/^\d+\.\d+\.\d+/) })]);
  const { body } = await admin.get('/admin/v1/service');
  const { partitions, nodes } = body;
  expect(partitions.map(({ table }: { table: string }) => table)).toContain('interactions');
  if (process.env.CITUS_URL === undefined) expect(nodes).toBeNull();
  expect(body).toMatchObject({ receipts_kept_days: 60, deleted_organisations_kept_days: 14 });
});

it('shows the work that is waiting, and since when', async () => {
  const waiting = async () => (await admin.get('/admin/v1/service')).body.waiting;
  const kinds = ['rewriting', 'retention', 'purging', 'expired access requests', 'erasures', 'lake erasures'];
  expect((await waiting()).map(({ work }: { work: string }) => work)).toEqual([
    ...kinds,
    'access requests',
    'settling',
    'removals',
  ]);
  await queryDatabase(
    server.databaseUrl,
    `insert into jobs select organisation_id, 'purging', 'purge', null, 1, now() + interval '1 day', 0, now() - interval '2 days'
     from organisations where slug = 'other'`,
  );
  const purging = (await waiting()).find(({ work }: { work: string }) => work === 'purging');
  expect(purging).toEqual({ work: 'purging', count: 1, oldest_seconds: expect.any(Number) });
  expect(Math.round(purging.oldest_seconds / 86_400)).toBe(2);
});

it('lists how much each organisation has stored, and when it last uploaded', async () => {
  const before = Date.now();
  await admin.post('/admin/v1/organisations', { slug: 'third' });
  const { body } = await admin.post('/admin/v1/keys', { organisation: 'third' });
  await apiOf(server.url, body.key).upload('shops', [newShop(), newShop()]);
  const listed = async (slug: string) =>
    (await admin.get(`/admin/v1/organisations?search=${slug}`)).body.organisations[0];
  await expect.poll(async () => (await listed('third')).records).toBe(2);
  expect(Date.parse((await listed('third')).last_upload_at)).toBeGreaterThan(before - 60_000);
  expect(await listed('other')).toMatchObject({ records: 0, last_upload_at: null });
});

it('ranks organisations, over HTTP and on the command line', async () => {
  await queryDatabase(
    server.databaseUrl,
    `insert into organisation_activity
     select now(), gen_random_uuid(), organisation_id, 5, case slug when 'acme' then 900 else 20 end, 3, 1000, 1, 0
     from organisations where slug in ('acme', 'other')`,
  );
  const { status, body } = await admin.get('/admin/v1/top?by=records&minutes=1&limit=1');
  expect([status, body.organisations]).toEqual([
    200,
    [expect.objectContaining({ slug: 'acme', records: 900, interactions: 3, bytes: 1_000 })],
  ]);
  const env = { DATABASE_URL: server.databaseUrl };
  const shown = await runCommand(['top', '--by', 'records'], env);
  expect(shown).toMatchObject({ exitCode: 0, stderr: '' });
  expect(shown.stdout.split('\n').slice(0, 3)).toEqual([
    'ORGANISATION\tRECORDS\tREQUESTS\tINTERACTIONS\tBYTES\tREJECTIONS\tLIMITS HIT',
    expect.stringMatching(/^acme\t900\t/),
    expect.stringMatching(/^other\t20\t/),
  ]);
  // After a minute, the process reports the organisation of the test before too.
  const json = JSON.parse((await runCommand(['top', '--json', '--limit', '2'], env)).stdout);
  expect(json.organisations).toHaveLength(2);
});

it.each([
  ['by=colour', 'by'],
  ['minutes=0', 'minutes'],
  ['minutes=61', 'minutes'],
  ['limit=51', 'limit'],
])('top with %s is 400', async (query, field) => {
  expectError(await admin.get(`/admin/v1/top?${query}`), 400, [field]);
});

it('lists the receipts of one organisation, and counts its rejections without showing records', async () => {
  const shop = newShop();
  await acme.upload('shops', [shop]);
  const missing = newTransaction(newShop().shop_id);
  await acme.upload('transactions', [newTransaction(shop.shop_id), missing]);
  const ofAcme = '/admin/v1/organisations/acme';
  const { body } = await admin.get(`${ofAcme}/requests`);
  expect(body.requests).toEqual((await acme.get('/v1/requests')).body.requests);
  expect(body.requests.map(({ type, status }: { type: string; status: number }) => [type, status])).toEqual([
    ['transactions', 207],
    ['shops', 200],
  ]);
  const failed = (await admin.get(`${ofAcme}/requests?status=207&limit=1`)).body;
  expect(failed.requests).toHaveLength(1);
  const summary = await admin.get(`${ofAcme}/rejections/summary`);
  expect(summary.body.rejections).toEqual([
    {
      type: 'transactions',
      code: 'reference_not_found',
      field: 'shop_id',
      count: 1,
      first_seen: expect.any(String),
      last_seen: expect.any(String),
    },
  ]);
  expect(JSON.stringify([body, summary.body])).not.toContain(missing.transaction_id);
  const ofOther = '/admin/v1/organisations/other';
  expect((await admin.get(`${ofOther}/requests`)).body).toEqual({ requests: [], next_cursor: null });
  expect((await admin.get(`${ofOther}/rejections/summary`)).body).toEqual({ rejections: [] });
  const used = (await admin.get(`${ofAcme}/usage?days=2`)).body;
  expect(used.days).toEqual((await acme.get('/v1/requests/daily?days=2')).body.days);
  expect(used.days[0].uploads).toEqual({ complete: 1, partial: 1, failed: 0 });
  // Neither has a quota.
  const types = Object.fromEntries(used.types.map(({ type, ...of }: { type: string }) => [type, of]));
  expect(types).toMatchObject({ shops: { records: 1 }, transactions: { records: 1 } });
  for (const { bytes } of used.types) expect(bytes).toBeGreaterThan(50);
  expect((await admin.get(`${ofOther}/usage`)).body.types).toEqual([]);
  for (const path of ['requests', 'rejections/summary', 'usage']) {
    expectError(await admin.get(`/admin/v1/organisations/nobody/${path}`), 404);
    expectError(await admin.get(`${ofAcme}/${path}?colour=red`), 400, ['colour']);
  }
});
