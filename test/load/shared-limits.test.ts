// @module-tag full

import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { exchange } from '../support/exchange.ts';
import { expectInTime, type Timed } from '../support/in-time.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { type Redis, redisIsInstalled, startRedis } from '../support/redis.ts';

/** How much two processes let through that count by one Redis, or each for itself while there is none. */

const recordsPerSecond = 500;
const windowMs = 2_000;
const recordsPerUpload = 25;
const clientsPerProcess = 4;
const measuredMs = 6_000;
/** The longest a client waits for an answer while Redis does not give one. */
const answeredMs = 1_000;
/** For how long it is sent before Redis goes away, and after. */
const [withRedisMs, withoutMs] = [1_000, 2_500];
/** When nobody is answered for longer, the machine does something else. */
const momentMs = 250;

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

  const newSeen = () => ({
    admitted: 0,
    refused: 0,
    others: [] as number[],
    longestMs: 0,
    /** When the last answer came. */
    ms: 0,
    /** For how long in all there was none. */
    silentMs: 0,
  });
  type Seen = ReturnType<typeof newSeen>;

  /** Sends several times what is allowed, to both processes, until it is over. */
  async function hammer(key: string, seen: Seen, isOver: () => boolean): Promise<void> {
    const agent = new Agent({ keepAlive: true });
    const began = performance.now();
    const send = async ({ url }: BuiltServer) => {
      while (!isOver()) {
        const body = { records: many(recordsPerUpload, () => newTag()) };
        const answer = await exchange(`${url}/v1/data/tags`, { agent, key, body });
        const sinceMs = performance.now() - began - seen.ms;
        seen.ms += sinceMs;
        if (sinceMs > momentMs) seen.silentMs += sinceMs;
        seen.longestMs = Math.max(seen.longestMs, answer.ms);
        if (answer.status === 200) seen.admitted += recordsPerUpload;
        else if (answer.status === 429) seen.refused += recordsPerUpload;
        else seen.others.push(answer.status);
        await sleep(10);
      }
    };
    await Promise.all(servers.flatMap((server) => many(clientsPerProcess, () => send(server))));
    agent.destroy();
  }

  /** Sends until some was let through and some refused after Redis went away, and says how long a client waited. */
  async function hammerWithout(slug: 'killed' | 'frozen', takeAway: () => unknown): Promise<Timed[]> {
    const storedBefore = await storedOf(slug);
    const seen = newSeen();
    let gone: Seen | undefined;
    const hammered = hammer(
      keys[slug],
      seen,
      () =>
        gone !== undefined &&
        seen.ms > gone.ms + withoutMs &&
        seen.admitted > gone.admitted &&
        seen.refused > gone.refused,
    );
    await sleep(withRedisMs);
    await takeAway();
    gone = { ...seen };
    await hammered;
    console.log(`Redis ${slug}:`, seen);
    expect(seen.others).toEqual([]);
    // Each process allows a window's worth in each of the windows; one more may have begun before.
    expect(seen.admitted).toBeLessThanOrEqual(servers.length * (windowsIn(seen) + 1) * windowMax);
    expect((await storedOf(slug)) - storedBefore).toBe(seen.admitted);
    return [{ what: 'an answer', ms: seen.longestMs, promisedMs: answeredMs }];
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
  const windowsIn = ({ ms }: Seen) => Math.ceil(ms / windowMs);
  const expectShared = () => expect.poll(leftAfterTheOther, { timeout: 60_000 }).toBe(windowMax - 40);

  async function measure() {
    const storedBefore = await storedOf('measured');
    const seen = newSeen();
    const beganMs = performance.now();
    // What is still under way at the end would begin a window more.
    await hammer(keys.measured, seen, () => performance.now() - beganMs > measuredMs - 300);
    const allowed = windowMax * windowsIn(seen);
    console.log(`${seen.admitted} of ${allowed} records admitted, ${seen.refused} refused`);
    expect((await storedOf('measured')) - storedBefore).toBe(seen.admitted);
    return { seen, allowed };
  }

  it('admit no more than 105 % over 6 s, and hardly less', { timeout: 300_000 }, async () => {
    // Each pause of the machine makes what waits for Redis count by itself, which only adds: one of three is enough.
    let { seen, allowed } = await measure();
    for (let again = 0; again < 2 && seen.admitted > 1.05 * allowed; again++)
      ({ seen, allowed } = await measure());
    expect(seen.others).toEqual([]);
    expect(seen.refused).toBeGreaterThan(allowed);
    expect(seen.admitted).toBeLessThanOrEqual(1.05 * allowed);
    // The last window may have only begun.
    const possible = (recordsPerSecond * (seen.ms - seen.silentMs)) / 1_000 - windowMax;
    expect(seen.admitted).toBeGreaterThan(0.9 * possible);
  });

  it('go on by themselves when Redis is killed, and are shared again once it is back', {
    timeout: 300_000,
  }, async () => {
    await expectInTime(async () => {
      await expectShared();
      const told = await hammerWithout('killed', () => redis.kill());
      for (const { log } of servers)
        expect(log.filter((line) => JSON.parse(line).level >= 40 && /redis/i.test(line))).not.toEqual([]);
      await redis.restart();
      await expectShared();
      return told;
    });
  });

  it('go on by themselves when Redis is frozen, and are shared again once it goes on', {
    timeout: 300_000,
  }, async () => {
    await expectInTime(async () => {
      const told = await hammerWithout('frozen', () => redis.freeze());
      redis.thaw();
      await expectShared();
      return told;
    });
  });
});
