import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allPages } from '../support/all-pages.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many } from '../support/new-records.ts';
import { asRead, idsOf, list, listedIds, sortedById, store, tagOf } from './reading.ts';
import { makeRecord, storeReferenced, type TestRecord } from './record-types.ts';

/** Tests reading many records in pages. */

let server: BuiltServer;
let database: pg.Client;
let otherApi: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  database = new pg.Client({ connectionString: server.databaseUrl });
  await database.connect();
  otherApi = apiOf(server.url, await server.createKey('other'));
});
afterAll(async () => {
  await database.end();
  await server.stop();
});

let organisations = 0;
/** Creates a separate organisation for each test that counts records. */
async function newOrganisation(): Promise<{ to: Api; organisationId: string }> {
  const slug = `org-${++organisations}`;
  const to = apiOf(server.url, await server.createKey(slug));
  const { rows } = await database.query('select organisation_id from organisations where slug = $1', [slug]);
  return { to, organisationId: rows[0].organisation_id };
}

describe('pages', () => {
  let to: Api;
  let tags: TestRecord[];
  beforeAll(async () => {
    ({ to } = await newOrganisation());
    tags = sortedById(
      'tags',
      many(1_120, (at) => tagOf({ name: `tag ${at}`, is_deleted: at % 10 === 0 })),
    );
    await store(to, 'tags', tags);
    await store(
      otherApi,
      'tags',
      many(50, () => tagOf()),
    );
  });

  it.each([7, 100, 560, 1_000])('4b: of %i contain every record once, in order', async (limit) => {
    const pages = await allPages<TestRecord>(to, '/v1/data/tags', 'records', {
      limit: String(limit),
      include_deleted: 'true',
    });
    expect(pages.flat()).toEqual(tags.map((tag) => asRead('tags', tag)));
    expect(pages.map((page) => page.length)).toEqual(
      many(Math.ceil(1_120 / limit), (at) => Math.min(limit, 1_120 - at * limit)),
    );
  });

  it('4b: are full though some records in between are left out', async () => {
    const pages = await allPages<TestRecord>(to, '/v1/data/tags', 'records', { limit: '7' });
    expect(pages.flat().map(({ tag_id }) => tag_id)).toEqual(
      idsOf(
        'tags',
        tags.filter(({ is_deleted }) => !is_deleted),
      ),
    );
    for (const page of pages.slice(0, -1)) expect(page).toHaveLength(7);
  });

  it('4b: have 100 by default, and the cursor is the last id', async () => {
    const { body } = await list(to, 'tags', { include_deleted: 'true' });
    expect(listedIds('tags', { body } as Answer)).toEqual(idsOf('tags', tags.slice(0, 100)));
    expect(body.next_cursor).toBe(tags[99]!.tag_id);
  });

  it('4b: a cursor need not be the id of a record, and may be in capitals', async () => {
    const cursor = '80000000-0000-0000-0000-00000000000A';
    const { body } = await list(to, 'tags', { cursor, include_deleted: 'true', limit: '5' });
    const after = tags.filter(({ tag_id }) => String(tag_id) > cursor.toLowerCase());
    expect(listedIds('tags', { body } as Answer)).toEqual(idsOf('tags', after.slice(0, 5)));
  });

  it('4b: start with the lowest possible id, and end after the highest', async () => {
    const { to: empty } = await newOrganisation();
    const [low, high] = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'];
    await store(empty, 'tags', [tagOf({ tag_id: low }), tagOf({ tag_id: high })]);
    const pages = await allPages<TestRecord>(empty, '/v1/data/tags', 'records', { limit: '1' });
    expect(pages.flat().map(({ tag_id }) => tag_id)).toEqual([low, high]);
    expect((await list(empty, 'tags', { cursor: high })).body).toEqual({ records: [], next_cursor: null });
  });

  it('4b: are not affected by concurrent uploads', async () => {
    const { to: busy } = await newOrganisation();
    const first = many(60, () => tagOf());
    await store(busy, 'tags', first);
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await list(busy, 'tags', { limit: '7', ...(cursor && { cursor }) });
      seen.push(...(listedIds('tags', { body } as Answer) as string[]));
      await store(busy, 'tags', [...many(3, () => tagOf()), { ...first[0]!, name: `seen ${seen.length}` }]);
      cursor = body.next_cursor;
    }
    expect(new Set(seen).size).toBe(seen.length);
    for (const { tag_id } of first) expect(seen).toContain(tag_id);
  });

  it('4b: end early if the records are long, and continue', async () => {
    const { to: wordy } = await newOrganisation();
    const ids = await storeReferenced(wordy);
    const offers = many(450, () => makeRecord('offers', ids, { allowed_branches: 'x'.repeat(20_000) }));
    await store(wordy, 'offers', offers);
    const pages = await allPages<TestRecord>(wordy, '/v1/data/offers', 'records', { limit: '1000' });
    expect(pages.length).toBeGreaterThan(1);
    expect(idsOf('offers', pages.flat())).toEqual(idsOf('offers', offers).toSorted());
  });
});

describe('sparse matches among many records', () => {
  const total = 25_000;
  const rare = 6_000;
  let to: Api;
  let expected: string[];
  beforeAll(async () => {
    const made = await newOrganisation();
    const foreign = await newOrganisation();
    to = made.to;
    const insert = `
      insert into tags (organisation_id, tag_id, name, is_deleted)
      select $1, md5($2 || n)::uuid, 'tag ' || n, n % $3 <> 0 from generate_series(1, $4) n`;
    await database.query(insert, [made.organisationId, 'mine', rare, total]);
    await database.query(insert, [foreign.organisationId, 'theirs', 10, total]);
    // The service scans 10,000 records at a time. To test the boundary, the matches include the last record of one
    // scan and the first record of the next.
    const match = `
      update tags set is_deleted = false where organisation_id = $1 and tag_id = any(array(
        select tag_id from tags where organisation_id = $1 order by tag_id offset $2 limit 2))`;
    for (const offset of [9_999, 19_999]) await database.query(match, [made.organisationId, offset]);
    const { rows } = await database.query(
      'select tag_id from tags where organisation_id = $1 and not is_deleted order by tag_id',
      [made.organisationId],
    );
    expected = rows.map(({ tag_id }) => tag_id);
    expect(expected).toHaveLength(Math.floor(total / rare) + 4);
  });

  it.each(['1', '3', '7', '8', '9', '1000'])('4b: are all found, %s per page', async (limit) => {
    const pages = await allPages<TestRecord>(to, '/v1/data/tags', 'records', { limit });
    expect(pages.flat().map(({ tag_id }) => tag_id)).toEqual(expected);
  });

  it('4b: are counted completely, without records of other organisations', async () => {
    const pages = await allPages<TestRecord>(to, '/v1/data/tags', 'records', {
      limit: '1000',
      include_deleted: 'true',
    });
    expect(new Set(pages.flat().map(({ tag_id }) => tag_id)).size).toBe(total);
    expect(pages.map((page) => page.length)).toEqual(many(25, () => 1_000));
  });
});
