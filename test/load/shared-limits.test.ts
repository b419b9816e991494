import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { exchange } from '../support/exchange.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { type Redis, redisIsInstalled, startRedis } from '../support/redis.ts';

/** How much two processes let through that count by one Redis, or each for itself while there is none. */

const recordsPerSecond = 500;
const windowMs = 2_000;
const recordsPerUpload = 25;
const clientsPerProcess = 4;
const measuredMs = 30_000;
/** The longest a client waits for an answer while Redis does not give one. */
const answeredMs = 1_000;

let redis: Redis;
let servers: BuiltServer[];
let keys: Record<'measured' | 'killed' | 'frozen' | 'probe', string>;
describe.skipIf(!redisIsInstalled)('limits that processes share', () => {
  beforeAll(async () => {
    redis = await startRedis();
    const env = {
      DATABASE_URL: await createTestDatabase(),
      REDIS_URL: redis.url,
      RECORDS_PER_SECOND_MAX: String(recordsPerSecond),
      RECORDS_PER_REQUEST_MAX: '100',
      COURSES_PER_REQUEST_MAX: '100',
    };
    servers = await Promise.all([startBuiltServer(env), startBuiltServer(env)]);
    const [server] = servers as [BuiltServer];
    keys = {
      measured: await server.createKey('measured'),
      killed: await server.createKey('killed'),
      frozen: await server.createKey('frozen'),
      probe: await server.createKey('probe'),
    };
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await redis.stop();
  });

  /** Sends several times what is allowed, to both processes, for so long. */
  async function hammer(key: string, ms: number) {
    const agent = new Agent({ keepAlive: true });
    const seen = { admitted: 0, refused: 0, others: [] as number[], longestMs: 0 };
    const began = performance.now();
    const send = async ({ url }: BuiltServer) => {
      while (performance.now() - began < ms) {
        const body = { records: many(recordsPerUpload, () => newTag()) };
        const answer = await exchange(`${url}/v1/data/tags`, { agent, key, body });
        seen.longestMs = Math.max(seen.longestMs, answer.ms);
        if (answer.status === 200) seen.admitted += recordsPerUpload;
        else if (answer.status === 429) seen.refused += recordsPerUpload;
        else seen.others.push(answer.status);
        await sleep(10);
      }
    };
    await Promise.all(servers.flatMap((server) => many(clientsPerProcess, () => send(server))));
    agent.destroy();
    return seen;
  }

  async function storedOf(slug: string): Promise<number> {
    const [row] = await queryDatabase<{ count: number }>(
      servers[0]!.databaseUrl,
      `select count(*)::integer as count from tags join organisations using (organisation_id)
       where slug = $1`,
      [slug],
    );
    return row!.count;
  }

  /** What the second process says is left in a fresh window, after the first has let thirty records through. */
  async function leftAfterTheOther(): Promise<number> {
    await sleep(windowMs + 100);
    const [first, second] = servers.map(({ url }) => apiOf(url, keys.probe)) as [
      ReturnType<typeof apiOf>,
      ReturnType<typeof apiOf>,
    ];
    await first.upload(
      'tags',
      many(30, () => newTag()),
    );
    const { headers } = await second.upload(
      'tags',
      many(10, () => newTag()),
    );
    return Number(/"records";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);
  }
  const windowMax = recordsPerSecond * (windowMs / 1_000);
  const expectShared = () => expect.poll(leftAfterTheOther, { timeout: 12_000 }).toBe(windowMax - 40);

  it('admit no more than 105 % over 30 s, and hardly less', { timeout: 60_000 }, async () => {
    // What is still under way at the end would begin a window more.
    const seen = await hammer(keys.measured, measuredMs - 300);
    const allowed = recordsPerSecond * (measuredMs / 1_000);
    console.log(`${seen.admitted} of ${allowed} records admitted, ${seen.refused} refused`);
    expect(seen.others).toEqual([]);
    expect(seen.refused).toBeGreaterThan(3 * allowed);
    expect(seen.admitted).toBeLessThanOrEqual(1.05 * allowed);
    expect(seen.admitted).toBeGreaterThan(0.85 * allowed);
    expect(await storedOf('measured')).toBe(seen.admitted);
  });

  it('go on by themselves when Redis is killed, and are shared again once it is back', {
    timeout: 60_000,
  }, async () => {
    await expectShared();
    const hammered = hammer(keys.killed, 4_000);
    await sleep(1_000);
    await redis.kill();
    const seen = await hammered;
    console.log('Redis killed:', seen);
    expect(seen.others).toEqual([]);
    expect(seen.longestMs).toBeLessThan(answeredMs);
    // Each process allows a window's worth in each of the windows, and there are up to three.
    expect(seen.admitted).toBeLessThanOrEqual(servers.length * 3 * windowMax);
    expect(seen.admitted).toBeGreaterThan(windowMax);
    expect(seen.refused).toBeGreaterThan(windowMax);
    expect(await storedOf('killed')).toBe(seen.admitted);
    for (const { log } of servers)
      expect(log.filter((line) => JSON.parse(line).level >= 40 && /redis/i.test(line))).not.toEqual([]);
    await redis.restart();
    await expectShared();
  });

  it('go on by themselves when Redis is frozen, and are shared again once it goes on', {
    timeout: 60_000,
  }, async () => {
    const hammered = hammer(keys.frozen, 4_000);
    await sleep(1_000);
    redis.freeze();
    const seen = await hammered;
    console.log('Redis frozen:', seen);
    redis.thaw();
    expect(seen.others).toEqual([]);
    expect(seen.longestMs).toBeLessThan(answeredMs);
    expect(seen.admitted).toBeLessThanOrEqual(servers.length * 3 * windowMax);
    expect(seen.admitted).toBeGreaterThan(windowMax);
    expect(await storedOf('frozen')).toBe(seen.admitted);
    await expectShared();
  });
});
