import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { allPages } from '../support/all-pages.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { many } from '../support/new-records.ts';
import { asRead, idsOf, list, listedIds, pathOf, sortedById, store, tagOf } from './reading.ts';
import {
  fieldsOf,
  formsOf,
  idFieldOf,
  makeRecord,
  recordTypes,
  requiredOnly,
  type StoredIds,
  storeReferenced,
  type TestRecord,
} from './record-types.ts';

/** Tests reading uploaded records: one by id, or many in pages. export.test.ts reads all of them in one response. */

const types = Object.keys(recordTypes);

let server: SharedServer;
let database: pg.Client;
let api: Api;
let otherApi: Api;
let stored: StoredIds;
let otherStored: StoredIds;
beforeAll(async () => {
  server = await sharedServer();
  database = new pg.Client({ connectionString: server.databaseUrl });
  await database.connect();
  api = apiOf(server.url, await server.createKey('acme'));
  otherApi = apiOf(server.url, await server.createKey('other'));
  stored = await storeReferenced(api);
  otherStored = await storeReferenced(otherApi);
});
afterAll(async () => {
  await database.end();
});

let organisations = 0;
/** Creates a separate organisation for each test that counts records. */
async function newOrganisation(): Promise<{ to: Api; organisationId: string }> {
  const slug = `org-${++organisations}`;
  const to = apiOf(server.url, await server.createKey(slug));
  const { rows } = await database.query('select organisation_id from organisations where slug = $1', [
    server.slugOf(slug),
  ]);
  return { to, organisationId: rows[0].organisation_id };
}

describe('one record', () => {
  it.each(types)('4a: of %s has every field in order, and null without a value', async (type) => {
    const full = makeRecord(type, stored);
    const bare = requiredOnly(type, makeRecord(type, stored));
    await store(api, type, [full, bare]);
    for (const record of [full, bare]) {
      const { status, body, headers } = await api.get(pathOf(type, record));
      expect({ status, body }).toEqual({ status: 200, body: asRead(type, record) });
      expect(Object.keys(body)).toEqual(fieldsOf(type).map(([name]) => name));
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    }
  });

  const forms = types.flatMap((type) =>
    fieldsOf(type).map(([field, { kind, references }]) => ({ type, field, kind, references })),
  );
  it.each(forms.filter(({ references }) => references === undefined))(
    '4a: $type.$field is read in its stored form',
    async ({ type, field, kind }) => {
      for (const { name, sent, kept } of formsOf(kind)) {
        const record = makeRecord(type, stored, { [field]: sent });
        await store(api, type, [record]);
        // A number written differently in JSON is still the same number.
        const expected = JSON.parse(JSON.stringify(kept));
        const plain = kind === 'date-time' ? expected.replace(/\.?0+Z$/, 'Z') : expected;
        const { body } = await api.get(pathOf(type, record));
        expect([name, body[field]]).toEqual([name, plain]);
      }
    },
  );

  it.each([
    ['2026-03-14T09:26:53Z', '2026-03-14T09:26:53Z'],
    ['2026-03-14T09:26', '2026-03-14T09:26:00Z'],
    ['2026-03-14T09:26:53.000Z', '2026-03-14T09:26:53Z'],
    ['2026-03-14T09:26:53.100Z', '2026-03-14T09:26:53.1Z'],
    ['2026-03-14T09:26:53.123456Z', '2026-03-14T09:26:53.123456Z'],
    ['2026-03-14T09:26:53.123456789Z', '2026-03-14T09:26:53.123456Z'],
    ['2026-03-14T09:26:53.000001+05:30', '2026-03-14T03:56:53.000001Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
    ['0987-06-05T04:03:02.1Z', '0987-06-05T04:03:02.1Z'],
    ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999999Z'],
  ])('4a: the instant %s is read as %s', async (sent, read) => {
    const tag = tagOf({ created: sent });
    await store(api, 'tags', [tag]);
    expect((await api.get(pathOf('tags', tag))).body.created).toBe(read);
  });

  it.each(['0001-01-01', '0476-09-04', '2000-02-29', '9999-12-31'])(
    '4a: the day %s is read as it was sent',
    async (birthdate) => {
      const customer = makeRecord('customers', {}, { birthdate });
      await store(api, 'customers', [customer]);
      expect((await api.get(pathOf('customers', customer))).body.birthdate).toBe(birthdate);
    },
  );

  it.each([
    '0.1',
    '22.49',
    '100000000000000000000000',
    '1e21',
    '1.7976931348623157e308',
    '5e-324',
    '0.30000000000000004',
  ])('4a: the amount %s is read as that number', async (amount) => {
    const transaction = makeRecord('transactions', stored, {
      amount: Number(amount),
      discount_value: -Number(amount),
    });
    await store(api, 'transactions', [transaction]);
    const { body } = await api.get(pathOf('transactions', transaction));
    expect([body.amount, body.discount_value]).toEqual([Number(amount), -Number(amount)]);
  });

  it('4a: is read the same whatever the settings of the database', async () => {
    const databaseUrl = await createTestDatabase();
    const name = new URL(databaseUrl).pathname.slice(1);
    await database.query(`alter database ${name} set datestyle = 'German'`);
    await database.query(`alter database ${name} set timezone = 'Asia/Kathmandu'`);
    // With a pooler, the service refuses this setting at startup (see pooler.test.ts).
    if (inject('poolerPort') === null)
      await database.query(`alter database ${name} set extra_float_digits = -5`);
    const elsewhere = await startBuiltServer({ DATABASE_URL: databaseUrl });
    const to = apiOf(elsewhere.url, await elsewhere.createKey('acme'));
    const ids = await storeReferenced(to);
    const branch = makeRecord('branches', ids, {
      latitude: 53.800812345678906,
      created: '2026-03-04T05:06:07.123456Z',
    });
    await store(to, 'branches', [branch]);
    expect((await to.get(pathOf('branches', branch))).body).toEqual(asRead('branches', branch));
    const customer = makeRecord('customers', {}, { birthdate: '2004-02-01' });
    await store(to, 'customers', [customer]);
    expect((await to.get(pathOf('customers', customer))).body).toEqual(asRead('customers', customer));
    await elsewhere.stop();
  });

  it('4: is read by its id even if it is marked as deleted', async () => {
    const tag = tagOf({ is_deleted: true });
    await store(api, 'tags', [tag]);
    expect((await api.get(pathOf('tags', tag))).body).toEqual(asRead('tags', tag));
  });

  it('4a: is read as the last upload left it', async () => {
    const tag = tagOf({ name: 'before', created: '2026-03-14T09:26:53Z' });
    await store(api, 'tags', [tag]);
    const after = { ...tag, name: 'after', created: null };
    await store(api, 'tags', [after]);
    expect((await api.get(pathOf('tags', tag))).body).toEqual(asRead('tags', after));
  });

  it('4a: is found by its id in capitals too', async () => {
    const tag = tagOf();
    await store(api, 'tags', [tag]);
    expect(
      (await api.get(pathOf('tags', tag).toUpperCase().replace('/V1/DATA/TAGS', '/v1/data/tags'))).status,
    ).toBe(200);
  });

  it.each(['x', '123', `${randomUUID()}0`, '%20', '__proto__', "'%20or%20true--", 'x'.repeat(500), ''])(
    '4a: with the malformed id %j is not found',
    async (id) => {
      expectError(await api.get(`/v1/data/shops/${id}`), 404);
    },
  );

  it.each(types)(
    '19: of %s and another organisation gets exactly the same answer as a missing one',
    async (type) => {
      const record = makeRecord(type, otherStored);
      await store(otherApi, type, [record]);
      const [foreign, absent] = await Promise.all(
        [pathOf(type, record), `/v1/data/${type}/${randomUUID()}`].map((path) => api.get(path)),
      );
      expectError(foreign!, 404);
      expect(JSON.stringify(foreign!.body)).toBe(JSON.stringify(absent!.body));
      const told = ({ headers }: Answer) => [...headers.keys()].filter((name) => name !== 'ratelimit');
      expect(told(foreign!)).toEqual(told(absent!));
      expect(foreign!.headers.get('content-length')).toBe(absent!.headers.get('content-length'));
    },
  );

  it('4a: is not found under another type', async () => {
    expectError(await api.get(`/v1/data/tags/${stored.shops}`), 404);
  });

  it('27d: accepts no parameters', async () => {
    expectError(await api.get(`/v1/data/shops/${stored.shops}?fields=all`), 400, ['fields']);
  });
});

describe('the list', () => {
  it.each(types)('4b: of %s returns the records as they are read one by one, ordered by id', async (type) => {
    const { to } = await newOrganisation();
    const ids = await storeReferenced(to);
    const before = (await list(to, type, {})).body.records;
    const records = many(5, () => makeRecord(type, ids));
    await store(to, type, records);
    const expected = sortedById(type, [...before, ...records.map((record) => asRead(type, record))]);
    const { status, body } = await list(to, type, {});
    expect({ status, body }).toEqual({ status: 200, body: { records: expected, next_cursor: null } });
    expect(Object.keys(body)).toEqual(['records', 'next_cursor']);
    for (const record of body.records) {
      expect(Object.keys(record)).toEqual(fieldsOf(type).map(([name]) => name));
      expect((await to.get(pathOf(type, record))).body).toEqual(record);
    }
  });

  it('4b: of an organisation without records is empty', async () => {
    const { to } = await newOrganisation();
    for (const type of types)
      expect((await list(to, type, {})).body).toEqual({ records: [], next_cursor: null });
  });

  it('4: leaves out records marked as deleted by default', async () => {
    const { to } = await newOrganisation();
    const tags = sortedById(
      'tags',
      many(10, (at) => tagOf({ is_deleted: at % 3 === 0 })),
    );
    await store(to, 'tags', tags);
    const kept = tags.filter(({ is_deleted }) => !is_deleted);
    expect(listedIds('tags', await list(to, 'tags', {}))).toEqual(idsOf('tags', kept));
    expect(listedIds('tags', await list(to, 'tags', { include_deleted: 'false' }))).toEqual(
      idsOf('tags', kept),
    );
    const all = await list(to, 'tags', { include_deleted: 'true' });
    expect(all.body).toEqual({ records: tags.map((tag) => asRead('tags', tag)), next_cursor: null });
  });
});

describe('references', () => {
  const referring = types.flatMap((type) =>
    fieldsOf(type).flatMap(([field, { references }]) =>
      references === undefined ? [] : [{ type, field, references }],
    ),
  );

  it.each(referring)('4b: $type are found by their $field', async ({ type, field, references }) => {
    const target = makeRecord(references);
    const id = target[idFieldOf(references)] as string;
    await store(api, references, [target]);
    const mine = many(3, () => makeRecord(type, stored, { [field]: id }));
    await store(api, type, [...mine, ...many(3, () => makeRecord(type, stored))]);
    const expected = idsOf(type, mine).toSorted();
    expect(listedIds(type, await list(api, type, { [field]: id }))).toEqual(expected);
    expect(listedIds(type, await list(api, type, { [field]: id.toUpperCase() }))).toEqual(expected);
    expect(listedIds(type, await list(api, type, { [field]: randomUUID() }))).toEqual([]);
    expect(
      (await allPages(api, `/v1/data/${type}`, 'records', { [field]: id, limit: '2' })).flat(),
    ).toHaveLength(3);
  });

  it('4b: several combine, with each other and with other parameters', async () => {
    const tags = many(2, () => tagOf());
    await store(api, 'tags', tags);
    const shops = many(2, () => makeRecord('shops'));
    await store(api, 'shops', shops);
    const links = shops.flatMap(({ shop_id }) =>
      tags.flatMap(({ tag_id }) =>
        [false, true].map((is_deleted) => makeRecord('shop-tags', {}, { shop_id, tag_id, is_deleted })),
      ),
    );
    await store(api, 'shop-tags', links);
    const [{ shop_id, tag_id }] = links as [TestRecord & { shop_id: string; tag_id: string }];
    const ofBoth = links.filter((link) => link.shop_id === shop_id && link.tag_id === tag_id);
    const found = await list(api, 'shop-tags', { shop_id, tag_id, include_deleted: 'true' });
    expect(listedIds('shop-tags', found)).toEqual(idsOf('shop-tags', ofBoth).toSorted());
    expect(listedIds('shop-tags', await list(api, 'shop-tags', { shop_id, tag_id }))).toHaveLength(1);
    const { body } = await list(api, 'shop-tags', {
      shop_id,
      stored_since: new Date(Date.now() + 3_600_000).toISOString(),
    });
    expect(body).toEqual({ records: [], next_cursor: null });
  });
});

describe('stored_since', () => {
  it('4b: finds records written at that instant or later, to the microsecond', async () => {
    const { to, organisationId } = await newOrganisation();
    const tags = sortedById(
      'tags',
      many(3, () => tagOf()),
    );
    await store(to, 'tags', tags);
    const instants = ['2026-03-14T09:26:53.123456Z', '2026-03-14T09:26:53.123457Z', '2026-03-14T09:26:54Z'];
    for (const [at, { tag_id }] of tags.entries())
      await database.query('update tags set stored_at = $3 where organisation_id = $1 and tag_id = $2', [
        organisationId,
        tag_id,
        instants[at],
      ]);
    const since = async (stored_since: string) => listedIds('tags', await list(to, 'tags', { stored_since }));
    for (const [at, instant] of instants.entries())
      expect(await since(instant)).toEqual(idsOf('tags', tags.slice(at)));
    expect(await since('2026-03-14T14:56:53.123457+05:30')).toEqual(idsOf('tags', tags.slice(1)));
    expect(await since('2026-03-14T09:26:54.000001Z')).toEqual([]);
    expect(await since('0001-01-01T00:00:00Z')).toHaveLength(3);
    expect(await since('9999-12-31T23:59:59Z')).toEqual([]);
  });

  it('4b: a changed record is found again, one that was sent again unchanged is not', async () => {
    const { to } = await newOrganisation();
    const [changed, unchanged, stale] = many(3, () => tagOf({ updated: '2026-03-14T09:26:53Z' }));
    await store(to, 'tags', [changed!, unchanged!, stale!]);
    const { body } = await list(to, 'tags', {});
    expect(body.records).toHaveLength(3);
    // The pause is longer than a clock tick, so that the second upload is later.
    await new Promise((resolve) => setTimeout(resolve, 20));
    const between = new Date().toISOString();
    await store(to, 'tags', [
      { ...changed, name: 'changed' },
      unchanged!,
      { ...stale, name: 'older', updated: '2026-03-14T09:26:52Z' },
      tagOf({ name: 'added' }),
    ]);
    const found = await list(to, 'tags', { stored_since: between });
    expect(found.body.records.map(({ name }: { name: string }) => name).toSorted()).toEqual([
      'added',
      'changed',
    ]);
  });
});

describe('parameters', () => {
  const wrong: [string, string][] = [
    ...['0', '1001', '-1', '1.5', '+5', '5x', ' 5', '1e2', '99999999999999999999', ''].map(
      (value): [string, string] => ['limit', value],
    ),
    ...['x', '', 'null', `${randomUUID()}0`].map((value): [string, string] => ['cursor', value]),
    ...['', 'yesterday', '2026-01-01', '1700000000', '2026-02-30T00:00:00Z', '-infinity', 'now'].map(
      (value): [string, string] => ['stored_since', value],
    ),
    ...['', '1', '0', 'yes', 'TRUE', 'null'].map((value): [string, string] => ['include_deleted', value]),
    ...['', 'x', 'null'].map((value): [string, string] => ['shop_id', value]),
    ['student_id', randomUUID()],
    ['transaction_id', randomUUID()],
    ['amount', '5'],
    ['stored_at', '2026-01-01T00:00:00Z'],
    ['organisation_id', randomUUID()],
    ['page', '2'],
    ['Limit', '5'],
    ['__proto__', '1'],
    ['constructor', '1'],
  ];
  it.each(wrong)('27d: %s=%j is refused, by name', async (name, value) => {
    expectError(await list(api, 'transactions', { [name]: value }), 400, [name]);
    const lines = { accept: 'application/x-ndjson' };
    expectError(
      await api.get(`/v1/data/transactions?${new URLSearchParams({ [name]: value })}`, lines),
      400,
      [name],
    );
  });

  it('27d: one given twice is refused', async () => {
    expectError(await api.get('/v1/data/tags?limit=5&limit=5'), 400, ['limit']);
  });

  it('4b: limits from 1 to 1000 are accepted', async () => {
    for (const limit of ['1', '1000']) expect((await list(api, 'tags', { limit })).status).toBe(200);
  });
});
