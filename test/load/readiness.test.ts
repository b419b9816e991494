// @module-tag full
// @module-tag waiting

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { type FreezablePostgres, startFreezablePostgres } from '../support/freezable-postgres.ts';
import { expectInTime } from '../support/in-time.ts';
import { many } from '../support/new-records.ts';
import { countWaiting } from '../support/query-database.ts';

/** `/health/ready` reports the database's state correctly and in time, whatever PostgreSQL or the uploads are doing. */

const promisedMs = 2_000;
/** The maximum age of a cached response. */
const reusedMs = 1_000;
/** An upload that has waited for this long counts as stalled. */
const stalledMs = 8_000;

async function ask(url: string) {
  const began = performance.now();
  const answer = await apiOf(url).get('/health/ready');
  return { ...answer, ms: performance.now() - began };
}

describe('a PostgreSQL that has stopped responding', () => {
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

  const untilReady = async () => {
    for (const url of both()) await expect.poll(async () => (await ask(url)).status).toBe(200);
  };

  it('is 503 within 2 s, repeatedly, and 200 on its own once it responds', async () => {
    await untilReady();
    onTestFinished(() => postgres.thaw());
    postgres.freeze();
    for (const url of both()) await expect.poll(async () => (await ask(url)).status).toBe(503);
    for (let round = 0; round < 2; round++)
      await expectInTime(async () => {
        await sleep(reusedMs + 100);
        const answers = await Promise.all(both().map(ask));
        for (const answer of answers) expectError(answer, 503);
        return answers.map(({ ms }) => ({ what: '503', ms, promisedMs }));
      });
    postgres.thaw();
    await untilReady();
  });

  it('delays no concurrent caller', async () => {
    await expectInTime(async () => {
      await untilReady();
      postgres.freeze();
      // Repeat until the cached response has expired.
      let answers: Awaited<ReturnType<typeof ask>>[];
      do {
        await sleep(reusedMs + 100);
        answers = await Promise.all(many(100, () => ask(server.url)));
      } while (answers.some(({ status }) => status === 200));
      postgres.thaw();
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
      return answers.map(({ ms }) => ({ what: '503', ms, promisedMs }));
    });
  });
});

describe('a database that responds', () => {
  let databaseUrl: string;
  let server: BuiltServer;
  let keys: string[];
  let client: pg.Client;
  beforeAll(async () => {
    databaseUrl = await createTestDatabase();
    server = await startBuiltServer({
      DATABASE_URL: databaseUrl,
      DATABASE_CONNECTIONS_MAX: '2',
      // With this timeout, a request that waits for a lock does not time out even on a slow machine.
      DATABASE_TIMEOUT_MS: '120000',
    });
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

  const waitingForLocks = () => countWaiting(databaseUrl);

  async function askWhileUploadsWait() {
    await client.query('begin; lock table tags in access exclusive mode');
    const beganMs = performance.now();
    // Each organisation can use at most one of the two connections.
    const uploads = keys.map((key) =>
      apiOf(server.url, key).upload('tags', [{ tag_id: randomUUID(), name: 'vegan' }]),
    );
    await expect.poll(waitingForLocks).toBe(2);
    const answers = [await ask(server.url)];
    await sleep(reusedMs + 100);
    answers.push(await ask(server.url));
    const waitedMs = performance.now() - beganMs;
    await client.query('rollback');
    const statuses = (await Promise.all(uploads)).map(({ status }) => status);
    // After a second more, the uploads time out.
    if (waitedMs < stalledMs) expect(statuses).toEqual([200, 200]);
    return { answers, waitedMs };
  }

  it('is 200 while uploads hold every connection of the common pool', () =>
    expectInTime(async () => {
      let seen = await askWhileUploadsWait();
      // Uploads that have waited this long make the process not ready, which is correct.
      while (seen.waitedMs >= stalledMs) seen = await askWhileUploadsWait();
      // If the machine stalls for a moment, the database answers late, and the probe reports that.
      return seen.answers.map(({ status, ms }) => ({
        what: String(status),
        ms: status === 200 ? ms : Number.POSITIVE_INFINITY,
        promisedMs,
      }));
    }));

  it('is queried over one connection, however many ask, and over another when that is lost', async () => {
    const askedOver = async () => {
      await Promise.all(many(50, () => ask(server.url)));
      return connections();
    };
    // A probe that has just timed out may still have an open connection.
    await expect.poll(askedOver).toHaveLength(1);
    const [first] = await connections();
    await client.query('select pg_terminate_backend($1::integer)', [first]);
    const again = async () => {
      const { status } = await ask(server.url);
      return { status, isFirst: (await connections()).map((pid) => pid === first) };
    };
    await expect.poll(again).toEqual({ status: 200, isFirst: [false] });
  });

  it('is 503 within 2 s while its list of migrations is locked, and leaves no session waiting for the lock', async () => {
    await client.query('begin; lock table schema_migrations in access exclusive mode');
    await expect.poll(async () => (await ask(server.url)).status).toBe(503);
    await expectInTime(async () => {
      await sleep(reusedMs + 100);
      const answer = await ask(server.url);
      expectError(answer, 503);
      return [{ what: '503', ms: answer.ms, promisedMs }];
    });
    await expect.poll(waitingForLocks).toBe(0);
    await client.query('rollback');
    await expect.poll(async () => (await ask(server.url)).status).toBe(200);
  });

  it('is 503 while a migration is missing, and 200 with one too many, as during a rolling upgrade', async () => {
    await client.query(
      `update schema_migrations set name = 'x' || name where id = (select max(id) from schema_migrations)`,
    );
    await expect.poll(async () => (await ask(server.url)).body.message).toMatch(/schema is behind/);
    expectError(await ask(server.url), 503);
    await client.query(`update schema_migrations set name = substr(name, 2) where name like 'x%'`);
    await client.query(`insert into schema_migrations (name, run_on) values ('9999_later', now())`);
    await expect.poll(async () => (await ask(server.url)).status).toBe(200);
  });
});
