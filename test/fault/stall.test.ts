// @module-tag full

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { startFreezablePostgres } from '../support/freezable-postgres.ts';
import { expectInTime } from '../support/in-time.ts';
import { many } from '../support/new-records.ts';
import { countWaiting } from '../support/query-database.ts';
import { untilPasses } from '../support/until-passes.ts';

/**
 * A process that can no longer store anything is not ready, and reports why. A busy process is ready. Each test has its
 * own process and database, so the tests run concurrently.
 */

const unreadyWithinMs = 10_000;

const newTag = () => ({ tag_id: randomUUID(), name: 'vegan' });

function interactionWith(tagId: string) {
  return {
    interaction_type: 'SHARE',
    platform: 'WEB',
    event_timestamp: new Date().toISOString(),
    item_type: 'TAG',
    item_id: tagId,
  };
}

async function ask({ url }: Pick<BuiltServer, 'url'>) {
  const { status, body } = await apiOf(url).get('/health/ready');
  return { status, code: body.code, message: body.message as string | undefined };
}

/** Waits for a value. `expect.poll` cannot be used, because it does not know which concurrent test it belongs to. */
const until = (read: () => Promise<unknown>, check: (value: unknown) => void) =>
  untilPasses(async () => check(await read()));

/**
 * Waits until the process reports that it is not ready, with this code. If the machine stalls for two seconds, the
 * process can briefly report another code.
 */
const untilUnready = (server: Pick<BuiltServer, 'url'>, code: string) =>
  until(
    async () => (await ask(server)).code,
    (value) => expect(value).toBe(code),
  );

const expectReadyAgain = (server: Pick<BuiltServer, 'url'>) =>
  until(
    async () => (await ask(server)).status,
    (value) => expect(value).toBe(200),
  );

interface Scene {
  readonly server: BuiltServer;
  readonly keys: readonly string[];
  /** Locks tables in another session, and more tables if called again. Returns a function that releases all of them. */
  lock(tables: string, mode?: string): Promise<() => Promise<void>>;
  /** Returns the number of sessions that wait for a lock. */
  sessionsWaiting(): Promise<number>;
}

async function inScene(env: Record<string, string>, play: (scene: Scene) => Promise<void>): Promise<void> {
  const databaseUrl = await createTestDatabase();
  const server = await startBuiltServer({ DATABASE_URL: databaseUrl, ...env });
  const client = new pg.Client({ connectionString: databaseUrl });
  try {
    await client.connect();
    let isLocking = false;
    const keys = [await server.createKey('acme'), await server.createKey('other')];
    await play({
      server,
      keys,
      async lock(tables, mode = 'exclusive') {
        if (!isLocking) await client.query('begin');
        isLocking = true;
        await client.query(`lock table ${tables} in ${mode} mode`);
        return async () => {
          isLocking = false;
          await client.query('rollback');
        };
      },
      sessionsWaiting: () => countWaiting(databaseUrl),
    });
  } finally {
    await client.end();
    await server.stop();
  }
}

it.concurrent('a process in which nothing finishes is not ready until it continues, and reports what is stuck', () =>
  // Reads hold both connections. Their timeout is so long that all requests have stalled before the reads time out.
  inScene({ DATABASE_CONNECTIONS_MAX: '2', DATABASE_TIMEOUT_MS: '120000' }, async (scene) => {
    const { server, keys, lock, sessionsWaiting } = scene;
    const [one, other] = keys.map((key) => apiOf(server.url, key));
    const tag = newTag();
    await one?.batch('tags', [tag]);
    await lock('tags, interactions', 'access exclusive');
    const requests = [
      () => one?.get('/v1/data/tags'),
      () => one?.post('/user-interactions', interactionWith(tag.tag_id)),
      () => other?.get('/v1/data/tags'),
    ];
    const waiting: ReturnType<(typeof requests)[number]>[] = [];
    let upload: ReturnType<Api['upload']> | undefined;
    for (const request of requests) {
      waiting.push(request());
      await until(sessionsWaiting, (value) => expect(value).toBe(waiting.length));
      // The first read uses up its organisation's share of the connections, so this upload waits for a connection. The
      // upload has to start by now, while keys can still be checked.
      upload ??= one?.upload('tags', [newTag()]);
    }
    // This lock comes last, because it prevents looking up keys that the process has not cached.
    const release = await lock('api_keys', 'access exclusive');
    await untilUnready(server, 'stalled');
    const stuck = new RegExp(
      'uploads are waiting and no batch has been stored for \\d+ s; ' +
        'interactions are waiting and none has been stored for \\d+ s; ' +
        'every connection .* has been in use and none has been released for \\d+ s; ' +
        'the poll for changed keys has failed for \\d+ s\\. .* a session that holds a lock, and end it',
    );
    await until(
      async () => (await ask(server)).message,
      (value) => expect(value).toMatch(stuck),
    );
    await release();
    await expectReadyAgain(server);
    const statuses = (await Promise.all(waiting)).map((answer) => answer?.status);
    expect(statuses).toEqual([200, 201, 200]);
    // The upload may have timed out while it waited for a connection.
    expect([200, 503]).toContain((await upload)?.status);
  }));

it.concurrent('uploads that wait for a lock, and uploads that wait for their connections, are 503 within 10 s', () =>
  inScene({ DATABASE_CONNECTIONS_MAX: '2' }, async ({ server, keys, lock }) => {
    const apis = keys.map((key) => apiOf(server.url, key));
    let release: (() => Promise<void>) | undefined;
    await expectInTime(async () => {
      await release?.();
      await expectReadyAgain(server);
      release = await lock('tags', 'access exclusive');
      const beganMs = performance.now();
      const answers = many(6, async (at) => {
        // The later requests get a connection when the first ones have timed out.
        await sleep(at * 400);
        const sentMs = performance.now();
        const { status, headers, body } = (await apis[at % 2]?.upload('tags', [newTag()])) ?? {};
        expect({ status, code: body.code }).toEqual({
          status: 503,
          code: expect.stringMatching(/^(database_unavailable|overloaded)$/),
        });
        expect(Number(headers?.get('retry-after'))).toBeGreaterThan(0);
        expect(body.message).toMatch(/Nothing was stored\.$/);
        return performance.now() - sentMs;
      });
      const slowest = Math.max(...(await Promise.all(answers)));
      console.log(
        `answered within ${slowest.toFixed(0)} ms, all after ${(performance.now() - beganMs).toFixed(0)} ms`,
      );
      return [{ what: 'the slowest answer', ms: slowest, promisedMs: 10_000 }];
    });
    await release?.();
    await expectReadyAgain(server);
    expect((await apis[0]?.upload('tags', [newTag()]))?.status).toBe(200);
  }));

it.concurrent('a process whose uploads timed out is not ready within 10 s, and for as long as the lock is held', () =>
  inScene({ DATABASE_TIMEOUT_MS: '2000' }, async ({ server, keys, lock }) => {
    let release: (() => Promise<void>) | undefined;
    await expectInTime(async () => {
      await release?.();
      await expectReadyAgain(server);
      release = await lock('tags');
      const beganMs = performance.now();
      expect((await apiOf(server.url, keys[0]).upload('tags', [newTag()])).status).toBe(503);
      await untilUnready(server, 'stalled');
      return [{ what: 'unready', ms: performance.now() - beganMs, promisedMs: unreadyWithinMs }];
    });
    for (let round = 0; round < 2; round++) {
      await sleep(1_100);
      await untilUnready(server, 'stalled');
    }
    await release?.();
    await expectReadyAgain(server);
  }));

/** Returns the partition for a day, where 0 is today. */
const dayOf = (table: string, day: number) =>
  `${table}_${new Date(Date.now() + day * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '_')}`;

it.concurrent('a process is not ready while the partition that uploads write to is locked', () =>
  inScene({ DATABASE_TIMEOUT_MS: '2000' }, async ({ server, keys, lock }) => {
    // Lock tomorrow's partition too, in case the test runs past midnight.
    const release = await lock([0, 1].map((day) => dayOf('changes', day)).join());
    expect((await apiOf(server.url, keys[0]).upload('tags', [newTag()])).status).toBe(503);
    for (let round = 0; round < 3; round++) {
      await untilUnready(server, 'stalled');
      await sleep(1_100);
    }
    await release();
    await expectReadyAgain(server);
  }));

it.concurrent('a process is ready while a past day of interactions is locked, as during indexing and vacuum full', () =>
  inScene({ DATABASE_TIMEOUT_MS: '4000' }, async ({ server, keys, lock }) => {
    const working = new pg.Client({ connectionString: server.databaseUrl });
    await working.connect();
    try {
      for (const mode of ['share', 'access exclusive']) {
        await working.query(`begin; lock table ${dayOf('interactions', -2)} in ${mode} mode`);
        const release = await lock('tags');
        expect((await apiOf(server.url, keys[0]).upload('tags', [newTag()])).status).toBe(503);
        await untilUnready(server, 'stalled');
        await release();
        await expectReadyAgain(server);
        await working.query('rollback');
      }
    } finally {
      await working.end();
    }
  }));

it.concurrent('a process that stores other records meanwhile is ready', () =>
  inScene({ DATABASE_TIMEOUT_MS: '120000' }, async ({ server, keys, lock }) => {
    const release = await lock('tags');
    const sentMs = performance.now();
    const waiting = many(3, () => apiOf(server.url, keys[0]).upload('tags', [newTag()]));
    const other = apiOf(server.url, keys[1]);
    for (const endMs = performance.now() + unreadyWithinMs; performance.now() < endMs; await sleep(500)) {
      const { http } = await other.batch('keywords', [{ keyword_id: randomUUID(), name: 'lunch' }]);
      expect(http).toBe(200);
      // If the machine stalls briefly, the database's response may be lost. A process that has stalled stays not ready.
      await expectReadyAgain(server);
    }
    // On a slow machine, the uploads begin to wait late, so their time may not be up yet.
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(503);
    // They have their own timeout, which is shorter than that of a statement.
    expect(performance.now() - sentMs).toBeLessThan(60_000);
    await release();
  }));

it.concurrent('a paused PostgreSQL makes a process not ready while an upload waits, and ready again once it continues', async () => {
  const postgres = await startFreezablePostgres();
  const server = await startBuiltServer({ DATABASE_URL: postgres.url });
  try {
    const api = apiOf(server.url, await server.createKey('acme'));
    await api.batch('tags', [newTag()]);
    postgres.freeze();
    // The upload uses the existing connection, because new logins would fail.
    const upload = api.upload('tags', [newTag()]);
    await untilUnready(server, 'database_unavailable');
    expect((await ask(server)).message).toMatch(/The database does not answer; check that it is running/);
    // Wait long enough for the upload to count as stalled.
    await sleep(8_500);
    expect((await ask(server)).status).toBe(503);
    postgres.thaw();
    await expectReadyAgain(server);
    await upload;
  } finally {
    postgres.thaw();
    await server.stop();
    await postgres.stop();
  }
});
