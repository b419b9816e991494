// @module-tag full
// @module-tag pooler

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  it,
  onTestFinished,
} from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { loseCommit, loseFlush, saysBatch } from '../support/lose-commit.ts';
import { expectReady } from '../support/ready.ts';
import { runCommand } from '../support/run-command.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/**
 * Tests the responses when the database becomes unavailable at the worst moments, and that retrying is safe (rows 23 and
 * 23a of docs/api-behaviour.md).
 */

let directUrl: string;
let key: string;
let proxy: TcpProxy;
let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  directUrl = await createTestDatabase();
  const run = (...args: string[]) => runCommand(args, { DATABASE_URL: directUrl });
  await run('organisations', 'create', 'acme');
  key = JSON.parse((await run('keys', 'issue', '--organisation', 'acme', '--json')).stdout).key;
  proxy = await startTcpProxy(directUrl);
  await startServer();
});
beforeEach(async () => {
  proxy.unwatch();
  await proxy.accept();
  // If a test has killed the process, restart it so that later tests do not fail.
  if (!(await isAlive())) await startServer();
  await expectReady(server.url);
});
afterEach(async () => {
  expect(await isAlive(), 'the process lives').toBe(true);
});
afterAll(async () => {
  await server.stop();
  await proxy.close();
});

const isAlive = () =>
  api.get('/health/live').then(
    ({ status }) => status === 200,
    () => false,
  );

async function startServer(env: Record<string, string> = {}) {
  server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl, LAKE_URL: 'file:///nowhere', ...env });
  api = apiOf(server.url, key);
}

const newTag = () => ({ tag_id: randomUUID(), name: 'vegan' });
const newTags = (count: number) => Array.from({ length: count }, newTag);
/** Returns how many of these tags are in the database. */
async function storedTags(tags: readonly { tag_id: string }[]): Promise<number> {
  const client = new pg.Client({ connectionString: directUrl });
  await client.connect();
  const ids = tags.map(({ tag_id }) => tag_id);
  const { rowCount } = await client.query('select from tags where tag_id = any($1)', [ids]);
  await client.end();
  return rowCount ?? 0;
}

describe('a database that refuses connections', () => {
  it('does not prevent the service from starting, nor from serving once it is available', async () => {
    await proxy.refuse();
    const early = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
    try {
      expect((await apiOf(early.url).get('/health/live')).status).toBe(200);
      expectError(await apiOf(early.url).get('/health/ready'), 503);
      await proxy.accept();
      // The previous readiness result is cached for a moment.
      await expectReady(early.url);
    } finally {
      await early.stop();
    }
  });

  it('23a: is 503 with Retry-After for every operation that needs it, and none that does not', async () => {
    await proxy.refuse();
    const { paths } = (await api.get('/openapi.json')).body;
    const asking = Object.keys(paths).flatMap((path) =>
      Object.keys(paths[path])
        .filter(() => !['/health/live', '/v1/erasure-keys'].includes(path))
        .map(async (method) => ({ method, answer: await callOf(method, path) })),
    );
    expect(asking.length).toBeGreaterThan(17);
    for (const { method, answer } of await Promise.all(asking)) {
      expectError(answer, 503);
      expect(answer.body.code).toBe('database_unavailable');
      // A message about storing data would confuse a client that only reads.
      if (method === 'get') expect(answer.body.message).not.toMatch(/stored/);
      else expect(answer.body.message).toMatch(/Nothing was stored\.$/);
    }
    const dry = await api.post('/v1/data/tags?dry_run=true', { records: [newTag()] });
    expectError(dry, 503);
    expect(dry.body.message).not.toMatch(/stored/);
    expect((await api.get('/health/live')).status).toBe(200);
    expect((await api.get('/docs/')).status).toBe(200);
  });

  function callOf(method: string, path: string): Promise<Answer> {
    return method === 'get'
      ? api.get(path.replace('{table}', 'interactions').replace(/\{\w+\}/, randomUUID()))
      : api.post(path, { records: [newTag()] });
  }

  it('23a: is served again as soon as it is back, without a restart and with every connection', async () => {
    await proxy.refuse();
    expectError(await api.upload('tags', [newTag()]), 503);
    await proxy.accept();
    await expectReady(server.url);
    const thirty = async () => {
      const answers = await Promise.all(Array.from({ length: 30 }, () => api.upload('tags', [newTag()])));
      return answers.map(({ status }) => status);
    };
    await expect.poll(thirty).toEqual(Array(30).fill(200));
  });
});

describe('a database that is lost within an upload', () => {
  it('23a: in the first batch is 503 for the whole request, and nothing is stored', async () => {
    const tags = newTags(1_500);
    proxy.watch((bytes) => {
      if (saysBatch(bytes)) void proxy.refuse();
      return !saysBatch(bytes);
    });
    expectError(await api.upload('tags', tags), 503);
    expect(await storedTags(tags)).toBe(0);
  });

  it('23a: later keeps the stored batches, is 500 for the rest, and a retry completes it', async () => {
    const tags = newTags(3_000);
    let begun = 0;
    proxy.watch((bytes) => {
      if (saysBatch(bytes) && ++begun === 2) void proxy.refuse();
      return begun < 2;
    });
    const { status, headers, body } = await api.upload('tags', tags);
    expect(status).toBe(207);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(statusesOf(body)).toEqual([200, 500, 500]);
    const [first, second] = body.batches.map(({ data }: { data: object }) => data);
    expect(first).toMatchObject({ status: 'success', counts: { created: 1_000 } });
    expect(second).toMatchObject({ status: 'error', counts: { received: 1_000, failed: 1_000 } });
    expect(second.errors).toHaveLength(1_000);
    expect(second.errors[0]).toMatchObject({
      index: 1_000,
      id: tags[1_000]!.tag_id,
      field: null,
      code: 'not_stored',
    });
    expect(second.error).toMatch(/send it again/);
    expect(await storedTags(tags)).toBe(1_000);

    proxy.unwatch();
    await proxy.accept();
    await expectReady(server.url);
    const again = await api.upload('tags', tags);
    expect(again.status).toBe(200);
    expect(countsOf(again.body, 'unchanged')).toEqual([1_000, 0, 0]);
    expect(countsOf(again.body, 'created')).toEqual([0, 1_000, 1_000]);
    expect(await storedTags(tags)).toBe(3_000);
  });

  it('23: a connection cut between batches keeps the stored ones, and a retry completes it', async () => {
    const tags = newTags(3_000);
    let begun = 0;
    proxy.watch((bytes, link) => {
      if (!saysBatch(bytes) || ++begun !== 2) return true;
      link.cut();
      return false;
    });
    const { status, headers, body } = await api.upload('tags', tags);
    expect(status).toBe(207);
    expect(headers.has('retry-after')).toBe(true);
    expect(statusesOf(body).slice(0, 2)).toEqual([200, 500]);
    proxy.unwatch();
    expect((await api.upload('tags', tags)).status).toBe(200);
    expect(await storedTags(tags)).toBe(3_000);
  });

  it('23: an invalid record is reported as such even then', async () => {
    const bad = { tag_id: randomUUID(), name: 7 };
    let begun = 0;
    proxy.watch((bytes) => {
      if (saysBatch(bytes) && ++begun === 2) void proxy.refuse();
      return begun < 2;
    });
    const { body } = await api.upload('tags', [...newTags(1_000), bad, newTag()]);
    expect(body.batches[1].data.errors).toMatchObject([
      { index: 1_000, field: 'name', code: 'wrong_type' },
      { index: 1_001, field: null, code: 'not_stored' },
    ]);
  });
});

const statusesOf = (body: { batches: { status: number }[] }) => body.batches.map(({ status }) => status);
const countsOf = (body: { batches: { data: { counts: Record<string, number> } }[] }, kind: string) =>
  body.batches.map(({ data }) => data.counts[kind]);

describe('a COMMIT whose answer is lost', () => {
  const lines = { accept: 'application/x-ndjson' };
  const failing = { tag_id: 'no id' };
  it.each([
    ['reads a page of changes', newTag, () => api.get('/v1/changes'), 1],
    ['exports', newTag, () => api.get('/v1/data/tags', lines), 1],
    // The first COMMIT ends the transaction that searches for rejections.
    ['discards rejections', () => failing, () => api.send('/v1/rejections', { method: 'DELETE' }), 2],
  ])('23a: is 503 for a request that %s', async (_what, record, ask, nth) => {
    for (const arrives of [true, false]) {
      let answer: Answer;
      let isLost: () => boolean;
      // If maintenance has already numbered the change, the read has nothing to commit, and maintenance's COMMIT may be lost.
      do {
        proxy.unwatch();
        await api.upload('tags', [record()]);
        isLost = loseCommit(proxy, nth, arrives, 'any');
        answer = await ask();
      } while (!isLost() || answer.status === 200);
      expectError(answer, 503);
      expect(answer.body.code).toBe('database_unavailable');
      expect(answer.body.message).not.toMatch(/stored/);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });

  it.each([
    ['was carried out', true],
    ['never arrived', false],
  ])(
    '23: an upload whose COMMIT %s is 500 outcome_unknown; sent again, every record is stored once',
    async (_what, arrives) => {
      const tags = newTags(100);
      loseCommit(proxy, 1, arrives);
      const { status, headers, body } = await api.upload('tags', tags);
      expect(status).toBe(500);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      const [{ status: batchStatus, data }] = body.batches;
      expect({ batchStatus, ...data }).toMatchObject({
        batchStatus: 500,
        status: 'error',
        counts: { failed: 100 },
      });
      expect(new Set(data.errors.map(({ code }: { code: string }) => code))).toEqual(
        new Set(['outcome_unknown']),
      );
      expect(data.error).toMatch(/may or may not/i);
      expect(await storedTags(tags)).toBe(arrives ? 100 : 0);

      const again = await api.batch('tags', tags);
      expect(again).toMatchObject({ http: 200, counts: arrives ? { unchanged: 100 } : { created: 100 } });
      expect(await storedTags(tags)).toBe(100);
    },
  );

  it('23: later batches continue, and the whole is 207', async () => {
    const tags = newTags(2_000);
    loseCommit(proxy, 1, true);
    const { status, headers, body } = await api.upload('tags', tags);
    expect(status).toBe(207);
    expect(headers.has('retry-after')).toBe(true);
    expect(statusesOf(body)).toEqual([500, 200]);
    expect((await api.upload('tags', tags)).body.batches[0].data.counts.unchanged).toBe(1_000);
  });

  it.each([
    ['was carried out', true],
    ['never arrived', false],
  ])(
    '34: an interaction whose commit %s is 500; sent again with its key, it is stored once',
    async (_what, arrives) => {
      const interaction = await newInteraction();
      const headers = { 'idempotency-key': randomUUID() };
      loseFlush(proxy, arrives);
      const lost = await api.post('/user-interactions', interaction, headers);
      expectError(lost, 500);
      expect(lost.body.message).toMatch(/may or may not/);
      for (const _ of [1, 2])
        expect((await api.post('/user-interactions', interaction, headers)).status).toBe(201);
      const { body } = await api.get(`/user-interactions?item_id=${interaction.item_id}`);
      expect(body.interactions).toHaveLength(1);
    },
  );

  it('34: an interaction without a key whose answer is lost is 500, never a definite failure', async () => {
    const interaction = await newInteraction();
    loseFlush(proxy, true);
    const lost = await api.post('/user-interactions', interaction);
    expectError(lost, 500);
    expect(lost.body.message).toMatch(/may or may not/);
  });

  async function newInteraction() {
    const tag = newTag();
    await api.batch('tags', [tag]);
    return {
      interaction_type: 'SHARE',
      item_type: 'TAG',
      item_id: tag.tag_id,
      event_timestamp: 1_700_000_000,
    };
  }
});

// Distributed tables on Citus cannot have triggers.
it.skipIf(inject('citus'))(
  '23a: a page of changes is 503 while a Citus coordinator stops, which has no code for it',
  async () => {
    const client = new pg.Client({ connectionString: directUrl });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query(
      `create function stop() returns trigger language plpgsql as
       $$ begin raise exception using errcode = 'XX000', message = 'postmaster was shut down, exiting'; end $$;
     create trigger stops before insert or update on change_counters for each row execute function stop()`,
    );
    await api.upload('tags', [newTag()]);
    const answer = await api.get('/v1/changes');
    await client.query('drop trigger stops on change_counters; drop function stop');
    expectError(answer, 503);
    expect(answer.body.code).toBe('database_unavailable');
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await api.get('/v1/changes')).status).toBe(200);
  },
);

describe('a database that does not answer', () => {
  // Only these tests use a short timeout, because it would cancel statements whenever the machine stalls briefly.
  beforeAll(async () => {
    await server.stop();
    await startServer({ DATABASE_TIMEOUT_MS: '2000' });
  });
  const isStored = async (tag = newTag()) => (await api.upload('tags', [tag])).status === 200;

  it('23a: is 503 within seconds, and no connection stays behind', async () => {
    proxy.watch(() => false);
    const asked = Array.from({ length: 12 }, () => api.upload('tags', [newTag()]));
    for (const answer of await Promise.all(asked)) expectError(answer, 503);
    expect((await api.get('/health/live')).status).toBe(200);
    proxy.unwatch();
    await expectReady(server.url);
    const twelve = () => Promise.all(Array.from({ length: 12 }, () => isStored()));
    await expect.poll(twelve).toEqual(Array(12).fill(true));
  });

  it('23a: a statement that takes too long is 503, and the table is free again', async () => {
    const client = new pg.Client({ connectionString: directUrl });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('begin; lock table tags in access exclusive mode');
    const tag = newTag();
    expectError(await api.upload('tags', [tag]), 503);
    await client.query('rollback');
    expect(await storedTags([tag])).toBe(0);
    await expect.poll(() => isStored(tag)).toBe(true);
  });

  it('23a: connections ended by the administrator are replaced', async () => {
    const client = new pg.Client({ connectionString: directUrl });
    await client.connect();
    await client.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'intake-server' and datname = current_database()`);
    await client.end();
    // The service needs a moment to notice that its sessions were terminated.
    await expect.poll(() => isStored()).toBe(true);
  });
});
