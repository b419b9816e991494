import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { expectError } from '../support/expect-error.ts';
import {
  api,
  fieldsOf,
  type Interaction,
  idsOf,
  list,
  newestFirst,
  otherApi,
  recommendation,
  record,
  recorded,
  server,
  shop,
  student,
  tag,
} from './recorded-interactions.ts';

/** Tests reading a single interaction by id, or many by filters (row 35 of docs/api-behaviour.md). */

describe('one interaction', () => {
  it('35: is read back by its id exactly as it was answered', async () => {
    const { status, body } = await api.get(`/user-interactions/${recorded[3]!.interaction_id}`);
    expect({ status, body }).toEqual({ status: 200, body: recorded[3] });
  });

  it('35: is found by its id in capitals too', async () => {
    const { status } = await api.get(`/user-interactions/${recorded[3]!.interaction_id.toUpperCase()}`);
    expect(status).toBe(200);
  });

  it('19: of another organisation gets the same answer as a missing one', async () => {
    const [foreign, absent] = [recorded[3]!.interaction_id, randomUUID()].map(
      (id) => `/user-interactions/${id}`,
    );
    const answer = await otherApi.get(foreign!);
    expectError(answer, 404);
    expect(answer.body).toEqual((await otherApi.get(absent!)).body);
  });

  it.each(['x', '123', `${randomUUID()}0`, '%20', '__proto__', "'%20or%20true--"])(
    '35: with the malformed id %j is not found',
    async (id) => {
      expectError(await api.get(`/user-interactions/${id}`), 404);
    },
  );

  it('35: with an id of 500 characters is not found', async () => {
    expectError(await api.get(`/user-interactions/${'x'.repeat(500)}`), 404);
  });

  it('27d: accepts no parameters', async () => {
    expectError(await api.get(`/user-interactions/${recorded[0]!.interaction_id}?fields=all`), 400, [
      'fields',
    ]);
  });
});

describe('the list', () => {
  it('35: returns all of the organisation, newest received first, each as it was answered', async () => {
    const { status, body } = await list();
    expect(status).toBe(200);
    expect(body).toEqual({ interactions: recorded.toReversed(), next_cursor: null });
  });

  it('19: returns nothing of another organisation', async () => {
    expect(idsOf(await list({}, otherApi))).toHaveLength(1);
    expect(idsOf(await list({ user_id: 'visitor & co+1' }, otherApi))).toEqual([]);
  });

  it('35: of an organisation without interactions is empty', async () => {
    const nobody = apiOf(server.url, await server.createKey('nobody'));
    expect((await list({}, nobody)).body).toEqual({ interactions: [], next_cursor: null });
  });

  it.each([
    ['student_id', student],
    ['user_id', 'visitor & co+1'],
    ['item_id', shop],
    ['recommendation_id', recommendation],
    ['interaction_type', 'SHARE'],
    ['item_type', 'TAG'],
    ['item_type', 'SHOP'],
    ['source', 'SERVICE'],
  ] as [string, string][])('35: %s = %s finds its matches, and nothing else', async (field, value) => {
    const expected = newestFirst((one) => one[field] === value);
    expect(expected.length).toBeGreaterThan(0);
    expect(expected.length).toBeLessThan(recorded.length);
    expect(idsOf(await list({ [field]: value }))).toEqual(expected);
  });

  it.each(['student_id', 'item_id', 'recommendation_id'])(
    '35: %s without matches finds nothing',
    async (field) => {
      expect(idsOf(await list({ [field]: randomUUID() }))).toEqual([]);
    },
  );

  it('35: ids may be given in capitals', async () => {
    expect(idsOf(await list({ item_id: tag!.toUpperCase() }))).toEqual(
      newestFirst((one) => one.item_id === tag),
    );
  });

  it.each([
    { item_id: shop!, interaction_type: 'SHARE', item_type: 'SHOP', user_id: 'visitor & co+1' },
    { interaction_type: 'SHARE', item_type: 'SHOP' },
    { interaction_type: 'SHARE', source: 'SERVICE' },
    { item_type: 'SHOP', source: 'SERVICE' },
    { interaction_type: 'SHARE', item_type: 'SHOP', source: 'SERVICE' },
    { interaction_type: 'DISCOUNT_CODE', source: 'SERVICE' },
  ])('35: filters combine: %j', async (query) => {
    const expected = newestFirst((one) =>
      Object.entries(query).every(([field, value]) => one[field] === value),
    );
    expect(expected.length).toBeGreaterThan(0);
    expect(idsOf(await list(query as Record<string, string>))).toEqual(expected);
  });
});

describe('times of receipt', () => {
  it('35: from is inclusive, and to is exclusive', async () => {
    const [from, to] = [recorded[5]!.created, recorded[15]!.created];
    expect(idsOf(await list({ from }))).toEqual(newestFirst((one) => one.created >= from));
    expect(idsOf(await list({ to }))).toEqual(newestFirst((one) => one.created < to));
    expect(idsOf(await list({ from, to }))).toEqual(
      newestFirst((one) => one.created >= from && one.created < to),
    );
    expect(idsOf(await list({ from: to, to: from }))).toEqual([]);
  });

  it('35: an instant may have an offset, or microseconds', async () => {
    const from = recorded[5]!.created;
    const abroad = new Date(Date.parse(from) + 3_600_000).toISOString().replace('Z', '+01:00');
    expect(idsOf(await list({ from: abroad }))).toEqual(newestFirst((one) => one.created >= from));
    const justAfter = from.replace('Z', '001Z');
    expect(idsOf(await list({ from: justAfter }))).toEqual(newestFirst((one) => one.created > from));
    expect(idsOf(await list({ to: justAfter }))).toEqual(newestFirst((one) => one.created <= from));
  });

  it('35: they combine with a filter, and reach as far back and ahead as there are years', async () => {
    const from = recorded[5]!.created;
    const expected = newestFirst((one) => one.item_type === 'TAG' && one.created >= from);
    expect(idsOf(await list({ item_type: 'TAG', from }))).toEqual(expected);
    expect(idsOf(await list({ from: '0001-01-01T00:00:00Z', to: '9999-12-31T23:59:59Z' }))).toEqual(
      newestFirst(),
    );
    expect(idsOf(await list({ to: '1969-12-31T00:00:00Z' }))).toEqual([]);
  });
});

describe('pages', () => {
  async function allPages(query: Record<string, string>, between = async () => {}): Promise<string[][]> {
    const pages: string[][] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const answer = await list({ ...query, ...(cursor && { cursor }) });
      expect(answer.status).toBe(200);
      pages.push(idsOf(answer));
      cursor = answer.body.next_cursor;
      await between();
    }
    return pages;
  }

  it.each([1, 5, 8, 24, 1_000])('35: of %i reach the end without gaps or repeats', async (limit) => {
    const to = new Date().toISOString();
    const pages = await allPages({ limit: String(limit), to });
    expect(pages.flat()).toEqual(newestFirst());
    expect(pages.length).toBe(Math.ceil(24 / limit));
    for (const page of pages.slice(0, -1)) expect(page).toHaveLength(limit);
  });

  it('35: respect the filter and the times', async () => {
    const [from, to] = [recorded[3]!.created, recorded[20]!.created];
    const pages = await allPages({ limit: '2', interaction_type: 'SHARE', from, to });
    const matches = (one: Interaction) =>
      one.interaction_type === 'SHARE' && one.created >= from && one.created < to;
    expect(pages.flat()).toEqual(newestFirst(matches));
  });

  it('35: are not affected by new interactions', async () => {
    const before = newestFirst();
    const pages = await allPages({ limit: '5' }, async () => {
      recorded.push(await record(fieldsOf(recorded.length)));
    });
    expect(pages.flat()).toEqual(before);
    expect(idsOf(await list())).toEqual(newestFirst());
  });

  it('35: have 100 by default', async () => {
    const user_id = randomUUID();
    const fields = { ...fieldsOf(1), user_id };
    await Promise.all(Array.from({ length: 101 }, () => api.post('/user-interactions', fields)));
    const { body } = await list({ user_id });
    expect(body.interactions).toHaveLength(100);
    const { body: rest } = await list({ user_id, cursor: body.next_cursor });
    expect(rest.interactions).toHaveLength(1);
    expect(rest.next_cursor).toBeNull();
  });
});

describe('parameters', () => {
  const wrong: [string, string][] = [
    ...['0', '1001', '-1', '1.5', '+5', '5x', ' 5', '1e2', '99999999999999999999', ''].map(
      (value): [string, string] => ['limit', value],
    ),
    ...['x', '', 'null', `${randomUUID()}0`].map((value): [string, string] => ['cursor', value]),
    ...['from', 'to', 'event_from', 'event_to'].flatMap((name): [string, string][] =>
      ['', 'yesterday', '2026-01-01', '1700000000', '2026-02-30T00:00:00Z'].map((value) => [name, value]),
    ),
    ...['student_id', 'item_id', 'recommendation_id'].flatMap((name): [string, string][] => [
      [name, 'x'],
      [name, ''],
    ]),
    ['user_id', ''],
    ['user_id', 'x'.repeat(256)],
    ['user_id', '\u0000'],
    ['interaction_type', 'share'],
    ['interaction_type', ''],
    ['item_type', 'CATEGORY'],
    ['source', 'null'],
    ['source', 'service'],
    ['platform', 'WEB'],
    ['page', '2'],
    ['Limit', '5'],
    ['__proto__', '1'],
    ['constructor', '1'],
  ];
  it.each(wrong)('27d: %s=%j is refused, by name', async (name, value) => {
    expectError(await list({ [name]: value }), 400, [name]);
  });

  it('27d: one given twice is refused, the same value or not', async () => {
    expectError(await api.get('/user-interactions?limit=5&limit=5'), 400, ['limit']);
    expectError(await api.get('/user-interactions?source=SERVICE&source=x'), 400, ['source']);
  });

  it('27d: every wrong one is listed', async () => {
    expectError(await api.get('/user-interactions?limit=0&cursor=x&colour=red'), 400, [
      'limit',
      'cursor',
      'colour',
    ]);
  });

  it.each(['%zz', '%', '%ff', 'a%c3'])(
    '27d: a value written as %s cannot be decoded, and is refused',
    async (value) => {
      expect((await api.get(`/user-interactions?user_id=${value}`)).status).toBe(400);
    },
  );
});

it('33: event_time is the instant of the event in UTC, in every answer that has the interaction', async () => {
  const one = apiOf(server.url, await server.createKey('instants'));
  await one.batch('tags', [{ tag_id: tag, name: 'vegan' }]);
  const times: [number | string, string][] = [
    [1_700_000_000, '2023-11-14T22:13:20.000000Z'],
    [1_700_000_000_123, '2023-11-14T22:13:20.123000Z'],
    ['2019-03-14T09:26:53.1234567+02:00', '2019-03-14T07:26:53.123456Z'],
    ['0001-01-01t00:00', '0001-01-01T00:00:00.000000Z'],
  ];
  const records = times.map(([event_timestamp]) => ({
    interaction_type: 'SHARE',
    item_type: 'TAG',
    item_id: tag,
    event_timestamp,
  }));
  const expected = times.map(([event_timestamp, event_time]) => ({ event_timestamp, event_time }));
  const key = { 'idempotency-key': randomUUID() };
  const first = await one.post('/user-interactions', records[0]!, key);
  expect(first.body).toMatchObject(expected[0]!);
  expect((await one.post('/user-interactions', records[0]!, key)).body).toEqual(first.body);
  expect((await one.get(`/user-interactions/${first.body.interaction_id}`)).body).toEqual(first.body);
  await one.post('/user-interactions/batch', { records: records.slice(1) });
  expect((await list({}, one)).body.interactions.toReversed()).toMatchObject(expected);
  const headers = { accept: 'application/x-ndjson' };
  const exported: string = (await one.get('/user-interactions', headers)).body;
  const lines = exported
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.toReversed()).toMatchObject(expected);
  const { changes } = (await one.get('/v1/changes?types=interactions')).body;
  expect(changes.map((change: { record: object }) => change.record)).toMatchObject(expected);
});
