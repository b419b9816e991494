// @module-tag full

import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { exchange } from '../support/exchange.ts';
import { many, newTag } from '../support/new-records.ts';
import { countStored } from '../support/query-database.ts';

/** Tests replacing a key with its successor while all clients keep uploading. */

const clients = 50;
const switchedWithinMs = 2_500;
/** If the machine is too slow for all clients to switch within the grace period, the test retries with more time. */
const gracesMs = [6_000, 15_000, 40_000];

let server: BuiltServer;
let key: string;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
});
afterAll(() => server.stop());

/** Rotates a key under load. Returns the responses, and whether all clients switched in time. */
async function rotate(old: string, graceMs: number) {
  const agent = new Agent({ keepAlive: true });
  const statuses: Record<string, number> = {};
  const tagIds: string[] = [];
  const keys = many(clients, () => old);
  let lastWithOldMs = 0;
  let stopped = false;
  const uploads = many(clients, async (client) => {
    while (!stopped) {
      const tag = newTag();
      const used = keys[client]!;
      const { status } = await exchange(`${server.url}/v1/data/tags`, {
        agent,
        key: used,
        body: { records: [tag] },
      });
      const outcome = `${status} with the ${used === old ? 'old key' : 'successor'}`;
      statuses[outcome] = (statuses[outcome] ?? 0) + 1;
      if (used === old) lastWithOldMs = performance.now();
      tagIds.push(tag.tag_id);
    }
  });
  await expect.poll(() => tagIds.length).toBeGreaterThan(clients);
  // The actual grace period starts later, while the command runs.
  const beganMs = performance.now();
  const rotation = ['keys', 'rotate', old.split('_')[1]!, '--grace', `${graceMs / 1_000}s`, '--json'];
  const successor: string = JSON.parse(await server.run(...rotation)).key;
  await Promise.all(
    many(clients, async (client) => {
      await sleep((client / clients) * switchedWithinMs);
      keys[client] = successor;
    }),
  );
  await expect.poll(async () => (await exchange(`${server.url}/nowhere`, { key: old })).status).toBe(401);
  stopped = true;
  await Promise.all(uploads);
  agent.destroy();
  console.log('answers:', statuses);
  return { successor, statuses, tagIds, isInTime: lastWithOldMs < beganMs + graceMs };
}

it(`${clients} clients that move to the successor one by one within the grace notice nothing`, async () => {
  const [shortest = 0, ...longer] = gracesMs;
  let rotated = await rotate(key, shortest);
  for (const graceMs of longer) if (!rotated.isInTime) rotated = await rotate(rotated.successor, graceMs);
  const { successor, statuses, tagIds } = rotated;
  expect(Object.keys(statuses).toSorted()).toEqual(['200 with the old key', '200 with the successor']);
  expect(statuses['200 with the successor']).toBeGreaterThan(clients);
  expect(await countStored(server.databaseUrl, 'tags', 'tag_id', tagIds)).toBe(tagIds.length);
  expect((await exchange(`${server.url}/nowhere`, { key: successor })).status).toBe(404);
});
