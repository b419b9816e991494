import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { startFreezablePostgres } from '../support/freezable-postgres.ts';
import { many } from '../support/new-records.ts';

/** A process in which nothing is stored any more is not ready, and says why; a busy one is ready. */

const unreadyWithinMs = 10_000;
const readyWithinMs = 5_000;

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

async function untilUnready(server: Pick<BuiltServer, 'url'>) {
  const beganMs = performance.now();
  while (performance.now() - beganMs < unreadyWithinMs) {
    const answer = await ask(server);
    if (answer.status === 503) return answer;
    await sleep(100);
  }
  throw new Error('it went on saying that it is ready');
}

async function expectReadyAgain(server: Pick<BuiltServer, 'url'>) {
  await expect
    .poll(async () => (await ask(server)).status, { timeout: readyWithinMs, interval: 100 })
    .toBe(200);
}

interface Scene {
  readonly server: BuiltServer;
  readonly keys: readonly string[];
  /** Has another session lock tables; returns how to let go of it. */
  lock(tables: string, mode?: string): Promise<() => Promise<void>>;
}

async function inScene(env: Record<string, string>, play: (scene: Scene) => Promise<void>): Promise<void> {
  const databaseUrl = await createTestDatabase();
  const server = await startBuiltServer({ DATABASE_URL: databaseUrl, ...env });
  const client = new pg.Client({ connectionString: databaseUrl });
  try {
    await client.connect();
    const keys = [await server.createKey('acme'), await server.createKey('other')];
    await play({
      server,
      keys,
      async lock(tables, mode = 'exclusive') {
        await client.query(`begin; lock table ${tables} in ${mode} mode`);
        return async () => void (await client.query('rollback'));
      },
    });
  } finally {
    await client.end();
    await server.stop();
  }
}

it('a process of which nothing ends is not ready until it goes on, and says what is stuck', () =>
  inScene({ DATABASE_CONNECTIONS_MAX: '2' }, async ({ server, keys, lock }) => {
    const [one, other] = keys.map((key) => apiOf(server.url, key));
    const tag = newTag();
    await one?.batch('tags', [tag]);
    await other?.get('/v1/data/tags');
    const release = await lock('tags, interactions, api_keys', 'access exclusive');
    const waiting = [
      one?.upload('tags', [newTag()]),
      ...many(20, () => one?.post('/user-interactions', interactionWith(tag.tag_id))),
      other?.get('/v1/data/tags'),
    ];
    const { code } = await untilUnready(server);
    expect(code).toBe('stalled');
    await expect
      .poll(async () => (await ask(server)).message, { timeout: 5_000 })
      .toMatch(
        new RegExp(
          'uploads are waiting and no batch has been stored for \\d+ s; ' +
            'interactions are waiting and none has been stored for \\d+ s; ' +
            'every connection .* has been in use and none has come back for \\d+ s; ' +
            'the poll for changed keys has failed for \\d+ s\\. .* a session that holds a lock, and end it',
        ),
      );
    await release();
    await expectReadyAgain(server);
    const statuses = (await Promise.all(waiting)).map((answer) => answer?.status);
    expect(statuses).toEqual([200, ...many(20, () => 201), 200]);
  }));

it('a process whose uploads were given up is not ready for as long as the lock is held', () =>
  inScene({ DATABASE_TIMEOUT_MS: '2000' }, async ({ server, keys, lock }) => {
    const release = await lock('tags');
    expect((await apiOf(server.url, keys[0]).upload('tags', [newTag()])).status).toBe(503);
    await untilUnready(server);
    for (let round = 0; round < 2; round++) {
      await sleep(1_100);
      expect((await ask(server)).code).toBe('stalled');
    }
    await release();
    await expectReadyAgain(server);
  }));

it('a process that stores other records meanwhile is ready', () =>
  inScene({}, async ({ server, keys, lock }) => {
    const release = await lock('tags');
    const waiting = many(3, () => apiOf(server.url, keys[0]).upload('tags', [newTag()]));
    const other = apiOf(server.url, keys[1]);
    for (const endMs = performance.now() + unreadyWithinMs; performance.now() < endMs; await sleep(500)) {
      const { http } = await other.batch('keywords', [{ keyword_id: randomUUID(), name: 'lunch' }]);
      expect(http).toBe(200);
      expect((await ask(server)).status).toBe(200);
    }
    await release();
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
  }));

it('a PostgreSQL that is stopped makes a process unready while an upload waits, and ready again once it goes on', async () => {
  const postgres = await startFreezablePostgres();
  const server = await startBuiltServer({ DATABASE_URL: postgres.url });
  try {
    const api = apiOf(server.url, await server.createKey('acme'));
    await api.batch('tags', [newTag()]);
    postgres.freeze();
    // Over the connection that there is; nobody could log in.
    const upload = api.upload('tags', [newTag()]);
    const answer = await untilUnready(server);
    expect(answer.code).toBe('database_unavailable');
    expect(answer.message).toMatch(/The database does not answer; check that it runs/);
    // Long enough for the upload to have stalled as well.
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
