import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { inOneWindow, nextWindow } from '../support/in-one-window.ts';
import { many } from '../support/new-records.ts';

let server: BuiltServer;
beforeAll(async () => {
  server = await startBuiltServer({
    REQUESTS_PER_SECOND_MAX: '5',
    INTERACTIONS_PER_SECOND_MAX: '10',
    RECORDS_PER_SECOND_MAX: '100',
    RECORDS_PER_REQUEST_MAX: '200',
  });
});
afterAll(() => server.stop());

let organisations = 0;
const newApi = async () => apiOf(server.url, await server.createKey(`limited-${++organisations}`));
const tags = (count: number) =>
  Array.from({ length: count }, () => ({ tag_id: randomUUID(), name: 'vegan' }));

function expectTooMany(answer: Answer, what: string): void {
  expectError(answer, 429);
  expect(answer.body.message).toContain(what);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.headers.get('ratelimit')).toMatch(new RegExp(`^"${what}";r=\\d+;t=[12]$`));
}

it('27b: a burst of twice the rate passes, more is 429 with Retry-After, and after that it passes again', async () => {
  const api = await newApi();
  const answers = await inOneWindow(() => Promise.all(many(14, () => api.get('/user-interactions'))));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
  const refused = answers.find(({ status }) => status !== 200) as Answer;
  expectTooMany(refused, 'requests');
  expect(refused.body.message).not.toMatch(/stored/);
  await sleep(Number(refused.headers.get('retry-after')) * 1_000 + 100);
  expect((await api.get('/user-interactions')).status).toBe(200);
});

it('27b: every answer has the limit and what is left of it', async () => {
  const api = await newApi();
  const [first, missing] = await inOneWindow(async () => [
    await api.get('/user-interactions'),
    await api.get('/nowhere'),
  ]);
  expect(first!.headers.get('ratelimit-policy')).toBe('"requests";q=10;w=2');
  expect(first!.headers.get('ratelimit')).toMatch(/^"requests";r=9;t=[12]$/);
  expect(missing!.status).toBe(404);
  expect(missing!.headers.get('ratelimit')).toMatch(/^"requests";r=8;t=[12]$/);
});

it('27b: records are counted too, and a refused upload stores nothing', async () => {
  const api = await newApi();
  let more = tags(60);
  const [taken, refused, dry] = await inOneWindow(async () => {
    more = tags(60);
    return [
      await api.upload('tags', tags(150)),
      await api.upload('tags', more),
      await api.post('/v1/data/tags?dry_run=true', { records: more }),
    ];
  });
  expect(taken!.status).toBe(200);
  expectTooMany(refused!, 'records');
  expect(refused!.body.message).toMatch(/Nothing was stored\.$/);
  expectTooMany(dry!, 'records');
  expect(dry!.body.message).not.toMatch(/stored/);
  await nextWindow();
  expect((await api.batch('tags', more)).counts).toMatchObject({ created: 60 });
});

it('27b: interactions have their own limit', async () => {
  const api = await newApi();
  const tag_id = randomUUID();
  await api.upload('tags', [{ tag_id, name: 'vegan' }]);
  const body = { interaction_type: 'SHARE', item_type: 'TAG', item_id: tag_id, event_timestamp: 1 };
  const answers = await inOneWindow(() => Promise.all(many(24, () => api.post('/user-interactions', body))));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
  expectTooMany(answers.find(({ status }) => status !== 201) as Answer, 'interactions');
  expect((await api.get('/user-interactions')).status).toBe(200);
});

it('27b: a batch of interactions counts as its interactions, not as a request nor as records', async () => {
  const api = await newApi();
  const tag_id = randomUUID();
  await api.upload('tags', [{ tag_id, name: 'vegan' }]);
  const one = { interaction_type: 'SHARE', item_type: 'TAG', item_id: tag_id, event_timestamp: 1 };
  const send = (count: number, query = '') =>
    api.post(`/user-interactions/batch${query}`, { records: many(count, () => one) });
  const batches = await inOneWindow(() => Promise.all(many(14, () => send(1))));
  expect(batches.map(({ status }) => status)).toEqual(many(14, () => 200));
  await nextWindow();
  const [taken, refused] = await inOneWindow(async () => [await send(15), await send(6)]);
  expect(taken!.status).toBe(200);
  expect(taken!.headers.get('ratelimit-policy')).toBe('"interactions";q=20;w=2');
  expect(taken!.headers.get('ratelimit')).toMatch(/^"interactions";r=5;t=[12]$/);
  expectTooMany(refused!, 'interactions');
  expect(refused!.body.message).toMatch(/Nothing was stored\.$/);
  await nextWindow();
  const [single, batch, dry] = await inOneWindow(async () => [
    await api.post('/user-interactions', one),
    await send(20),
    await send(1, '?dry_run=true'),
  ]);
  expect(single!.status).toBe(201);
  expectTooMany(batch!, 'interactions');
  expectTooMany(dry!, 'interactions');
  await nextWindow();
  const { body } = await send(21);
  expect(body.message).toContain('at most 20 are allowed at once');
  expect(body.details).toMatchObject([{ field: 'records', code: 'too_many_records' }]);
  await nextWindow();
  expect((await send(20)).status).toBe(200);
});

it('27b: the limit of one organisation does not affect another', async () => {
  const [noisy, quiet] = [await newApi(), await newApi()];
  await Promise.all(Array.from({ length: 30 }, () => noisy.get('/user-interactions')));
  expect((await quiet.get('/user-interactions')).status).toBe(200);
});

it('28: the request limit comes after the key and before the address', async () => {
  const api = await newApi();
  const refused = await inOneWindow(async () => {
    await Promise.all(many(12, () => api.get('/user-interactions')));
    return api.get('/nowhere');
  });
  expectTooMany(refused, 'requests');
  expect((await apiOf(server.url).get('/nowhere')).status).toBe(401);
});
