// @module-tag full

import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { type Answer, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { exchange } from '../support/exchange.ts';
import { expectInTime } from '../support/in-time.ts';
import { many } from '../support/new-records.ts';
import { runCommand } from '../support/run-command.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/** Every process refuses a revoked key within five seconds, even if it cannot reach the database. */

const reachesMs = 5_000;
const revocations = Number(process.env.REVOCATIONS ?? 12);
const processes = 3;
/** The number of concurrent commands. More commands would only wait for each other. */
const lanes = 2;
/** The interval between a watcher's requests, which is also the maximum delay before it notices a refusal. */
const lookMs = 200;

let databaseUrl: string;
let servers: AdminServer[];
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  servers = await Promise.all(many(processes, () => startAdminServer({ DATABASE_URL: databaseUrl })));
});
afterAll(async () => {
  agent.destroy();
  await Promise.all(servers.map((server) => server.stop()));
});

const run = (...args: string[]) => runCommand(args, { DATABASE_URL: databaseUrl });
/** Sends a request that needs no query, so that its status depends only on the key. */
const ask = async (server: BuiltServer, key: string) =>
  (await exchange(`${server.url}/nowhere`, { agent, key })).status;

/** Sends requests to a process until it refuses the key, and returns the time of the refusal. */
async function refusedAt(server: BuiltServer, key: string, until: () => number): Promise<number> {
  for (;;) {
    const status = await ask(server, key);
    const now = performance.now();
    if (status === 401) return now;
    expect(status).toBe(404);
    expect(now, 'still honoured long after it was revoked').toBeLessThan(until());
    await sleep(lookMs);
  }
}

/** Issues keys and revokes each while every process is using it. Returns how long each process still accepted each key. */
async function revokeAll(): Promise<number[]> {
  const issued: { key: string; key_id: string }[] = [];
  for (let at = 0; at < revocations; at++)
    issued.push((await servers[0]!.admin.post('/admin/v1/keys', { organisation: 'acme' })).body);
  const delays: number[] = [];
  const waiting = [...issued];
  const watched: Promise<unknown>[] = [];
  const runLane = async () => {
    for (let one = waiting.pop(); one; one = waiting.pop()) {
      const { key, key_id } = one;
      // Every process has cached the key, and requests keep using it.
      for (const server of servers) expect(await ask(server, key)).toBe(404);
      let revokedAt = Number.POSITIVE_INFINITY;
      const until = () => revokedAt + 12 * reachesMs;
      const refusals = Promise.all(servers.map((server) => refusedAt(server, key, until)));
      const { exitCode } = await run('keys', 'revoke', key_id);
      expect(exitCode).toBe(0);
      revokedAt = performance.now();
      watched.push(refusals.then((times) => delays.push(...times.map((time) => time - revokedAt))));
    }
  };
  await Promise.all(many(lanes, runLane));
  await Promise.all(watched);
  expect(delays).toHaveLength(revocations * processes);
  for (const { key } of issued.slice(0, 20))
    for (const server of servers) expect(await ask(server, key)).toBe(401);
  return delays;
}

it(`a revoked key is refused by each of ${processes} processes within 5 s, ${revocations} times`, async () => {
  await servers[0]!.admin.post('/admin/v1/organisations', { slug: 'acme' });
  await expectInTime(async () => {
    const ms = Math.max(...(await revokeAll()));
    console.log(`after ${revocations} revocations the longest of the refusals took ${Math.round(ms)} ms`);
    return [{ what: 'the last refusal', ms, promisedMs: reachesMs }];
  });
});

describe('a process that is cut off from its database', () => {
  let proxy: TcpProxy;
  let server: BuiltServer;
  let key: string;
  beforeAll(async () => {
    proxy = await startTcpProxy(databaseUrl);
    server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl, DATABASE_TIMEOUT_MS: '1000' });
    await run('organisations', 'create', 'cut-off');
    key = await issue();
  });
  afterAll(async () => {
    await server.stop();
    await proxy.close();
  });

  async function issue(): Promise<string> {
    const { stdout } = await run('keys', 'issue', '--organisation', 'cut-off', '--json');
    return JSON.parse(stdout).key;
  }
  const answer = (presented = key): Promise<Answer> => apiOf(server.url, presented).get('/nowhere');
  const status = async (presented = key) => (await answer(presented)).status;
  /** Returns the final status, because a busy database may not answer in time at first. */
  async function statusInTheEnd(presented = key): Promise<number> {
    for (;;) {
      const said = await status(presented);
      if (said !== 503) return said;
    }
  }

  it('keeps accepting its cached keys for a moment, not for 5 s, and serves again once it is back', () =>
    expectInTime(async () => {
      const revoked = await issue();
      expect([await statusInTheEnd(), await statusInTheEnd(revoked)]).toEqual([404, 404]);
      await proxy.refuse();
      const cutAt = performance.now();
      const revoking = run('keys', 'revoke', revoked.split('_')[1]!);
      const seen: { at: number; status: number }[] = [];
      while (performance.now() - cutAt < reachesMs + 2_000) {
        const at = performance.now() - cutAt;
        seen.push({ at, status: await status() });
        await sleep(100);
      }
      const firstRefusal = seen.find((one) => one.status !== 404)?.at ?? Number.POSITIVE_INFINITY;
      console.log(`remembered keys were used for ${Math.round(firstRefusal)} ms without the database`);
      expect(new Set(seen.filter(({ at }) => at >= firstRefusal).map((one) => one.status))).toEqual(
        new Set([503]),
      );
      expect((await answer()).headers.get('retry-after')).toMatch(/^[1-9]/);
      expect((await revoking).exitCode).toBe(0);

      await proxy.accept();
      expect(await statusInTheEnd()).toBe(404);
      // A key that was revoked in the meantime was never accepted again.
      expect(await statusInTheEnd(revoked)).toBe(401);
      // If a process's last poll was late, it stops trusting cached keys sooner.
      const isForAMoment = firstRefusal > 1_500;
      return [
        { what: 'refused', ms: firstRefusal, promisedMs: reachesMs },
        { what: 'used for a moment', ms: isForAMoment ? 0 : Number.POSITIVE_INFINITY, promisedMs: reachesMs },
      ];
    }));

  it('does so too if the network drops everything silently', async () => {
    await expect.poll(() => status()).toBe(404);
    proxy.watch(() => false);
    const cutAt = performance.now();
    await sleep(reachesMs);
    const answers = await Promise.all(
      many(5, async (at) => {
        await sleep(at * 200);
        return status();
      }),
    );
    expect(answers).toEqual(many(5, () => 503));
    expect(performance.now() - cutAt).toBeLessThan(reachesMs + 60_000);
    proxy.unwatch();
    await expect.poll(() => status(), { interval: 200 }).toBe(404);
  });
});
