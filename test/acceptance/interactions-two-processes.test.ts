// @module-tag pooler

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many, newTag } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { countWaiting, queryDatabase } from '../support/query-database.ts';

/** Tests several clients, processes or transactions that use the same Idempotency-Keys at the same time. */

let servers: BuiltServer[];
let databaseUrl: string;
const tag = newTag();
beforeAll(async () => {
  // With this timeout, a request that waits for a lock does not time out even on a slow machine.
  const env = { DATABASE_TIMEOUT_MS: '120000' };
  const first = await startBuiltServer(env);
  ({ databaseUrl } = first);
  servers = [first, await startBuiltServer({ ...env, DATABASE_URL: databaseUrl })];
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));

/** Returns the same organisation's API in both processes. */
async function newOrganisation(slug: string): Promise<[Api, Api]> {
  const key = await (servers[0] as BuiltServer).createKey(slug);
  const [first, second] = servers.map(({ url }) => apiOf(url, key)) as [Api, Api];
  await first.batch('tags', [tag]);
  return [first, second];
}

const share = { interaction_type: 'SHARE', item_type: 'TAG', item_id: tag.tag_id, event_timestamp: 1 };
const record = (api: Api, user_id: string, key: string) =>
  api.post('/user-interactions', { ...share, user_id }, { 'idempotency-key': key });

it('34: the same keys from several clients at two processes: each is stored once, and all answers are equal', async () => {
  const apis = await newOrganisation('acme');
  const users = many(60, (at) => `user-${at}`);
  // Every other client sends the keys in the opposite order.
  const clients = many(6, (client) => async () => {
    const order = users.toSorted((a, b) => (client % 2 === 0 ? 1 : -1) * a.localeCompare(b));
    const api = apis[client % 2] as Api;
    return Promise.all(order.map((user) => record(api, user, `key of ${user}`)));
  });
  const answers = (await Promise.all(clients.map((send) => send()))).flat();
  expect(answers.map(({ status }) => status)).toEqual(Array(360).fill(201));
  const bodies = new Set(answers.map(({ body }) => JSON.stringify(body)));
  expect(bodies.size).toBe(users.length);
  expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(60);
  const listed = await apis[0].get('/user-interactions?limit=1000');
  expect(listed.body.interactions).toHaveLength(users.length);
  expect((await overviewOf(apis[0])).interactions?.records).toBe(users.length);
});

it('34: a key that another transaction holds delays nobody else', async () => {
  const [api] = await newOrganisation('waiting');
  const [neighbour] = await newOrganisation('neighbour');
  const [organisation] = await queryDatabase<{ organisation_id: string }>(
    databaseUrl,
    `select organisation_id from organisations where slug = 'waiting'`,
  );
  // Hold more keys than the writer has connections, but fewer than the pooler has in the tests.
  const held = many(4, (at) => `held-${at}`);
  const holder = new pg.Client({ connectionString: databaseUrl });
  await holder.connect();
  await holder.query('begin');
  await holder.query(
    `insert into interaction_idempotency_keys (organisation_id, idempotency_key, body_sha256, interaction_id, claimed_at)
     select $1, unnest($2::text[]), '', gen_random_uuid(), now()`,
    [organisation?.organisation_id, held],
  );
  let answered = 0;
  const waiting = [];
  for (const [at, key] of held.entries()) {
    waiting.push(record(api, key, key).finally(() => answered++));
    // The requests are sent one after another, so that they do not share a flush.
    await expect.poll(() => countWaiting(databaseUrl)).toBe(at + 1);
  }
  const others = await Promise.all(
    many(40, (at) => record(at % 2 === 0 ? neighbour : api, `free-${at}`, randomUUID())),
  );
  expect(others.map(({ status }) => status)).toEqual(Array(40).fill(201));
  expect(answered).toBe(0);
  await holder.query('rollback');
  await holder.end();
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(held.length).fill(201));
});
