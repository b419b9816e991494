import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import {
  fieldsOf,
  idFieldOf,
  makeRecord,
  recordTypes,
  type StoredIds,
  storeReferenced,
  type TestRecord,
} from './record-types.ts';

let server: SharedServer;
let api: Api;
let neighbour: Api;
let stored: StoredIds;
let storedByNeighbour: StoredIds;
beforeAll(async () => {
  server = await sharedServer();
  neighbour = apiOf(server.url, await server.createKey('neighbour'));
  storedByNeighbour = await storeReferenced(neighbour);
  await startAfresh('acme');
});

/** Switches to a new organisation, because a fast machine would exceed a single organisation's request limit. */
async function startAfresh(organisation: string): Promise<void> {
  api = apiOf(server.url, await server.createKey(organisation));
  stored = await storeReferenced(api);
}

const references = Object.keys(recordTypes).flatMap((type) =>
  fieldsOf(type).flatMap(([field, { references: to }]) => (to === undefined ? [] : [{ type, field, to }])),
);

describe.each(references)('$type $field', ({ type, field, to }) => {
  beforeAll(() => startAfresh(`${type}-and-${to}`));

  const title = (guarantee: string) => `${type}.${field}: ${guarantee}`;
  const referring = (id: unknown) => makeRecord(type, stored, { [field]: id });
  const dangling = (index: number, record: TestRecord) => ({
    index,
    id: record[idFieldOf(type)],
    field,
    code: 'reference_not_found',
    message: expect.stringContaining(`/v1/data/${to}`),
  });

  it(title('an existing id is accepted'), async () => {
    const data = await api.batch(type, [referring(stored[to])]);
    expect(data).toMatchObject({ http: 200, error: null, errors: [], counts: { created: 1, failed: 0 } });
  });

  it(title('a missing id is reference_not_found, and the record is not stored'), async () => {
    const record = referring(randomUUID());
    for (const _ of ['first', 'again']) {
      const data = await api.batch(type, [record]);
      expect(data).toMatchObject({ http: 400, status: 'error', counts: { received: 1, failed: 1 } });
      expect(data.errors).toEqual([dangling(0, record)]);
      expect(data.error).toContain(field);
    }
  });

  it(title("another organisation's id gets the same answer as a missing one"), async () => {
    const record = referring(storedByNeighbour[to]);
    const theirs = await api.batch(type, [record]);
    const nowhere = await api.batch(type, [{ ...record, [field]: randomUUID() }]);
    expect(theirs.errors).toEqual([dangling(0, record)]);
    expect({ ...theirs, request_id: '', batch_id: '' }).toEqual({ ...nowhere, request_id: '', batch_id: '' });
  });

  it(title('the sent id is not repeated in the answer'), async () => {
    const id = randomUUID();
    const { body } = await api.upload(type, [referring(id), referring(storedByNeighbour[to])]);
    expect(JSON.stringify(body)).not.toContain(id);
    expect(JSON.stringify(body)).not.toContain(storedByNeighbour[to]);
  });

  it(title('a deleted record can still be referenced'), async () => {
    const target = makeRecord(to, {}, { is_deleted: true });
    await api.batch(to, [target]);
    const data = await api.batch(type, [referring(target[idFieldOf(to)])]);
    expect(data).toMatchObject({ http: 200, counts: { created: 1 } });
  });

  it(title('a record can be changed after its reference was deleted'), async () => {
    const target = makeRecord(to);
    await api.batch(to, [target]);
    const record = referring(target[idFieldOf(to)]);
    await api.batch(type, [record]);
    const deleted = await api.batch(to, [{ ...target, is_deleted: true }]);
    expect(deleted.counts).toMatchObject({ updated: 1 });
    const data = await api.batch(type, [{ ...record, created: '2024-06-01T00:00:00Z' }]);
    expect(data).toMatchObject({ http: 200, counts: { updated: 1 } });
  });

  it(title('an id that is stored as another type does not count'), async () => {
    const course = makeRecord('courses');
    await api.batch('courses', [course]);
    const ids = Object.keys(stored).filter((other) => other !== to);
    const records = [course.course_id, ...ids.map((other) => stored[other])].map(referring);
    const data = await api.batch(type, records);
    expect(data.http).toBe(400);
    expect(data.errors).toEqual(records.map((record, index) => dangling(index, record)));
  });

  it(title('records with a missing reference fail, the good ones between them are stored'), async () => {
    const missing = randomUUID();
    const ids = [missing, stored[to], missing, stored[to], randomUUID()];
    const records = ids.map(referring);
    const { status, body } = await api.upload(type, records);
    const { data } = body.batches[0];
    expect([status, body.batches[0].status, data.status]).toEqual([207, 207, 'partial']);
    expect(data.counts).toMatchObject({ received: 5, created: 2, failed: 3 });
    expect(data.errors).toEqual([0, 2, 4].map((index) => dangling(index, records[index]!)));
    const again = await api.batch(type, [records[1], records[3]]);
    expect(again).toMatchObject({ http: 200, counts: { unchanged: 2 } });
  });

  it(title('the same record succeeds once its reference is stored'), async () => {
    const target = makeRecord(to);
    const record = referring(target[idFieldOf(to)]);
    expect(await api.batch(type, [record])).toMatchObject({ http: 400, counts: { failed: 1 } });
    await api.batch(to, [target]);
    expect(await api.batch(type, [record])).toMatchObject({ http: 200, counts: { created: 1 } });
    expect(await api.batch(type, [record])).toMatchObject({ http: 200, counts: { unchanged: 1 } });
  });

  it(title('a record that failed cannot be referenced'), async () => {
    const target = makeRecord(to, {}, { created: 'yesterday' });
    expect(await api.batch(to, [target])).toMatchObject({ http: 400 });
    const record = referring(target[idFieldOf(to)]);
    expect((await api.batch(type, [record])).errors).toEqual([dangling(0, record)]);
  });

  it(title('a stored record is not changed by a version with a missing reference'), async () => {
    const record = referring(stored[to]);
    await api.batch(type, [record]);
    const worse = { ...record, [field]: randomUUID(), created: null };
    expect(await api.batch(type, [worse])).toMatchObject({ http: 400, errors: [dangling(0, record)] });
    expect(await api.batch(type, [record])).toMatchObject({ http: 200, counts: { unchanged: 1 } });
  });
});

describe.each(['shop-categories', 'shop-tags', 'shop-keywords', 'student-favourites'])('%s', (type) => {
  it(`${type}: each of two missing references is reported, as one failed record`, async () => {
    const fields = references.filter((reference) => reference.type === type).map(({ field }) => field);
    const record = makeRecord(type, stored, Object.fromEntries(fields.map((field) => [field, randomUUID()])));
    const data = await api.batch(type, [record]);
    expect(data.counts).toMatchObject({ received: 1, failed: 1 });
    expect(data.errors.map(({ field }: TestRecord) => field).toSorted()).toEqual(fields.toSorted());
    for (const entry of data.errors) {
      expect(entry).toMatchObject({ index: 0, id: record[idFieldOf(type)], code: 'reference_not_found' });
    }
  });
});

describe.each([
  ['transactions', 'student_id', 'customers'],
  ['transactions', 'offer_id', 'shops'],
  ['transactions', 'branch_id', 'shops'],
  ['customers', 'institute_id', 'customers'],
  ['customers', 'course_id', 'customers'],
])('%s.%s', (type, field, strangeType) => {
  it(`${type}.${field}: an id that does not exist is accepted`, async () => {
    const record = makeRecord(type, stored, { [field]: randomUUID() });
    expect(await api.batch(type, [record])).toMatchObject({ http: 200, counts: { created: 1 } });
    expect(await api.batch(type, [record])).toMatchObject({ http: 200, counts: { unchanged: 1 } });
  });

  it(`${type}.${field}: an id that is stored elsewhere is accepted as well`, async () => {
    const record = makeRecord(type, stored, { [field]: storedByNeighbour[strangeType] });
    expect(await api.batch(type, [record])).toMatchObject({ http: 200, counts: { created: 1 } });
  });
});

describe.each([
  ['student_id', 'customers', {}],
  ['item_id', 'tags', { item_type: 'TAG' }],
  ['item_id', 'offers', { item_type: 'OFFER' }],
  ['item_id', 'shops', { item_type: 'SHOP' }],
  ['item_id', 'keywords', { item_type: 'KEYWORD' }],
])('user-interactions.%s of %s', (field, to, kind) => {
  const title = (guarantee: string) => `user-interactions.${field} of ${to}: ${guarantee}`;
  const interact = (id: unknown) =>
    api.post('/user-interactions', {
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: stored.shops,
      event_timestamp: '2024-05-17T08:30:00Z',
      ...kind,
      [field]: id,
    });
  const store = async (by: Api, changes: TestRecord = {}) => {
    const record = makeRecord(to, by === api ? stored : storedByNeighbour, changes);
    expect(await by.batch(to, [record])).toMatchObject({ http: 200 });
    return record[idFieldOf(to)];
  };

  it(title('an existing id is accepted'), async () => {
    const id = await store(api);
    const { status, body } = await interact(id);
    expect([status, body[field]]).toEqual([201, id]);
  });

  it(title('a missing id is 400 and names the field'), async () => {
    const { status, body } = await interact(randomUUID());
    expect(status).toBe(400);
    expect(body).toEqual({
      error: 'Bad Request',
      code: 'invalid_request',
      message: expect.stringMatching(/\S/),
      details: [{ field, code: 'reference_not_found', message: expect.stringContaining(`/v1/data/${to}`) }],
    });
  });

  it(title("another organisation's id gets the same answer as a missing one"), async () => {
    const theirs = await interact(await store(neighbour));
    const nowhere = await interact(randomUUID());
    expect([theirs.status, theirs.body]).toEqual([nowhere.status, nowhere.body]);
    expect(theirs.status).toBe(400);
  });

  it(title('a deleted record can still be referenced'), async () => {
    expect((await interact(await store(api, { is_deleted: true }))).status).toBe(201);
  });

  it(title('an id that is stored as another type does not count'), async () => {
    const { status, body } = await interact(to === 'shops' ? stored.tags : stored.shops);
    expect([status, body.details?.[0]?.code]).toEqual([400, 'reference_not_found']);
  });
});
