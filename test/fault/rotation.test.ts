import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { exchange } from '../support/exchange.ts';
import { many, newTag } from '../support/new-records.ts';
import { countStored } from '../support/query-database.ts';

/** A key is exchanged for its successor while everyone goes on uploading. */

const clients = 50;
const graceMs = 6_000;
/** The grace began while the command still ran; what is sent last must have arrived by its end. */
const switchedByMs = 4_500;

let server: BuiltServer;
let key: string;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
});
afterAll(() => server.stop());

it(`${clients} clients that move to the successor one by one within the grace notice nothing`, async () => {
  const agent = new Agent({ keepAlive: true });
  const statuses = new Map<string, number>();
  const tagIds: string[] = [];
  const keys = many(clients, () => key);
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
      const outcome = `${status} with the ${used === key ? 'old key' : 'successor'}`;
      statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
      tagIds.push(tag.tag_id);
    }
  });
  await sleep(1_000);
  const rotation = ['keys', 'rotate', key.split('_')[1]!, '--grace', `${graceMs / 1_000}s`, '--json'];
  const successor: string = JSON.parse(await server.run(...rotation)).key;
  const rotatedAt = Date.now();
  await Promise.all(
    many(clients, async (client) => {
      await sleep((client / clients) * switchedByMs);
      keys[client] = successor;
    }),
  );
  // Past the grace, and past the moment at which every process knows that it is over.
  await sleep(rotatedAt + graceMs + 5_000 - Date.now());
  stopped = true;
  await Promise.all(uploads);
  console.log('answers:', Object.fromEntries(statuses));
  agent.destroy();

  expect([...statuses.keys()].toSorted()).toEqual(['200 with the old key', '200 with the successor']);
  expect(statuses.get('200 with the successor')).toBeGreaterThan(clients);
  expect(await countStored(server.databaseUrl, 'tags', 'tag_id', tagIds)).toBe(tagIds.length);
  expect((await exchange(`${server.url}/nowhere`, { key })).status).toBe(401);
  expect((await exchange(`${server.url}/nowhere`, { key: successor })).status).toBe(404);
});
