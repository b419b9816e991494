// @module-tag full

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import {
  type BuiltServer,
  type SharedServer,
  sharedServer,
  startBuiltServer,
} from '../../test/support/built-server.ts';
import { many, newShop, newTag, newTransaction } from '../../test/support/new-records.ts';
import { Intake, IntakeError, type RecordOf } from '../src/index.ts';
import { type Fate, type Seen, startHttpProxy } from './support/http-proxy.ts';

let server: SharedServer;
let key: string;

beforeAll(async () => {
  server = await sharedServer();
  key = await server.createKey('client');
});

async function through(fateOf: (seen: Seen, count: number) => Fate | Promise<Fate>, options = {}) {
  const proxy = await startHttpProxy(server.url, fateOf);
  return { proxy, seen: proxy.seen, intake: new Intake({ url: proxy.url, key, ...options }) };
}

it('uploads an array, an iterable and an async iterable', async () => {
  const intake = new Intake({ url: server.url, key });
  const tags = () => many(3, () => newTag());
  async function* slowly() {
    yield* tags();
  }
  for (const records of [tags(), new Set(tags()), slowly()]) {
    expect(await intake.upload('tags', records).finish()).toMatchObject({
      counts: { received: 3, created: 3, failed: 0 },
      failed: [],
    });
  }
  expect((await intake.upload('tags', []).finish()).counts.received).toBe(0);
});

it('treats a 200 that is not from Intake as no answer', async () => {
  const page = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in to the network</html>'),
  ).listen(0, '127.0.0.1');
  await once(page, 'listening');
  const { port } = page.address() as AddressInfo;
  const intake = new Intake({ url: `http://127.0.0.1:${port}`, key, retryForMs: 0 });
  await expect(intake.upload('tags', [newTag()]).finish()).rejects.toMatchObject({
    code: 'unexpected_answer',
  });
  page.close();
});

it('splits at 5,000 records, 1,000 for courses, and 4,000,000 bytes', async () => {
  const { proxy, seen, intake } = await through(() => 'pass');
  const sizes = () =>
    seen
      .splice(0)
      .map(({ body }) => JSON.parse(body).records.length)
      .sort((a, b) => b - a);
  await intake
    .upload(
      'tags',
      many(12_000, () => newTag()),
    )
    .finish();
  expect(sizes()).toEqual([5000, 5000, 2000]);
  const courses = many(1_001, () => ({ course_id: randomUUID(), name: 'Baking' }));
  await intake.upload('courses', courses).finish();
  expect(sizes()).toEqual([1000, 1]);
  const long = many(100, () => newTag({ note: 'x'.repeat(60_000) }));
  expect((await intake.upload('tags', long).finish()).counts.created).toBe(100);
  expect(sizes()).toEqual([66, 34]);
  await proxy.close();
});

it('compresses with gzip if requested', async () => {
  const { proxy, seen, intake } = await through(() => 'pass', { compress: true });
  expect((await intake.upload('tags', [newTag()]).finish()).counts.created).toBe(1);
  expect(seen[0]?.headers).toMatchObject({ 'content-encoding': 'gzip', authorization: `Bearer ${key}` });
  expect(Number(seen[0]?.headers['content-length'])).toBeGreaterThan(20);
  await proxy.close();
});

it('yields each request with the records that failed, as they were given', async () => {
  const intake = new Intake({ url: server.url, key });
  const shops: RecordOf['shops'][] = many(6_000, () => newShop());
  const wrong = { shop_id: 'seven', name: 'Kiosk', region: 'GBR' };
  shops[17] = wrong;
  const lost = newTransaction(randomUUID());
  shops[5_500] = { ...newShop(), name: '' };
  const steps = [];
  for await (const step of intake.upload('shops', shops)) steps.push(step);
  expect(steps.map(({ counts }) => counts.received)).toEqual([5000, 6000]);
  expect(steps[0]?.failed).toHaveLength(1);
  expect(steps[0]?.failed[0]?.record).toBe(wrong);
  expect(steps[0]?.failed[0]).toMatchObject({
    index: 17,
    problems: [
      { field: 'shop_id', code: 'invalid_format' },
      { field: 'region', code: 'invalid_format' },
    ],
  });
  expect(steps[1]?.failed[0]).toMatchObject({
    index: 5_500,
    problems: [{ field: 'name', code: 'required' }],
  });
  const { failed } = await intake.upload('transactions', [lost]).finish();
  expect(failed).toMatchObject([{ record: lost, problems: [{ code: 'reference_not_found' }] }]);
});

it('decision 3: a record whose id is in a pending request waits for it, and others do not', async () => {
  const tag = newTag({ name: 'first' });
  // Hold the first request until the second one has arrived.
  const { proxy, seen, intake } = await through(async ({ body }): Promise<Fate> => {
    while (body.includes(tag.tag_id) && seen.length < 2) await sleep(5);
    return 'pass';
  });
  const tags: RecordOf['tags'][] = many(20_000, () => newTag());
  tags[0] = tag;
  tags[12_000] = { ...tag, tag_id: tag.tag_id.toUpperCase(), name: 'last' };
  await intake.upload('tags', tags).finish();
  expect(seen).toHaveLength(4);
  const [one, two, three] = [0, 5_000, 12_001].map((at) =>
    seen.find(({ body }) => body.includes(tags[at]!.tag_id)),
  ) as [Seen, Seen, Seen];
  expect(two.startedMs).toBeLessThan(one.endedMs ?? 0);
  expect(three.startedMs).toBeGreaterThan(one.endedMs ?? 0);
  expect((await intake.data.get('tags', tag.tag_id)).name).toBe('last');
  await proxy.close();
});

it('decision 3: an id that comes again in a later batch starts a new request', async () => {
  const { proxy, seen, intake } = await through(() => 'pass');
  const tag = newTag();
  const tags = [tag, { ...tag, name: 'second' }, ...many(1_500, () => newTag()), { ...tag, name: 'third' }];
  await intake.upload('tags', tags).finish();
  expect(seen.map(({ body }) => JSON.parse(body).records.length)).toEqual([1502, 1]);
  expect((await intake.data.get('tags', tag.tag_id)).name).toBe('third');
  await proxy.close();
});

it('ends complete although connections break and the service is busy, and stores nothing twice', async () => {
  const fates: Fate[] = [
    'cut before',
    'cut after',
    'cut within',
    { status: 503, retryAfter: 1 },
    { status: 429, retryAfter: 1 },
    { status: 502 },
    { status: 500, retryAfter: 1 },
  ];
  const { proxy, seen, intake } = await through((_, count) => fates[count - 1] ?? 'pass');
  const tags = many(23_000, () => newTag());
  const { counts } = await intake.upload('tags', tags).finish();
  expect(counts).toEqual({
    received: 23_000,
    created: 23_000,
    updated: 0,
    unchanged: 0,
    stale: 0,
    failed: 0,
    unknown: 0,
  });
  const keys = new Set(seen.map(({ headers }) => headers['idempotency-key']));
  expect(keys.size).toBe(5);
  expect(seen.length).toBe(5 + fates.length);
  await proxy.close();
});

it('waits as long as Retry-After requires, for all its requests', async () => {
  const { proxy, seen, intake } = await through((_, count) =>
    count === 1 ? { status: 429, retryAfter: 2 } : 'pass',
  );
  await intake.upload('tags', [newTag()]).finish();
  expect((seen[1]?.startedMs ?? 0) - (seen[0]?.startedMs ?? 0)).toBeGreaterThan(1_990);
  await proxy.close();
});

it('reports what it waits for, and stops after the given time', async () => {
  const waits: string[] = [];
  // If the machine stalls, the time may be up before the first attempt, so try again with more time.
  for (const retryForMs of [1_500, 6_000, 20_000]) {
    const intake = new Intake({
      url: 'http://127.0.0.1:9',
      key,
      retryForMs,
      onRetry: ({ code }) => waits.push(code),
    });
    const error = await intake
      .upload('tags', [newTag()])
      .finish()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(IntakeError);
    expect(error).toMatchObject({ code: 'connection_failed', status: null });
    if (waits.length > 0) break;
  }
  expect(waits.length).toBeGreaterThan(0);
});

it('survives a kill of the service', async () => {
  const first = await startBuiltServer();
  const otherKey = await first.createKey('killed');
  // Another process may get the killed service's port, so nothing is sent there.
  let isAway = false;
  const proxy = await startHttpProxy(first.url, () => (isAway ? 'cut before' : 'pass'));
  const intake = new Intake({ url: proxy.url, key: otherKey });
  const tags = many(40_000, () => newTag());
  let second: BuiltServer | undefined;
  let counts = {};
  for await (const step of intake.upload('tags', tags)) {
    counts = step.counts;
    if (step.counts.received === 10_000) {
      first.process.kill('SIGKILL');
      isAway = true;
      setTimeout(async () => {
        second = await startBuiltServer({ DATABASE_URL: first.databaseUrl });
        proxy.target = second.url;
        isAway = false;
      }, 500);
    }
  }
  expect(counts).toMatchObject({ received: 40_000, created: 40_000 });
  expect((await intake.data.overview())[0]?.records).toBe(40_000);
  await proxy.close();
  await second?.stop();
});

it('throws a typed error at once if a retry cannot help', async () => {
  const wrongKey = new Intake({ url: server.url, key: 'intake_wrong' });
  await expect(wrongKey.upload('tags', [newTag()]).finish()).rejects.toMatchObject({
    name: 'IntakeError',
    code: 'unauthorized',
    status: 401,
  });
  const reader = new Intake({ url: server.url, key: await server.createKey('client', 'data:read') });
  await expect(reader.upload('tags', [newTag()]).finish()).rejects.toMatchObject({
    code: 'missing_permission',
    permission: 'data:write:tags',
  });
  expect(() => new Intake({ url: 'ftp://here', key })).toThrow('https://');
  expect(() => new Intake({ url: server.url, key: 'a b' })).toThrow('API key');
});

it('refuses a name at once that cannot be part of an Idempotency-Key', async () => {
  const intake = new Intake({ url: server.url, key });
  const refused = 'at most 240 characters, all of them Latin-1';
  for (const name of ['历史', 'Łódź', '€', '😀', 'a\nb', 'a\0', 'x'.repeat(241)]) {
    expect(() => intake.upload('tags', [], { name })).toThrow(refused);
    expect(() => intake.interactions.upload([], { name })).toThrow(refused);
  }
  for (const name of ['Käse 1', 'x'.repeat(240)]) {
    const tags = [newTag()];
    const { counts } = await intake.upload('tags', tags, { name }).finish();
    expect(counts).toMatchObject({ created: 1 });
    expect(await intake.upload('tags', tags, { name }).finish()).toMatchObject({ counts });
  }
});

it('an AbortSignal ends an upload, and its requests with it', async () => {
  const tags = many(20_000, () => newTag());
  const { proxy, intake } = await through(({ body }) =>
    body.includes(tags[0]!.tag_id) ? 'pass' : { status: 503, retryAfter: 30 },
  );
  const controller = new AbortController();
  const run = async () => {
    for await (const step of intake.upload('tags', tags, { signal: controller.signal })) {
      expect(step.counts.received).toBe(5000);
      controller.abort();
    }
  };
  await expect(run()).rejects.toMatchObject({ name: 'AbortError' });
  await proxy.close();
});

it('a consumer that leaves early ends the upload and closes its source', async () => {
  const intake = new Intake({ url: server.url, key });
  let closed = false;
  function* endless(): Generator<RecordOf['tags']> {
    try {
      for (;;) yield newTag();
    } finally {
      closed = true;
    }
  }
  for await (const step of intake.upload('tags', endless())) {
    expect(step.counts.created).toBe(5000);
    break;
  }
  expect(closed).toBe(true);
});

it('a dry run stores nothing', async () => {
  const intake = new Intake({ url: server.url, key });
  const tag = newTag();
  expect((await intake.upload('tags', [tag], { dryRun: true }).finish()).counts.created).toBe(1);
  await expect(intake.data.get('tags', tag.tag_id)).rejects.toMatchObject({ code: 'record_not_found' });
});

it('the same records under the same name get the same answer', async () => {
  const intake = new Intake({ url: server.url, key });
  const tags = many(10, () => newTag());
  const name = randomUUID();
  for (let round = 0; round < 2; round++) {
    expect((await intake.upload('tags', tags, { name }).finish()).counts.created).toBe(10);
  }
  const other = intake.upload(
    'tags',
    many(10, () => newTag()),
    { name },
  );
  await expect(other.finish()).rejects.toMatchObject({ code: 'idempotency_key_reused' });
});

it('does not compile with a wrong field', () => {
  const intake = new Intake({ url: server.url, key });
  // @ts-expect-error there is no such field
  intake.upload('tags', [{ tag_id: randomUUID(), name: 'vegan', colour: 'green' }]);
  // @ts-expect-error a number is not a name
  intake.upload('tags', [{ tag_id: randomUUID(), name: 7 }]);
  // @ts-expect-error the name is required
  intake.upload('tags', [{ tag_id: randomUUID() }]);
  // @ts-expect-error there is no such type
  expect(() => intake.upload('labels', [])).toThrow('There is no record type "labels".');
  // @ts-expect-error shops cannot be filtered by shop
  intake.data.list('shops', { shop_id: randomUUID() });
});
