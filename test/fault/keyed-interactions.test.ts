// @module-tag full

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { readFeed } from '../support/change-feed.ts';
import { many, newTag } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/**
 * Several clients send interactions with the same keys to two processes, one of which is killed repeatedly, each time at a
 * random message to the database. A retried interaction is stored once.
 */

const kills = Number(process.env.KILLS ?? 4);
const keysPerKill = 30;
const messagesMax = 10;
const tag = newTag();

let steady: BuiltServer;
let proxy: TcpProxy;
let key: string;
const servers = new Set<BuiltServer>();
beforeAll(async () => {
  steady = await startBuiltServer();
  servers.add(steady);
  key = await steady.createKey('acme');
  await apiOf(steady.url, key).batch('tags', [tag]);
  proxy = await startTcpProxy(steady.databaseUrl);
});
afterAll(async () => {
  await Promise.all([...servers].map((server) => server.stop()));
  await proxy.close();
});

/** The responses that clients received, by key. */
const answers = new Map<string, string>();
let broken = 0;

async function record(api: Api, name: string): Promise<Answer> {
  const body = {
    interaction_type: 'SHARE',
    item_type: 'TAG',
    item_id: tag.tag_id,
    event_timestamp: 1,
    user_id: name,
  };
  return api.post('/user-interactions', body, { 'idempotency-key': name });
}

/** Sends interactions again whether or not they were answered. Every response for a key must be the same. */
async function recordAll(api: Api, names: readonly string[]): Promise<void> {
  const sent = await Promise.allSettled(names.map((name) => record(api, name)));
  for (const [at, one] of sent.entries()) {
    const name = names[at] as string;
    if (one.status === 'rejected' || one.value.status >= 500) {
      broken++;
      continue;
    }
    expect(one.value.status).toBe(201);
    const answer = JSON.stringify(one.value.body);
    expect(answers.get(name) ?? answer).toBe(answer);
    answers.set(name, answer);
  }
}

async function killOnce(names: readonly string[]): Promise<void> {
  const server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
  servers.add(server);
  const ended = once(server.process, 'exit');
  const [lastMessage, lastArrives] = [randomInt(1, messagesMax + 1), randomInt(2) === 1];
  let messages = 0;
  proxy.watch((bytes) => {
    if (messages === 0 && !bytes.includes('interaction')) return true;
    if (++messages === lastMessage) server.process.kill('SIGKILL');
    return messages < lastMessage || (messages === lastMessage && lastArrives);
  });
  const [victim, other] = [apiOf(server.url, key), apiOf(steady.url, key)];
  const [forwards, backwards] = [names, names.toReversed()];
  await Promise.all([
    recordAll(victim, forwards),
    recordAll(victim, backwards),
    // The other process gets only the second half of the keys, so the killed process alone claims the first half.
    recordAll(other, backwards.slice(0, names.length / 2)),
  ]);
  server.process.kill('SIGKILL');
  await ended;
  proxy.unwatch();
  servers.delete(server);
}

it(`34: after ${kills} kills, with the same keys at two processes, each key is stored, counted and logged once`, async () => {
  const all: string[] = [];
  for (const kill of many(kills, (at) => at)) {
    const names = many(keysPerKill, (at) => `key-${kill}-${at}`);
    all.push(...names);
    await killOnce(names);
  }
  // If the kills interrupted no request, the test proves nothing.
  expect(broken).toBeGreaterThan(0);
  const api = apiOf(steady.url, key);
  await recordAll(api, all);
  expect([...answers.keys()].toSorted()).toEqual(all.toSorted());
  const stored = await queryDatabase<{ user_id: string; id: string }>(
    steady.databaseUrl,
    'select user_id, interaction_id as id from interactions',
  );
  expect(stored.map(({ user_id }) => user_id).toSorted()).toEqual(all.toSorted());
  expect((await overviewOf(api)).interactions?.records).toBe(all.length);
  const { changes } = await readFeed(api, { query: 'types=interactions' });
  expect(changes.map(({ id }) => id).toSorted()).toEqual(stored.map(({ id }) => id).toSorted());
});
