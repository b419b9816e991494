// @module-tag full

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { fillRejections } from '../support/fill-rejections.ts';
import { takenMax, watchOthers } from '../support/in-time.ts';
import { many, newTag } from '../support/new-records.ts';
import { startSteadyClient } from '../support/steady-client.ts';

/**
 * Organisations that read a lot, or open streams and read nothing, do not stop another organisation's uploads. The goal is
 * at most twice the time. On a shared machine, uploads take 1.7 to 1.9 times as long with readers of rejections, which is
 * asserted with a margin. With unread streams, they take 1 to 6 times as long until the streams have filled the sockets'
 * buffers, 4 MB each on the loopback interface. Full ones cost nothing.
 */

const rounds = 5;
const roundsMax = 25;
const roundMs = 2_000;
let server: BuiltServer;
let quiet: string;
let readers: string[];
const children: ChildProcess[] = [];

beforeAll(async () => {
  server = await startBuiltServer();
  quiet = await server.createKey('quiet');
  readers = [await server.createKey('one'), await server.createKey('two'), await server.createKey('three')];
  await fillRejections(server.databaseUrl, { one: 5_000, two: 5_000, three: 5_000 });
  for (const key of readers)
    for (let upload = 0; upload < 10; upload++)
      expect(
        (
          await apiOf(server.url, key).upload(
            'tags',
            many(5_000, () => newTag()),
          )
        ).status,
      ).toBe(200);
});
afterAll(async () => {
  for (const child of children) child.kill();
  await server.stop();
});

const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

async function uploads(): Promise<{ p50Ms: number; p99Ms: number }> {
  const client = startSteadyClient(server.url, quiet, 10);
  await sleep(roundMs);
  const { statuses, p50Ms, p99Ms } = await client.stop();
  expect(Object.keys(statuses)).toEqual(['200']);
  return { p50Ms, p99Ms };
}

it.each([
  ['ten readers of rejection lists', 'lists', 10, 1, 4],
  ['sixty unread streams of changes', 'streams', 60, 3, 8],
])('%s do not stop the uploads of others', async (_what, kind, count, keys, timesMax) => {
  const program = new URL('../support/demanding-readers.ts', import.meta.url);
  const child = fork(program, [server.url, kind, String(count), ...readers.slice(0, keys)]);
  children.push(child);
  const [alone, beside]: [number[], number[]] = [[], []];
  const tails: [number[], number[]] = [[], []];
  let pages = 0;
  const shareTaken = watchOthers();
  const isSlow = () => median(beside) > timesMax * median(alone);
  await uploads();
  while (alone.length < rounds || (isSlow() && alone.length < roundsMax)) {
    const before = await uploads();
    child.send('start');
    await sleep(500);
    const during = await uploads();
    child.send('stop');
    pages += (await once(child, 'message'))[0].pages;
    alone.push(before.p50Ms);
    beside.push(during.p50Ms);
    tails[0].push(before.p99Ms);
    tails[1].push(during.p99Ms);
  }
  const shown = (numbers: readonly number[]) => median(numbers).toFixed(1);
  console.log(
    `p50 ${shown(alone)} ms alone, ${shown(beside)} ms with ${kind}; p99 ${shown(tails[0])} and ${shown(tails[1])} ms; ${pages} pages`,
  );
  if (isSlow() && shareTaken() > takenMax)
    return console.log(`${kind} need a machine of which others take less`);
  expect(median(beside)).toBeLessThanOrEqual(timesMax * median(alone));
});
