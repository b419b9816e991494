// @module-tag full

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { inOneWindow } from '../support/in-one-window.ts';
import { many, newShop } from '../support/new-records.ts';
import { type Nginx, nginxIsInstalled, startNginx } from '../support/nginx.ts';
import { residentMegabytes } from '../support/process-state.ts';

/**
 * Tests visitors who misuse a browser key by sending 3,000 requests from one address, or by guessing students.
 * src/admission/bounded-limiter.test.ts tests how many addresses are kept in memory.
 */

const origin = 'https://shop.example';
const perSecond = 50;
const requests = 3_000;

let server: BuiltServer;
let ownersKey: string;
let key: string;
let shop: string;
let student: string;
const agent = new Agent({ keepAlive: true, maxSockets: 50 });
beforeAll(async () => {
  server = await startBuiltServer({
    TRUSTED_PROXY: '127.0.0.1',
    BROWSER_INTERACTIONS_PER_SECOND_MAX: String(perSecond),
  });
  ownersKey = await server.createKey('acme');
  const issue = ['keys', 'issue', '--organisation', 'acme', '--json', '--browser', '--origin', origin];
  key = JSON.parse(await server.run(...issue)).key;
  const headers = { 'x-forwarded-proto': 'https' };
  const owner = apiOf(server.url, ownersKey);
  shop = newShop().shop_id;
  student = randomUUID();
  const customer = { customer_id: student, user_id: randomUUID(), region: 'GB' };
  await owner.post('/v1/data/shops', { records: [newShop({ shop_id: shop })] }, headers);
  await owner.post('/v1/data/customers', { records: [customer] }, headers);
});
afterAll(async () => {
  agent.destroy();
  await server.stop();
});

const seen = (fields: object = {}) =>
  JSON.stringify({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop,
    event_timestamp: 1_700_000_000,
    ...fields,
  });

/** Returns the status, and the time since the request was sent. */
async function record(address: string, body = seen(), with_ = key): Promise<{ status: number; ms: number }> {
  const headers = {
    authorization: `Bearer ${with_}`,
    origin,
    'x-forwarded-proto': 'https',
    'x-forwarded-for': address,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  const beganMs = performance.now();
  const sent = request(`${server.url}/user-interactions`, { method: 'POST', agent, headers });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  await text(answer);
  return { status: answer.statusCode ?? 0, ms: performance.now() - beganMs };
}

/** Sends all requests, 50 at a time, and returns how many got each status. */
async function flood(address: string): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let next = 0;
  const lane = async () => {
    while (next < requests) {
      next++;
      const { status } = await record(address);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(many(50, lane));
  return statuses;
}

it('3,000 requests from one address are limited; others are served meanwhile', async () => {
  const beganMs = performance.now();
  const before = residentMegabytes(server.process.pid, 'VmRSS');
  const flooding = flood('203.0.113.1');
  const others: number[] = [];
  for (let at = 0; at < 5; at++) {
    others.push(
      (await record(`198.51.100.${at}`)).status,
      (await record('192.0.2.1', seen(), ownersKey)).status,
    );
  }
  const statuses = await flooding;
  const windows = Math.ceil((performance.now() - beganMs) / 2_000) + 1;
  const accepted = statuses.get(202) ?? 0;
  console.log(`${accepted} of ${requests} were accepted in ${windows - 1} windows of ${2 * perSecond}`);
  const grown = residentMegabytes(server.process.pid, 'VmRSS') - before;
  console.log(`the process has grown by ${grown.toFixed(1)} MB`);
  expect(grown).toBeLessThan(150);
  expect(accepted).toBeGreaterThan(0);
  expect(accepted).toBeLessThanOrEqual(windows * 2 * perSecond);
  expect(accepted + (statuses.get(429) ?? 0)).toBe(requests);
  expect(others).toEqual(many(5, () => [202, 201]).flat());
});

it('the time of an answer does not reveal whether the student exists', async () => {
  // Each response is delayed to the next tenth of a second, so apart from the network, both kinds take the same time. But
  // while the machine needs about a tenth of a second for a response, chance decides which tenth comes next.
  let apartMs = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3 && apartMs >= 20; attempt++) apartMs = await differenceMs();
  expect(apartMs).toBeLessThan(20);
});

const median = (times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;

/** Returns how far the medians for a student who exists and for one who does not are apart. */
async function differenceMs(): Promise<number> {
  const times: Record<'existing' | 'absent', number[]> = { existing: [], absent: [] };
  const ask = async (kind: 'existing' | 'absent', address: string) => {
    const student_id = kind === 'existing' ? student : randomUUID();
    const { status, ms } = await record(address, seen({ student_id }));
    expect(status).toBe(202);
    times[kind].push(ms);
  };
  for (let at = 0; at < 30; at++)
    await Promise.all([ask('existing', `198.51.100.${at}`), ask('absent', `192.0.2.${at}`)]);
  const [existing, absent] = [median(times.existing), median(times.absent)];
  console.log(`medians: existing ${existing.toFixed(1)} ms, absent ${absent.toFixed(1)} ms`);
  expect(Math.min(...times.existing, ...times.absent)).toBeGreaterThan(95);
  return Math.abs(existing - absent);
}

it.skipIf(!nginxIsInstalled)(
  'nginx passes preflights and origins, and each visitor has an address',
  async () => {
    const nginx = await startNginx(many(4, () => Number(new URL(server.url).port)));
    try {
      await expectServedBehind(nginx);
    } finally {
      await nginx.stop();
    }
  },
);

async function expectServedBehind({ url, ca }: Nginx): Promise<void> {
  const send = async (localAddress: string, method: string, more: Record<string, string>) => {
    const headers = { origin, 'content-type': 'application/json', ...more };
    const sent = requestTls(`${url}/user-interactions`, { method, headers, ca, localAddress });
    sent.end(method === 'POST' ? seen() : undefined);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    await text(answer);
    return answer;
  };
  const preflight = await send('127.0.0.1', 'OPTIONS', { 'access-control-request-method': 'POST' });
  expect([preflight.statusCode, preflight.headers['access-control-max-age']]).toEqual([204, '7200']);
  // The address that a visitor claims to have is ignored.
  const authorization = `Bearer ${key}`;
  const spoofed = () =>
    many(2 * perSecond + 20, (at) =>
      send('127.0.0.2', 'POST', { authorization, 'x-forwarded-for': `192.0.2.${at}` }),
    );
  // A slow machine may need more time for the handshakes. Later attempts use the connections of the first one.
  const answers = await inOneWindow(() => Promise.all(spoofed()));
  const refused = answers.filter(({ statusCode }) => statusCode === 429);
  expect(refused.length).toBeGreaterThan(0);
  expect(answers.filter(({ statusCode }) => statusCode === 202).length).toBeGreaterThanOrEqual(2 * perSecond);
  expect(refused[0]?.headers['access-control-allow-origin']).toBe(origin);
  expect((await send('127.0.0.3', 'POST', { authorization })).statusCode).toBe(202);
}
