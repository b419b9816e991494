import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { type FreezablePostgres, startFreezablePostgres } from '../support/freezable-postgres.ts';
import { many } from '../support/new-records.ts';

/** `/health/ready` tells the truth about the database, in time, whatever PostgreSQL or the uploads are at. */

const promisedMs = 2_000;
/** An answer may be this old. */
const reusedMs = 1_000;

async function ask(url: string) {
  const began = performance.now();
  const answer = await apiOf(url).get('/health/ready');
  return { ...answer, ms: performance.now() - began };
}

describe('a PostgreSQL that has stopped answering', () => {
  let postgres: FreezablePostgres;
  let server: AdminServer;
  beforeAll(async () => {
    postgres = await startFreezablePostgres();
    server = await startAdminServer({ DATABASE_URL: postgres.url });
  });
  afterAll(async () => {
    postgres.thaw();
    await server.stop();
    await postgres.stop();
  });

  const both = () => [server.url, server.adminUrl];

  it('is 503 within 2 s, again and again, and 200 by itself once it answers', async () => {
    for (const url of both()) expect((await ask(url)).status).toBe(200);
    postgres.freeze();
    await sleep(reusedMs + 100);
    for (let round = 0; round < 3; round++) {
      for (const answer of await Promise.all(both().map(ask))) {
        expectError(answer, 503);
        expect(answer.ms).toBeLessThan(promisedMs);
      }
      await sleep(reusedMs + 100);
    }
    postgres.thaw();
    for (const url of both())
      await expect.poll(async () => (await ask(url)).status, { timeout: 2 * promisedMs }).toBe(200);
  });

  it('keeps nobody waiting who asks at the same time', async () => {
    postgres.freeze();
    await sleep(reusedMs + 100);
    const answers = await Promise.all(many(100, () => ask(server.url)));
    postgres.thaw();
    for (const { status, ms } of answers) {
      expect(status).toBe(503);
      expect(ms).toBeLessThan(promisedMs);
    }
  });
});

describe('a database that answers', () => {
  let server: BuiltServer;
  let keys: string[];
  let client: pg.Client;
  beforeAll(async () => {
    const databaseUrl = await createTestDatabase();
    server = await startBuiltServer({ DATABASE_URL: databaseUrl, DATABASE_CONNECTIONS_MAX: '2' });
    keys = [await server.createKey('acme'), await server.createKey('other')];
    client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await server.stop();
  });

  const connections = async () => {
    const { rows } = await client.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and application_name = 'intake-server'
         and query like '%schema_migrations where name = any%'`,
    );
    return rows.map(({ pid }) => pid);
  };

  it('is 200 while uploads hold every connection of the common pool', async () => {
    await client.query('begin; lock table tags in access exclusive mode');
    // An organisation has one of the two at most.
    const uploads = many(6, (at) =>
      apiOf(server.url, keys[at % 2]).upload('tags', [{ tag_id: randomUUID(), name: 'vegan' }]),
    );
    await expect
      .poll(async () => {
        const { rows } = await client.query(`select from pg_locks where not granted and database =
          (select oid from pg_database where datname = current_database())`);
        return rows.length;
      })
      .toBe(2);
    for (let round = 0; round < 3; round++) {
      const { status, ms } = await ask(server.url);
      expect(status).toBe(200);
      expect(ms).toBeLessThan(promisedMs);
      await sleep(reusedMs + 100);
    }
    await client.query('rollback');
    for (const { status } of await Promise.all(uploads)) expect(status).toBe(200);
  });

  it('is asked over one connection, however many ask, and over another when that is lost', async () => {
    await Promise.all(many(50, () => ask(server.url)));
    const [first, ...others] = await connections();
    expect(others).toEqual([]);
    await client.query('select pg_terminate_backend($1)', [first]);
    await sleep(reusedMs + 100);
    expect((await ask(server.url)).status).toBe(200);
    const again = await connections();
    expect(again).toHaveLength(1);
    expect(again).not.toContain(first);
  });

  it('is 503 within 2 s while its list of migrations is locked, and leaves nobody waiting for the lock', async () => {
    await client.query('begin; lock table schema_migrations in access exclusive mode');
    await sleep(reusedMs + 100);
    const answer = await ask(server.url);
    expectError(answer, 503);
    expect(answer.ms).toBeLessThan(promisedMs);
    await sleep(reusedMs);
    const { rows } = await client.query(
      `select from pg_locks where not granted and relation = 'schema_migrations'::regclass`,
    );
    await client.query('rollback');
    expect(rows).toHaveLength(0);
    await expect.poll(async () => (await ask(server.url)).status, { timeout: 2 * promisedMs }).toBe(200);
  });

  it('is 503 while a migration is missing, and 200 with one too many, as while a new version is rolled out', async () => {
    await client.query(
      `update schema_migrations set name = 'x' || name where id = (select max(id) from schema_migrations)`,
    );
    await sleep(reusedMs + 100);
    const behind = await ask(server.url);
    expectError(behind, 503);
    expect(behind.body.message).toMatch(/schema is behind/);
    await client.query(`update schema_migrations set name = substr(name, 2) where name like 'x%'`);
    await client.query(`insert into schema_migrations (name, run_on) values ('9999_later', now())`);
    await sleep(reusedMs + 100);
    expect((await ask(server.url)).status).toBe(200);
  });
});
