import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { badTag, many, newShop, newTransaction } from '../support/new-records.ts';
import { listRejections, replayRejections } from '../support/rejections.ts';
import { replayCursorAfter, signerOf } from '../support/signed-cursor.ts';

/** Tests a replay that resumes where an earlier one stopped. accident.test.ts tests this at full size. */

let server: SharedServer;
beforeAll(async () => {
  server = await sharedServer();
});

const cursorAfter = async (slug: string, type: string, rejectionId: string) =>
  replayCursorAfter(await signerOf(server.databaseUrl, server.slugOf(slug), 'replay'), type, rejectionId);

it('47a: skips the types and rejections that were already tried', async () => {
  const api = apiOf(server.url, await server.createKey('goes-on'));
  const [shop, bad] = [newShop(), newShop()];
  const transactions = many(3, () => newTransaction(shop.shop_id));
  await api.upload('shops', [{ ...bad, name: 7 }]);
  await api.upload('transactions', transactions);
  await api.upload('shops', [shop]);
  const first = (await listRejections(api, { type: 'transactions' }))[0]!;
  const { status, body } = await replayRejections(api, {
    cursor: await cursorAfter('goes-on', 'transactions', first.rejection_id),
  });
  expect({ status, ...body }).toMatchObject({
    status: 200,
    type: 'transactions',
    batches: [{ data: { counts: { received: 2, created: 2 } } }],
    remaining: 2,
    next_cursor: null,
  });
  expect((await listRejections(api)).map(({ id }) => id)).toEqual([bad.shop_id, first.id]);
});

it('47a: has nothing to do after the last one, and reports how many remain', async () => {
  const api = apiOf(server.url, await server.createKey('at-the-end'));
  await api.upload('tags', [badTag()]);
  const last = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  const { status, body } = await replayRejections(api, {
    type: 'tags',
    cursor: await cursorAfter('at-the-end', 'tags', last),
  });
  expect({ status, ...body }).toMatchObject({ status: 200, batches: [], remaining: 1, next_cursor: null });
});

it.each([
  'x',
  'tag.{id}',
  'tags',
  'tags.',
  'tags.x',
  'tags.{id}',
  'tags.{id}.AAAAAAAAAAAAAAAAAAAAAA',
  'tags.{id}.',
  '{id}',
  '.{id}',
  'tags {id}',
])('27d: cannot start at %j', async (cursor) => {
  const api = apiOf(server.url, await server.createKey(`wrong-${randomUUID().slice(0, 8)}`));
  expectError(await replayRejections(api, { cursor: cursor.replace('{id}', randomUUID()) }), 400, ['cursor']);
});
