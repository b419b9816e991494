// @module-tag full

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake, type IntakeError, type NewInteraction } from '../src/index.ts';
import { type Fate, type Seen, startHttpProxy } from './support/http-proxy.ts';
import { runIntake } from './support/run-intake.ts';

/** This file tests what the client does after an attempt to send interactions that was not answered. */

let server: BuiltServer;
/** Another process of the service, whose operator has set lower limits. */
let small: BuiltServer;
let key: string;
let shopId: string;

beforeAll(async () => {
  server = await startBuiltServer();
  const limits = { RECORDS_PER_REQUEST_MAX: '300' };
  small = await startBuiltServer({ DATABASE_URL: server.databaseUrl, ...limits });
});

afterAll(async () => {
  await small.stop();
  await server.stop();
});

let made = 0;
beforeEach(async () => {
  key = await server.createKey(`unknown-${++made}`);
  const shop = newShop();
  shopId = shop.shop_id;
  await new Intake({ url: server.url, key }).upload('shops', [shop]).finish();
});

const interactions = (count: number): NewInteraction[] =>
  many(count, (at) => ({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shopId,
    user_id: `visitor ${at}`,
    event_timestamp: at + 1,
  }));

async function startProxy(fateOf: (seen: Seen, count: number) => Fate | Promise<Fate>) {
  const proxy = await startHttpProxy(server.url, fateOf);
  onTestFinished(() => proxy.close());
  return proxy;
}

async function countOf(): Promise<number> {
  let count = 0;
  for await (const _ of new Intake({ url: server.url, key }).interactions.list({ limit: 1000 })) count++;
  return count;
}

/** A proxy that loses the answer to each first attempt. Every later attempt reaches the process with lower limits. */
async function losesThenShrinks() {
  const keys = new Set<string>();
  const proxy = await startProxy(({ method, headers }) => {
    const sent = String(headers['idempotency-key']);
    if (method !== 'POST' || keys.has(sent)) return 'pass';
    keys.add(sent);
    proxy.target = server.url;
    setTimeout(() => (proxy.target = small.url), 0);
    return 'cut after';
  });
  return proxy;
}

const notStored = { code: 'database_unavailable', message: 'The database is away. Nothing was stored.' };
const away: Fate = { status: 503, body: JSON.stringify(notStored), retryAfter: 0, type: 'application/json' };

it('a request that may be stored is not split by an upload, and its key shows what is stored', async () => {
  const { url } = await losesThenShrinks();
  const intake = new Intake({ url, key });
  const error: IntakeError = await intake.interactions
    .upload(interactions(1_000))
    .finish()
    .then(
      () => expect.fail('it succeeded'),
      (thrown) => thrown,
    );
  expect(error).toMatchObject({ outcome: 'unknown', details: [{ code: 'too_many_records' }] });
  expect(error.message).toContain(`GET /v1/requests?idempotency_key=${error.idempotencyKeys[0]} shows`);
  expect(await countOf()).toBe(1_000);
  const receipts = [];
  for await (const one of intake.requests.list({ idempotency_key: error.idempotencyKeys[0]! }))
    receipts.push(one.counts.created);
  expect(receipts).toEqual([1_000]);
});

it('nor is a batch of record()', async () => {
  const { url } = await losesThenShrinks();
  const intake = new Intake({ url, key });
  const results = await Promise.allSettled(interactions(500).map((one) => intake.record(one)));
  const reasons = results.map((result) => (result.status === 'rejected' ? result.reason.outcome : 'stored'));
  expect(new Set(reasons)).toEqual(new Set(['unknown']));
  expect(await countOf()).toBe(500);
});

it('nor is a request of the command, which continues when the limits allow it', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'intake-unknown-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  const rows = interactions(3_000).map((one) => `${Object.values(one).join()}\n`);
  writeFileSync(
    join(cwd, 'interactions.csv'),
    `${Object.keys(interactions(1)[0]!).join()}\n${rows.join('')}`,
  );
  const { url } = await losesThenShrinks();
  const place = (at: string) => ({ cwd, env: { INTAKE_URL: at, INTAKE_KEY: key } });
  const first = await runIntake(place(url), 'upload', 'interactions.csv');
  expect(first).toMatchObject({ exitCode: 2, stdout: '' });
  expect(first.stderr).toContain('intake requests --idempotency-key');
  // The next run does not split it either, although its own first attempt is answered.
  const proxy = await startProxy(() => 'pass');
  proxy.target = small.url;
  const path = join(cwd, 'interactions.csv.journal');
  const journal = readFileSync(path, 'utf8');
  expect(journal).toContain('{"sent":0,"count":2000,');
  writeFileSync(path, journal.replace(url, proxy.url));
  const second = await runIntake(place(proxy.url), 'upload', 'interactions.csv', '--resume');
  expect(second).toMatchObject({ exitCode: 2, stdout: '' });
  expect(second.stderr).toContain('may be stored');
  const counts = [...readFileSync(path, 'utf8').matchAll(/"sent":(\d+),"count":(\d+)/g)].map(
    ([, ...both]) => both,
  );
  expect(counts).toEqual([
    ['0', '2000'],
    ['2000', '1000'],
  ]);
  proxy.target = server.url;
  const third = await runIntake(place(proxy.url), 'upload', 'interactions.csv', '--resume', '--json');
  expect(third.exitCode, third.stderr).toBe(0);
  expect(JSON.parse(third.stdout).files[0].counts).toMatchObject({ received: 3_000, created: 3_000 });
  expect(await countOf()).toBe(3_000);
});

it('after a lost answer, no error says that nothing was stored', async () => {
  for (const count of [1, 2, 3]) {
    const proxy = await startProxy(({ method }, at) =>
      method === 'POST' ? (at === 1 ? 'cut after' : away) : 'pass',
    );
    const intake = new Intake({ url: proxy.url, key, retryForMs: 1_500 });
    const results = await Promise.allSettled(
      count < 3
        ? interactions(count).map((one) => intake.record(one))
        : [intake.interactions.upload(interactions(3)).finish()],
    );
    for (const result of results) {
      const reason = (result as PromiseRejectedResult).reason as IntakeError;
      expect(reason).toMatchObject({ code: 'database_unavailable', status: 503, outcome: 'unknown' });
      expect(reason.message).toContain('The outcome is unknown');
      expect(reason.message).not.toContain('Nothing was stored');
    }
  }
  expect(await countOf()).toBe(6);
});

it('if every attempt was refused, the error keeps saying that nothing was stored', async () => {
  const proxy = await startProxy(() => away);
  const intake = new Intake({ url: proxy.url, key, retryForMs: 500 });
  const failed = { outcome: 'failed', message: notStored.message };
  await expect(intake.record(interactions(1)[0]!)).rejects.toMatchObject(failed);
  await expect(intake.interactions.upload(interactions(2)).finish()).rejects.toMatchObject(failed);
});

it('if one request is refused, the others that were sent with it are unknown', async () => {
  const refused = { status: 403, body: JSON.stringify({ code: 'organisation_suspended', message: 'no' }) };
  const proxy = await startProxy(({ body }) =>
    body.includes('"visitor 0"') ? { ...refused, type: 'application/json' } : 'pass',
  );
  const intake = new Intake({ url: proxy.url, key });
  const error = await intake.interactions
    .upload(interactions(12_000))
    .finish()
    .catch((thrown: IntakeError) => thrown);
  expect(error).toMatchObject({ code: 'organisation_suspended', outcome: 'unknown' });
  expect((error as IntakeError).idempotencyKeys.length).toBeGreaterThan(0);
});

it.each([10_000, 35_000])(
  'after an outage in an upload, the error says that %i are stored and how to continue',
  async (stored) => {
    let isAway = true;
    const proxy = await startProxy(({ method, headers }) => {
      const first = Number(String(headers['idempotency-key']).split('-').at(-1));
      return method === 'POST' && isAway && first >= stored ? away : 'pass';
    });
    const intake = new Intake({ url: proxy.url, key, retryForMs: 1_500 });
    const all = interactions(40_000);
    const error: IntakeError = await intake.interactions
      .upload(all)
      .finish()
      .then(
        () => expect.fail('it succeeded'),
        (thrown) => thrown,
      );
    expect(error).toMatchObject({ code: 'database_unavailable', status: 503, outcome: 'unknown' });
    expect(error.message).toContain(
      `The database is away. The outcome is unknown: ${stored} records of earlier requests are stored`,
    );
    expect(error.message).not.toContain('Nothing was stored');
    expect(error.idempotencyKeys[0]).toMatch(/-0$/);
    expect(await countOf()).toBe(stored);
    isAway = false;
    const [name = ''] = /(?<=with the name )[^;]+/.exec(error.message) ?? [];
    const { counts } = await intake.interactions.upload(all, { name }).finish();
    expect(counts).toMatchObject({ received: 40_000, created: 40_000 });
    expect(await countOf()).toBe(40_000);
  },
);

it.each<[string, Fate]>([
  ['a page of a proxy', { status: 200, body: '<html>Log in</html>', type: 'text/html' }],
  ['an empty object', { status: 200, body: '{}', type: 'application/json' }],
  [
    'counts that do not add up',
    {
      status: 200,
      type: 'application/json',
      body: JSON.stringify({
        request_id: crypto.randomUUID(),
        batches: [
          {
            batch: 1,
            status: 200,
            data: {
              counts: { received: 2, created: 1, updated: 0, unchanged: 0, stale: 0, failed: 0 },
              errors: [],
              warnings: [],
            },
          },
        ],
      }),
    },
  ],
])('%s with status 200 is not an answer', async (_what, foreign) => {
  let isForeign = true;
  const proxy = await startProxy(({ method }) => {
    if (method !== 'POST' || !isForeign) return 'pass';
    isForeign = false;
    return foreign;
  });
  const intake = new Intake({ url: proxy.url, key, retryForMs: 5_000 });
  const { counts } = await intake.interactions.upload(interactions(2)).finish();
  expect(counts).toMatchObject({ received: 2, created: 2 });
  const always = await startProxy(({ method }) => (method === 'POST' ? foreign : 'pass'));
  const other = new Intake({ url: always.url, key, retryForMs: 5_000 });
  await expect(other.interactions.upload(interactions(2)).finish()).rejects.toMatchObject({
    code: 'unexpected_answer',
    outcome: 'unknown',
  });
  const recorded = await Promise.allSettled(interactions(2).map((one) => other.record(one)));
  expect(recorded).toMatchObject([{ reason: { outcome: 'unknown' } }, { reason: { outcome: 'unknown' } }]);
  expect(await countOf()).toBe(2);
});

it('a named upload with more records at the end adds only these, in any process', async () => {
  const intake = new Intake({ url: server.url, key });
  const all = interactions(5_250);
  const named = (count: number, by = intake) =>
    by.interactions.upload(all.slice(0, count), { name: `history ${made}` }).finish();
  for (const count of [100, 101, 101, 5_020, 5_250, 5_250]) {
    expect((await named(count)).counts).toMatchObject({ received: count, created: count });
    expect(await countOf()).toBe(count);
  }
  // A process with lower limits cannot take the first request, which is stored.
  await expect(named(5_250, new Intake({ url: small.url, key }))).rejects.toMatchObject({
    outcome: 'unknown',
  });
  expect(await countOf()).toBe(5_250);
});

it('a named upload that began in small requests is completed in the same requests', async () => {
  const name = `small ${made}`;
  const all = interactions(1_000);
  const few = new Intake({ url: small.url, key });
  expect((await few.interactions.upload(all.slice(0, 700), { name }).finish()).counts.created).toBe(700);
  const intake = new Intake({ url: server.url, key });
  expect((await intake.interactions.upload(all, { name }).finish()).counts.created).toBe(1_000);
  expect(await countOf()).toBe(1_000);
});

it('a duplicate of a request that arrives after the request was split is not stored', async () => {
  const proxy = await startProxy(() => 'pass');
  proxy.target = small.url;
  const all = interactions(400);
  const intake = new Intake({ url: proxy.url, key });
  expect((await intake.interactions.upload(all).finish()).counts.created).toBe(400);
  const recorder = new Intake({ url: proxy.url, key });
  await Promise.all(all.map((one) => recorder.record(one)));
  const whole = proxy.seen.filter(({ body }) => body.includes('visitor 0"') && body.includes('visitor 399"'));
  expect(whole).toHaveLength(2);
  for (const { url, headers, body } of whole) {
    const { 'idempotency-key': idempotencyKey = '' } = headers;
    const duplicate = await fetch(server.url + url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'idempotency-key': String(idempotencyKey),
      },
      body,
    });
    expect(duplicate.status).toBe(422);
  }
  expect(await countOf()).toBe(800);
});

it('Retry-After may be a date, and a clock that is set back does not prolong a wait', async () => {
  let startedMs = 0;
  const inTwoSeconds = () => new Date(Date.now() + 2_000).toUTCString();
  const proxy = await startProxy(({ method }, count): Fate => {
    if (method !== 'POST' || count > 1) return 'pass';
    return { status: 429, retryAfter: inTwoSeconds(), type: 'application/json', body: '{}' };
  });
  const realNow = Date.now;
  onTestFinished(() => {
    Date.now = realNow;
  });
  const intake = new Intake({
    url: proxy.url,
    key,
    onRetry: () => {
      Date.now = () => realNow() - 3_600_000;
    },
  });
  startedMs = performance.now();
  await Promise.all([
    intake.record(interactions(1)[0]!),
    intake.interactions.upload(interactions(1)).finish(),
  ]);
  const tookMs = performance.now() - startedMs;
  expect(tookMs).toBeGreaterThan(900);
  // Otherwise it would take an hour.
  expect(tookMs).toBeLessThan(600_000);
});

it.each([
  ['the monotonic clock, which may stop while the computer sleeps', performance],
  ['the time of day, which may be set back', Date],
])('a request is not sent again a day later, whatever %s says', async (_what, stopped) => {
  const proxy = await startProxy(({ method }) => (method === 'POST' ? 'cut after' : 'pass'));
  const clocks = [performance, Date].filter((clock) => clock !== stopped);
  const before = clocks.map((clock) => clock.now);
  onTestFinished(() => {
    for (const [at, clock] of clocks.entries()) clock.now = before[at] as typeof clock.now;
  });
  const intake = new Intake({
    url: proxy.url,
    key,
    onRetry: () => {
      for (const [at, clock] of clocks.entries())
        clock.now = () => (before[at] as typeof clock.now).call(clock) + 86_400_000;
    },
  });
  await expect(intake.record(interactions(1)[0]!)).rejects.toMatchObject({ outcome: 'unknown' });
  expect(proxy.seen).toHaveLength(1);
  expect(await countOf()).toBe(1);
});
