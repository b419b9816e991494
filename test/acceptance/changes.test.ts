// @module-tag postgres-15
// @module-tag pooler

import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { FeedCopy, readFeed } from '../support/change-feed.ts';
import { danglingTransaction, many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { replayRejections } from '../support/rejections.ts';
import { feedCursor, signerOf } from '../support/signed-cursor.ts';

let server: SharedServer;
let api: Api;
let slug: string;

beforeAll(async () => {
  server = await sharedServer();
});
beforeEach(async () => {
  slug = `acme-${randomUUID().slice(0, 8)}`;
  api = apiOf(server.url, await server.createKey(slug));
});

const interactionWith = (item_id: string) => ({
  interaction_type: 'SHARE',
  item_type: 'TAG',
  item_id,
  event_timestamp: 1_767_225_600,
});

describe('a change', () => {
  it('reports each record that was created or changed, and no other', async () => {
    const [first, second] = many(2, () => newTag());
    await api.upload('tags', [first, second]);
    const { changes, cursor } = await readFeed(api);
    expect(changes.map(({ type, id, deleted }) => ({ type, id, deleted }))).toEqual(
      [first, second].map((tag) => ({ type: 'tags', id: tag!.tag_id, deleted: false })),
    );
    await api.upload('tags', [first, { ...second, name: 'organic' }, { tag_id: randomUUID(), name: 7 }]);
    const later = await readFeed(api, { after: cursor });
    expect(later.changes).toMatchObject([{ id: second!.tag_id, record: { name: 'organic' } }]);
    expect((await readFeed(api, { after: later.cursor })).changes).toEqual([]);
  });

  it('has the record as reading it back returns it, however it was stored', async () => {
    const tag = newTag();
    await api.upload('tags', [tag]);
    const recorded = await api.post('/user-interactions', interactionWith(tag.tag_id));
    const keyed = await api.post('/user-interactions', interactionWith(tag.tag_id), {
      'idempotency-key': 'one',
    });
    await api.post('/user-interactions/batch', { records: many(2, () => interactionWith(tag.tag_id)) });
    const late = danglingTransaction();
    await api.upload('transactions', [late]);
    await api.upload('shops', [newShop({ shop_id: late.shop_id })]);
    await replayRejections(api);
    const { changes } = await readFeed(api);
    expect(changes.map(({ type }) => type).toSorted()).toEqual(
      [...many(4, () => 'interactions'), 'shops', 'tags', 'transactions'].toSorted(),
    );
    const ids = changes.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining([recorded.body.interaction_id, keyed.body.interaction_id]));
    for (const { type, id, record } of changes) {
      const path = type === 'interactions' ? '/user-interactions' : `/v1/data/${type}`;
      expect(record).toEqual((await api.get(`${path}/${id}`)).body);
    }
  });

  it('is marked if the record is deleted', async () => {
    const tag = newTag();
    await api.upload('tags', [tag]);
    await api.upload('tags', [{ ...tag, is_deleted: true }]);
    const { changes } = await readFeed(api);
    expect(changes).toMatchObject(many(2, () => ({ deleted: true, record: { is_deleted: true } })));
  });

  it('is marked if the record was removed from the database', async () => {
    const tag = newTag();
    await api.upload('tags', [tag]);
    await queryDatabase(server.databaseUrl, `delete from tags where tag_id = '${tag.tag_id}'`);
    expect((await readFeed(api)).changes).toMatchObject([{ deleted: true, record: null }]);
  });

  it('does not report a dry run or a batch that is sent again under its key', async () => {
    await api.post('/v1/data/tags?dry_run=true', { records: [newTag()] });
    const records = [newTag()];
    for (let time = 0; time < 2; time++)
      await api.post('/v1/data/tags', { records }, { 'idempotency-key': 'one' });
    expect((await readFeed(api)).changes).toHaveLength(1);
  });
});

describe('a cursor', () => {
  it('can be between any two changes, even within a batch', async () => {
    const tags = many(2_500, () => newTag());
    await api.upload('tags', tags);
    const { changes, pages } = await readFeed(api, { query: 'limit=700' });
    expect(pages).toBe(4);
    expect(changes.map(({ id }) => id)).toEqual(tags.map(({ tag_id }) => tag_id));
    for (const at of [0, 998, 999, 1_000, 2_498, 2_499]) {
      const rest = await readFeed(api, { after: changes[at]!.cursor, query: 'limit=1000' });
      expect(rest.changes.map(({ id }) => id)).toEqual(tags.slice(at + 1).map(({ tag_id }) => tag_id));
    }
  });

  it('of an export continues with everything that the export does not have', async () => {
    const tags = many(30, () => newTag());
    await api.upload('tags', tags);
    const copy = new FeedCopy();
    const exported = await api.get('/v1/data/tags?include_deleted=true', { accept: 'application/x-ndjson' });
    for (const line of exported.body.trim().split('\n')) {
      const record = JSON.parse(line);
      copy.apply({ type: 'tags', id: record.tag_id, record });
    }
    const after = exported.headers.get('changes-cursor')!;
    expect((await readFeed(api, { after })).changes).toEqual([]);
    await api.upload('tags', [{ ...tags[0], name: 'organic' }, newTag()]);
    const { changes } = await readFeed(api, { after });
    expect(changes).toHaveLength(2);
    for (const change of changes) copy.apply(change);
    const stored = await api.get('/v1/data/tags?limit=1000');
    expect(Object.fromEntries(copy.records)).toEqual(
      Object.fromEntries(
        stored.body.records.map((record: { tag_id: string }) => [
          `tags ${record.tag_id}`,
          JSON.stringify(record),
        ]),
      ),
    );
  });

  it('comes with the export of interactions', async () => {
    const exported = await api.get('/user-interactions', { accept: 'application/x-ndjson' });
    const after = exported.headers.get('changes-cursor')!;
    expect((await readFeed(api, { after })).changes).toEqual([]);
  });

  it('of another organisation is refused, and so is an invalid one', async () => {
    await api.upload('tags', [newTag()]);
    const { cursor } = await readFeed(api);
    const other = apiOf(server.url, await server.createKey(`other-${slug}`));
    await other.upload('tags', [newTag()]);
    for (const after of [cursor, `${cursor}0`, 'x', '1-0-00000000']) {
      const { status, body } = await other.get(`/v1/changes?after=${after}`);
      expect(status).toBe(400);
      expect(body.details).toMatchObject([{ field: 'after', code: 'invalid_format' }]);
    }
  });

  it('that is beyond the last change is too old, because the database was restored', async () => {
    await api.upload('tags', [newTag()]);
    const beyond = feedCursor(await signerOf(server.databaseUrl, server.slugOf(slug), 'feed'), {
      number: 900,
    });
    const { status, body } = await api.get(`/v1/changes?after=${beyond}`);
    expect([status, body.code]).toEqual([410, 'cursor_too_old']);
    expect(body.message).toMatch(/export/);
  });
});

describe('types', () => {
  it('are all by default', async () => {
    const shop = newShop();
    await api.upload('tags', [newTag()]);
    await api.upload('shops', [shop]);
    await api.upload('transactions', [newTransaction(shop.shop_id)]);
    const typesOf = async (query: string) => (await readFeed(api, { query })).changes.map(({ type }) => type);
    expect(await typesOf('')).toEqual(['tags', 'shops', 'transactions']);
    expect(await typesOf('types=shops')).toEqual(['shops']);
    expect(await typesOf('types=transactions,tags&limit=1')).toEqual(['tags', 'transactions']);
    expect(await typesOf('types=offers')).toEqual([]);
  });

  it('that do not exist are refused', async () => {
    for (const types of ['shoes', 'shops,', 'shops,shoes', 'shops%20']) {
      const { status, body } = await api.get(`/v1/changes?types=${types}`);
      expect(status).toBe(400);
      expect(body.details).toMatchObject([{ field: 'types', code: 'invalid_value' }]);
    }
  });

  it('are found past any number of others', async () => {
    for (let at = 0; at < 3; at++) await api.upload('shops', [newShop()]);
    const { changes, cursor } = await readFeed(api, { query: 'types=tags' });
    expect(changes).toEqual([]);
    await api.upload('tags', [newTag()]);
    expect((await readFeed(api, { after: cursor })).changes).toMatchObject([{ type: 'tags' }]);
  });
});

describe('a key', () => {
  it('that may not read data cannot read changes', async () => {
    const other = apiOf(server.url, await server.createKey(slug, 'interactions:read'));
    const { status, body } = await other.get('/v1/changes');
    expect([status, body.permission]).toEqual([403, 'data:read']);
  });

  it('that may not read interactions must leave them out', async () => {
    const other = apiOf(server.url, await server.createKey(slug, 'data:read'));
    for (const query of ['', '?types=interactions', '?types=tags,interactions']) {
      const { status, body } = await other.get(`/v1/changes${query}`);
      expect([status, body.permission]).toEqual([403, 'interactions:read']);
    }
    expect((await other.get('/v1/changes?types=tags')).status).toBe(200);
  });
});
