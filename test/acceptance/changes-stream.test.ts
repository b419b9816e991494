import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer, startBuiltServer } from '../support/built-server.ts';
import { followFeed } from '../support/change-feed.ts';
import { many, newTag } from '../support/new-records.ts';

let server: SharedServer;
let api: Api;
let key: string;
let ending: AbortController;

beforeAll(async () => {
  server = await sharedServer();
});
beforeEach(async () => {
  key = await server.createKey(`acme-${randomUUID().slice(0, 8)}`);
  api = apiOf(server.url, key);
  ending = new AbortController();
  return () => ending.abort();
});

const follow = (after?: string) =>
  followFeed(server.url, key, { ...(after !== undefined && { after }), signal: ending.signal });

/** Returns the next change, skipping heartbeats. */
async function nextChange(lines: ReturnType<typeof followFeed>) {
  for (;;) {
    const { value, done } = await lines.next();
    if (done || value.type !== undefined) return value;
  }
}

it('a stream starts with existing changes, and continues with new ones', async () => {
  const tags = many(3, () => newTag());
  await api.upload('tags', tags.slice(0, 2));
  const lines = follow();
  const next = () => nextChange(lines);
  expect([await next(), await next()]).toMatchObject(tags.slice(0, 2).map(({ tag_id: id }) => ({ id })));
  await api.upload('tags', tags.slice(2));
  expect(await next()).toMatchObject({ type: 'tags', id: tags[2]!.tag_id, deleted: false, record: tags[2] });
});

it('two concurrent streams of two organisations each get only their own changes', async () => {
  const otherKey = await server.createKey(`other-${randomUUID().slice(0, 8)}`);
  const readers = [
    { to: api, lines: follow() },
    {
      to: apiOf(server.url, otherKey),
      lines: followFeed(server.url, otherKey, { signal: ending.signal }),
    },
  ];
  // The first round is uploaded before the streams open, and the second round while both are open.
  for (let round = 0; round < 2; round++) {
    const sent = readers.map(() => newTag());
    for (const [at, { to }] of readers.entries()) await to.upload('tags', [sent[at]]);
    for (const [at, { lines }] of readers.entries())
      expect(await nextChange(lines)).toMatchObject({ id: sent[at]!.tag_id, record: sent[at] });
  }
});

it('a stream without changes sends its cursor at once, and an interrupted reader continues from there', async () => {
  const lines = follow();
  const { value: first } = await lines.next();
  expect(Object.keys(first!)).toEqual(['cursor']);
  ending.abort();
  await lines.next().catch(() => {});
  const tag = newTag();
  await api.upload('tags', [tag]);
  ending = new AbortController();
  expect((await follow(first!.cursor).next()).value).toMatchObject({ id: tag.tag_id });
});

it('a stream is not compressed, which would delay its lines', async () => {
  const headers = {
    authorization: `Bearer ${key}`,
    accept: 'application/x-ndjson',
    'accept-encoding': 'gzip',
  };
  const response = await fetch(`${server.url}/v1/changes`, { headers, signal: ending.signal });
  expect(response.headers.get('content-encoding')).toBeNull();
  expect(response.headers.get('content-type')).toBe('application/x-ndjson');
  await response.body?.cancel();
});

it('a stream ends when its key is revoked', async () => {
  const lines = follow();
  await lines.next();
  await server.run('keys', 'revoke', key.split('_')[1]!);
  const rest = [];
  for await (const line of lines) rest.push(line);
  expect(rest.filter(({ type }) => type !== undefined)).toEqual([]);
});

it('an organisation may read a limited number of streams at once, and one that ends makes room', async () => {
  const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' };
  const open = (signal: AbortSignal) => fetch(`${server.url}/v1/changes`, { headers, signal });
  const first = new AbortController();
  const streams = await Promise.all([open(first.signal), ...many(19, () => open(ending.signal))]);
  expect(streams.map(({ status }) => status)).toEqual(many(20, () => 200));
  const refused = await api.get('/v1/changes', headers);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
  expect(refused.body.message).toContain('streams of changes');
  // Paged reads still work, and other organisations can still open streams.
  expect((await api.get('/v1/changes')).status).toBe(200);
  first.abort();
  await expect.poll(async () => (await open(ending.signal)).status).toBe(200);
});

it('a limit cannot be combined with a stream', async () => {
  const { status } = await api.get('/v1/changes?limit=10', { accept: 'application/x-ndjson' });
  expect(status).toBe(400);
});

it('a process that stops ends its streams, and does not wait for them', async () => {
  const stopping = await startBuiltServer({ DATABASE_URL: server.databaseUrl });
  const lines = followFeed(stopping.url, key);
  await lines.next();
  await stopping.stop();
  expect(stopping.process.exitCode).toBe(0);
  expect((await lines.next()).done).toBe(true);
});
