// @module-tag full

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import { type PgBouncer, pgBouncerIsInstalled, startPgBouncer } from '../support/pgbouncer.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';
import { untilStored } from '../support/until-stored.ts';

/**
 * Tests PgBouncer in transaction mode with only two sessions. CI also runs the files tagged `pooler` behind it
 * (TEST_POOLER=1).
 */

const login = 'intake_pooled_test';
let pooler: PgBouncer;
let databaseUrl: string;
let servers: BuiltServer[];
let apis: Api[];

describe.skipIf(!pgBouncerIsInstalled)('behind PgBouncer in transaction mode', () => {
  beforeAll(async () => {
    databaseUrl = await createTestDatabase();
    pooler = await startPgBouncer(inject('postgresUrl'), 2);
    await createLogin(login, { timezone: 'Asia/Kathmandu', datestyle: 'German', statement_timeout: '30s' });
    servers = await Promise.all([1, 2].map(() => serve(login)));
    const key = await servers[0]!.createKey('acme');
    apis = servers.map(({ url }) => apiOf(url, key));
  });
  afterAll(async () => {
    for (const server of servers ?? []) await server.stop();
    await pooler?.stop();
  });

  it('two processes share two sessions, and every upload and interaction is stored', async () => {
    const shop = newShop();
    expect((await untilStored(() => apis[0]!.upload('shops', [shop]))).status).toBe(200);
    const answers = await sendMany(apis, shop.shop_id, untilStored);
    expect(answers.filter((status) => status !== 200 && status !== 201)).toEqual([]);
    const [stored] = await queryDatabase<Record<string, number>>(
      databaseUrl,
      `select (select count(*) from transactions)::integer as transactions,
         (select count(*) from interactions)::integer as interactions,
         (select count(*) from pg_stat_activity where datname = current_database() and usename = '${login}')::integer
           as sessions`,
    );
    expect(stored).toMatchObject({ transactions: 40 * 20, interactions: 40 });
    expect(stored!.sessions).toBeLessThanOrEqual(2);
  });

  it('no statement is prepared by name in any session', async () => {
    const clients = await Promise.all([connect(), connect()]);
    await Promise.all(clients.map((client) => client.query('begin')));
    const seen = await Promise.all(
      clients.map((client) =>
        client.query(
          'select pg_backend_pid() as pid, (select count(*)::integer from pg_prepared_statements) as prepared',
        ),
      ),
    );
    await Promise.all(clients.map((client) => client.end()));
    const sessions = seen.map(({ rows }) => rows[0]);
    expect(new Set(sessions.map(({ pid }) => pid)).size).toBe(2);
    expect(sessions.map(({ prepared }) => prepared)).toEqual([0, 0]);
  });

  it('instants and days are read in UTC although the role, and others in the same sessions, have other settings', async () => {
    const customer = {
      customer_id: randomUUID(),
      user_id: randomUUID(),
      region: 'GB',
      birthdate: '2004-02-01',
      created: '2026-03-04T05:06:07.123456Z',
      updated: '2026-03-04T23:59:59.999999Z',
    };
    expect((await untilStored(() => apis[0]!.upload('customers', [customer]))).status).toBe(200);
    const other = await connect();
    for (let round = 0; round < 20; round++) {
      const { rows } = await other.query(`select '2026-03-04T05:06:07Z'::timestamptz::text as local`);
      expect(rows[0].local).toBe('04.03.2026 10:51:07 +0545');
      const read = await Promise.all(
        apis.map((api) => untilStored(() => api.get(`/v1/data/customers/${customer.customer_id}`))),
      );
      for (const { body } of read) expect(body).toMatchObject(customer);
    }
    await other.end();
  });

  it('the timeout of the role ends a statement, and the sessions continue to be used', async () => {
    await createLogin('intake_hasty_test', { statement_timeout: '2s' });
    const server = await serve('intake_hasty_test');
    const api = apiOf(server.url, await server.createKey('hasty'));
    const upload = (record: object) => api.upload('tags', [record]);
    const tag = newTag();
    // If the machine stalls, the timeout also cancels other statements.
    await expect.poll(async () => (await upload(tag)).status).toBe(200);
    const holder = new pg.Client({ connectionString: databaseUrl });
    await holder.connect();
    await holder.query('begin');
    const { rows } = await holder.query('select organisation_id from tags where tag_id = $1', [tag.tag_id]);
    await holder.query('select from tags where organisation_id = $1 and tag_id = $2 for update', [
      rows[0].organisation_id,
      tag.tag_id,
    ]);
    expectError(await upload({ ...tag, name: 'other' }), 503);
    await holder.query('rollback');
    await holder.end();
    await expect.poll(async () => (await upload({ ...tag, name: 'other' })).status).toBe(200);
    await expect.poll(async () => (await api.get('/health/ready')).status).toBe(200);
    await server.stop();
  });

  it('a role that rounds doubles is refused, and one without timeouts causes a warning', async () => {
    await createLogin('intake_rounding_test', { extra_float_digits: '0' });
    const rounding = asLogin(pooler.url(databaseUrl), 'intake_rounding_test');
    const refused = await runCommand(['serve'], { DATABASE_URL: rounding, DATABASE_POOLER: 'on', PORT: '0' });
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain('the role in DATABASE_URL has extra_float_digits below 1');
    await createLogin('intake_timeless_test', {});
    const server = await serve('intake_timeless_test');
    expect(server.log.join('\n')).toContain(
      'no statement_timeout and no idle_in_transaction_session_timeout',
    );
    await server.stop();
  });

  it.each([
    ['password', 'wrong', /refuses/],
    ['pathname', '/nowhere', /refuses|has no database "nowhere"/],
  ])('a wrong %s is reported in one sentence', async (part, value, what) => {
    const url = Object.assign(new URL(pooler.url(databaseUrl)), { [part]: value });
    const { exitCode, stderr } = await runCommand(['keys', 'list'], {
      DATABASE_URL: url.href,
      DATABASE_POOLER: 'on',
    });
    expect(exitCode).toBe(1);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(what);
    expect(stderr).toContain(`PostgreSQL at ${url.host}`);
    expect(stderr).toContain('DATABASE_URL');
  });

  it('migrate is refused', async () => {
    const env = { DATABASE_URL: pooler.url(databaseUrl), DATABASE_POOLER: 'on' };
    const { exitCode, stderr } = await runCommand(['migrate'], env);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('migrate cannot use a pooler; set DATABASE_URL to PostgreSQL itself');
  });

  describe('without DATABASE_POOLER', () => {
    it.each(['serve', 'audit'])('%s explains what to set', async (command) => {
      const env = { DATABASE_URL: pooler.url(databaseUrl), PORT: '0' };
      const { exitCode, stderr } = await runCommand(command.split(' '), env);
      expect(exitCode).toBe(1);
      expect(stderr).toBe('intake-server: DATABASE_URL points at a pooler; set DATABASE_POOLER=on\n');
    });

    it('migrate requires PostgreSQL itself', async () => {
      const { exitCode, stderr } = await runCommand(['migrate'], { DATABASE_URL: pooler.url(databaseUrl) });
      expect(exitCode).toBe(1);
      expect(stderr).toBe(
        'intake-server: DATABASE_URL points at a pooler, which migrate cannot use; set it to PostgreSQL itself\n',
      );
    });

    it('requests fail behind a PgBouncer that is configured to ignore unsupported parameters', async () => {
      const ignored = 'options,statement_timeout,idle_in_transaction_session_timeout';
      const lax = await startPgBouncer(inject('postgresUrl'), 2, { ignore_startup_parameters: ignored });
      const env = { DATABASE_URL: lax.url(databaseUrl), SERVE_AS: login, DATABASE_POOLER: 'off' };
      const named = await startBuiltServer(env);
      const through = apiOf(named.url, await servers[0]!.createKey('acme'));
      const statuses = await sendMany([through], randomUUID(), (send) => send());
      expect(statuses.some((status) => status >= 500)).toBe(true);
      await named.stop();
      await lax.stop();
    });
  });
});

/** Sends 20 uploads and 20 interactions to each process at the same time. */
async function sendMany(
  to: readonly Api[],
  shopId: string,
  deliver: (send: () => Promise<Answer>) => Promise<Answer>,
): Promise<number[]> {
  const interaction = {
    interaction_type: 'PAGE_VIEW',
    item_type: 'SHOP',
    item_id: shopId,
    event_timestamp: '2026-03-14T09:26:53Z',
  };
  const answers = await Promise.all(
    to.flatMap((api) => [
      ...many(20, () => {
        const transactions = many(20, () => newTransaction(shopId));
        return deliver(() => api.upload('transactions', transactions));
      }),
      ...many(20, () => deliver(() => api.post('/user-interactions', interaction))),
    ]),
  );
  return answers.map(({ status }) => status);
}

const serve = (as: string) =>
  startBuiltServer({ DATABASE_URL: pooler.url(databaseUrl), SERVE_AS: as, DATABASE_POOLER: 'on' });

function asLogin(url: string, username = login): string {
  return Object.assign(new URL(url), { username }).href;
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: asLogin(pooler.url(databaseUrl)) });
  await client.connect();
  return client;
}

async function createLogin(name: string, settings: Record<string, string>): Promise<void> {
  const { password } = new URL(databaseUrl);
  // On a persistent cluster, the role may exist from an earlier run.
  await queryDatabase(databaseUrl, `drop role if exists ${name}`);
  await queryDatabase(databaseUrl, `create role ${name} login password '${password}' in role intake_serve`);
  for (const [setting, value] of Object.entries(settings))
    await queryDatabase(databaseUrl, `alter role ${name} set ${setting} = '${value}'`);
}
