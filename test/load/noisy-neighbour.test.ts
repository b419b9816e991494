// @module-tag full

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { exchange } from '../support/exchange.ts';
import { takenMax, watchOthers } from '../support/in-time.ts';
import { many, newTag } from '../support/new-records.ts';
import { slowness } from '../support/slowness.ts';

/** An organisation that sends ten times its limit does not slow down another organisation. */

/** There are many short rounds, alternately with and without noise, so that other load affects both alike. */
const rounds = 5;
/** Other load may affect only the rounds with or without noise. With more rounds, it does not affect the median. */
const roundsMax = 11 * rounds;
const roundMs = 1_000;
/** A slow machine would be busy with uploads alone. */
const quietPerSecond = 100 / slowness();
const noisyLimit = 20;

let server: BuiltServer;
let quiet: string;
let noisy: string;
let sender: ChildProcess;
const agent = new Agent({ keepAlive: true });
beforeAll(async () => {
  server = await startBuiltServer();
  [quiet, noisy] = [await server.createKey('quiet'), await server.createKey('noisy')];
  await server.run('organisations', 'limit', 'noisy', '--requests-per-second', String(noisyLimit));
  const { hostname, port } = new URL(server.url);
  sender = fork(new URL('../support/noise.ts', import.meta.url), [
    hostname,
    port,
    noisy,
    String(10 * noisyLimit),
  ]);
});
afterAll(async () => {
  agent.destroy();
  sender.kill();
  await server.stop();
});

const url = () => `${server.url}/v1/data/tags`;

/** Uploads at a steady rate for a round, whatever the responses are. Returns the 99th percentile of the durations. */
async function p99Alone(): Promise<number> {
  const uploads: ReturnType<typeof exchange>[] = [];
  const began = performance.now();
  for (let at = 0; at < (roundMs / 1_000) * quietPerSecond; at++) {
    await sleep(Math.max(0, began + (at * 1_000) / quietPerSecond - performance.now()));
    uploads.push(exchange(url(), { agent, key: quiet, body: { records: many(2, () => newTag()) } }));
  }
  const answers = await Promise.all(uploads);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  const times = answers.map(({ ms }) => ms).toSorted((a, b) => a - b);
  return times[Math.ceil(times.length * 0.99) - 1]!;
}

interface Noise {
  sent: number;
  ms: number;
  readonly counts: Record<string, number>;
}

async function p99Beside(noise: Noise): Promise<number> {
  sender.send('start');
  await sleep(200);
  const p99 = await p99Alone();
  sender.send('stop');
  const [{ sent, counts, ms }] = await once(sender, 'message');
  noise.sent += sent;
  noise.ms += ms;
  for (const [what, count] of Object.entries<number>(counts))
    noise.counts[what] = (noise.counts[what] ?? 0) + count;
  return p99;
}

const newNoise = (): Noise => ({ sent: 0, ms: 0, counts: {} });
const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;

it('the 99th percentile of its neighbour at most doubles', async () => {
  const policy = async () =>
    (await exchange(`${server.url}/v1/data`, { agent, key: noisy })).headers['ratelimit-policy'];
  await expect.poll(policy).toBe(`"requests";q=${2 * noisyLimit};w=2`);
  const [alone, beside]: [number[], number[]] = [[], []];
  const noise = newNoise();
  // A process's first uploads are always slow.
  for (let round = 0; round < 3; round++) await p99Beside(newNoise());
  const shareTaken = watchOthers();
  const isDoubled = () => median(beside) > 2 * median(alone);
  while (alone.length < rounds || (isDoubled() && alone.length < roundsMax)) {
    alone.push(await p99Alone());
    beside.push(await p99Beside(noise));
  }
  const shown = (numbers: number[]) => numbers.map((ms) => ms.toFixed(1)).join(', ');
  console.log(`p99 alone: ${shown(alone)} ms; with noise: ${shown(beside)} ms`, noise);
  // The sender has the lowest priority, so it falls behind on a slow machine. Even three times the limit is still noise.
  const sentMin = (Math.max(3, 5 / slowness()) * noisyLimit * noise.ms) / 1_000;
  if ((noise.sent <= sentMin || isDoubled()) && shareTaken() > takenMax)
    return console.log('noise needs a machine of which others take less');
  expect(noise.sent).toBeGreaterThan(sentMin);
  expect(Object.keys(noise.counts).toSorted()).toEqual(['200', '429']);
  expect(noise.counts['429']).toBeGreaterThan(noise.counts['200']!);
  expect(median(beside)).toBeLessThanOrEqual(2 * median(alone));
});
