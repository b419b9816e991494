// @module-tag pooler

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';

/**
 * Tests retrying an interaction (row 34 of docs/api-behaviour.md). Each test uses its own user, and counts the stored
 * interactions in the list.
 */

let server: BuiltServer;
let api: Api;
let otherApi: Api;
const tag = { tag_id: randomUUID(), name: 'vegan' };
beforeAll(async () => {
  server = await startBuiltServer();
  api = apiOf(server.url, await server.createKey('acme'));
  otherApi = apiOf(server.url, await server.createKey('other'));
  for (const to of [api, otherApi]) await to.batch('tags', [tag]);
});
afterAll(() => server.stop());

const newInteraction = (fields: object = {}) => ({
  interaction_type: 'SHARE',
  user_id: randomUUID(),
  item_type: 'TAG',
  item_id: tag.tag_id,
  event_timestamp: 1_700_000_000,
  ...fields,
});
type Interaction = ReturnType<typeof newInteraction>;

function record(body: object, key: string, to = api): Promise<Answer> {
  return to.post('/user-interactions', body, { 'idempotency-key': key });
}

function recordText(body: string, key: string): Promise<Answer> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': key };
  return api.send('/user-interactions', { method: 'POST', headers, body });
}

async function countOf({ user_id }: Interaction, to = api): Promise<number> {
  const { body } = await to.get(`/user-interactions?user_id=${user_id}`);
  return body.interactions.length;
}

it('34: without a key, the same body twice is two interactions', async () => {
  const interaction = newInteraction();
  for (const _ of [1, 2]) expect((await api.post('/user-interactions', interaction)).status).toBe(201);
  expect(await countOf(interaction)).toBe(2);
});

it('34: the same body with the same key gets the first answer again, and is stored once', async () => {
  const [interaction, key] = [
    newInteraction({ platform: 'WEB', event_timestamp: '2026-03-14T10:00:00+01:00' }),
    randomUUID(),
  ];
  const first = await record(interaction, key);
  expect(first.status).toBe(201);
  const again = await record(interaction, key);
  expect(again).toMatchObject({ status: 201, body: first.body });
  expect(first.headers.get('idempotency-replayed')).toBeNull();
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect(await countOf(interaction)).toBe(1);
});

it('34: the order of members and spaces make no difference', async () => {
  const [interaction, key] = [newInteraction({ note: { b: [1, { d: 1, c: 2 }], a: 1 } }), randomUUID()];
  const first = await record(interaction, key);
  expect(first.status).toBe(201);
  const reversed = Object.fromEntries(
    Object.entries({ ...interaction, note: { a: 1, b: [1, { c: 2, d: 1 }] } }).reverse(),
  );
  expect(await recordText(JSON.stringify(reversed, null, 4), key)).toMatchObject({
    status: 201,
    body: first.body,
  });
  const escaped = JSON.stringify(interaction).replace('SHARE', '\\u0053HARE').replace('1700000000', '1.7e9');
  expect(await recordText(escaped, key)).toMatchObject({ status: 201, body: first.body });
  expect(await countOf(interaction)).toBe(1);
});

it.each([
  ['a value', { interaction_type: 'PAGE_VIEW' }],
  ['a field more', { city: 'Leeds' }],
])('34: a body that differs in %s is 422, and is not stored', async (_what, change) => {
  const [interaction, key] = [newInteraction(), randomUUID()];
  await record(interaction, key);
  expectError(await record({ ...interaction, ...change }, key), 422);
  expect(await countOf(interaction)).toBe(1);
  expect((await record(interaction, key)).status).toBe(201);
});

it('34: a body that differs in an unknown field is the same', async () => {
  const [interaction, key] = [newInteraction(), randomUUID()];
  const first = await record(interaction, key);
  const again = await record({ ...interaction, note: [2, 1] }, key);
  expect([first.status, again.status]).toEqual([201, 201]);
  expect(again.body).toMatchObject(first.body);
  expect(await countOf(interaction)).toBe(1);
});

it('34: many concurrent requests with one key and one body are one interaction', async () => {
  const [interaction, key] = [newInteraction(), randomUUID()];
  const answers = await Promise.all(Array.from({ length: 12 }, () => record(interaction, key)));
  expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(201));
  expect(new Set(answers.map(({ body }) => body.interaction_id)).size).toBe(1);
  expect(await countOf(interaction)).toBe(1);
});

it('34: of two concurrent bodies with one key, one is stored and the other is 422', async () => {
  const [interaction, key] = [newInteraction(), randomUUID()];
  const bodies = [interaction, { ...interaction, city: 'Leeds' }];
  const answers = await Promise.all(bodies.map((body) => record(body, key)));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 422]);
  expect(await countOf(interaction)).toBe(1);
});

it('34: a failure is not remembered: the same key may be used again, for the same body or another', async () => {
  const [later, key] = [{ tag_id: randomUUID(), name: 'later' }, randomUUID()];
  const interaction = newInteraction({ item_id: later.tag_id });
  expectError(await record(interaction, key), 400, ['item_id']);
  expectError(await record({ ...interaction, platform: 'web' }, key), 400, ['platform']);
  await api.batch('tags', [later]);
  expect((await record(interaction, key)).status).toBe(201);
  expect(await countOf(interaction)).toBe(1);
});

it('34: each organisation has its own keys', async () => {
  const [interaction, key] = [newInteraction(), randomUUID()];
  const [mine, theirs] = [
    await record(interaction, key),
    await record({ ...interaction, city: 'Leeds' }, key, otherApi),
  ];
  expect([mine.status, theirs.status]).toEqual([201, 201]);
  expect(mine.body.interaction_id).not.toBe(theirs.body.interaction_id);
  expect([await countOf(interaction), await countOf(interaction, otherApi)]).toEqual([1, 1]);
});

it('34: keys that differ only in case are two keys', async () => {
  const [interaction, key] = [newInteraction(), `key-${randomUUID()}`];
  for (const one of [key, key.toUpperCase()]) expect((await record(interaction, one)).status).toBe(201);
  expect(await countOf(interaction)).toBe(2);
});

it.each([1, 255])('34: a key of %i characters is accepted', async (length) => {
  const [interaction, key] = [newInteraction(), 'k'.repeat(length)];
  const answers = [await record(interaction, key), await record(interaction, key)];
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  expect(await countOf(interaction)).toBe(1);
});

it.each([0, 256])('34: a key of %i characters is refused', async (length) => {
  const interaction = newInteraction();
  expectError(await record(interaction, 'k'.repeat(length)), 400, ['Idempotency-Key']);
  expect(await countOf(interaction)).toBe(0);
});

it('34: a body nested too deeply is refused', async () => {
  const interaction = newInteraction();
  const nested = (levels: number) =>
    JSON.stringify(interaction).replace('}', `,"note":${'['.repeat(levels)}${']'.repeat(levels)}}`);
  expect((await recordText(nested(10), randomUUID())).status).toBe(201);
  expectError(await recordText(nested(1_000), randomUUID()), 400, ['body']);
  expectError(await recordText(nested(100_000), randomUUID()), 413);
  expect(await countOf(interaction)).toBe(1);
});
