// @module-tag full

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { many, newTag } from '../support/new-records.ts';
import { type Redis, redisIsInstalled, startRedis } from '../support/redis.ts';
import { scrapeMetrics } from '../support/scrape-metrics.ts';

/**
 * Two processes share their counters in Redis, and use separate counters when Redis is unavailable. The tests in
 * test/load measure how much the processes admit.
 */

const windowMs = 2_000;
const windowMax = 1_000;

let redis: Redis;
let servers: BuiltServer[];
let apis: Api[];
let key: string;
let metricsUrl: string;
describe.skipIf(!redisIsInstalled)('limits that processes share', () => {
  beforeAll(async () => {
    redis = await startRedis();
    const port = await freePort();
    metricsUrl = `http://127.0.0.1:${port}/metrics`;
    const env = {
      DATABASE_URL: await createTestDatabase(),
      REDIS_URL: redis.url,
      RECORDS_PER_SECOND_MAX: String(windowMax / (windowMs / 1_000)),
      RECORDS_PER_REQUEST_MAX: '100',
      BROWSER_INTERACTIONS_PER_SECOND_MAX: '20',
    };
    const first = startBuiltServer({ ...env, METRICS_PORT: String(port) });
    servers = await Promise.all([first, startBuiltServer(env)]);
    key = await servers[0]!.createKey('acme');
    apis = servers.map(({ url }) => apiOf(url, key));
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await redis.stop();
  });

  const upload = (api: Api, count: number) =>
    api.upload(
      'tags',
      many(count, () => newTag()),
    );

  /** Returns the quota left at the second process in a new window after the first process has admitted thirty records. */
  async function leftAfterTheOther(): Promise<number> {
    await sleep(windowMs + 100);
    await upload(apis[0]!, 30);
    const { status, headers } = await upload(apis[1]!, 10);
    expect(status).toBe(200);
    return Number(/"records";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);
  }
  const expectLeft = (left: number) => expect.poll(leftAfterTheOther).toBe(left);
  const expectUp = (up: number) =>
    expect.poll(async () => (await scrapeMetrics(metricsUrl)).get('intake_redis_up')).toBe(up);
  const expectShared = () => expectLeft(windowMax - 40);
  const expectApart = () => expectLeft(windowMax - 10);

  it('are counted by each process when Redis is killed, with a line in the log, and together once it is back', async () => {
    await expectShared();
    await redis.kill();
    await expectApart();
    await expectUp(0);
    for (const { log } of servers)
      expect(log.filter((line) => JSON.parse(line).level >= 40 && /redis/i.test(line))).not.toEqual([]);
    await redis.restart();
    await expectShared();
    await expectUp(1);
  });

  it('are shared for each address that uses a browser key, and counted by each process while Redis is unavailable', async () => {
    const origin = 'https://shop.example';
    const issue = ['keys', 'issue', '--organisation', 'acme', '--json', '--browser', '--origin', origin];
    const { key: pageKey } = JSON.parse(await servers[0]!.run(...issue));
    const record = async (server: BuiltServer) => {
      const { headers } = await apiOf(server.url, pageKey).post('/user-interactions', {}, { origin });
      return Number(/"interactions";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);
    };
    const leftAfterTheOther = async () => {
      await sleep(windowMs + 100);
      await record(servers[0]!);
      return record(servers[1]!);
    };
    await expect.poll(leftAfterTheOther).toBe(38);
    await redis.kill();
    await expect.poll(leftAfterTheOther).toBe(39);
    await redis.restart();
    await expectShared();
  });

  it('are counted by each process while Redis is frozen, and together once it continues', async () => {
    await expectShared();
    redis.freeze();
    await expectApart();
    await expectUp(0);
    redis.thaw();
    await expectShared();
  });

  it('do not prevent a process from starting and serving when Redis is unavailable', async () => {
    await redis.kill();
    const { databaseUrl } = servers[0]!;
    const alone = await startBuiltServer({ DATABASE_URL: databaseUrl, REDIS_URL: redis.url });
    expect((await apiOf(alone.url, key).batch('tags', [newTag()])).http).toBe(200);
    await alone.stop();
  });
});
