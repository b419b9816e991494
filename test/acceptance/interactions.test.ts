// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';

/** Tests recording an interaction: its fields, its references and its response (rows 29 to 33 of docs/api-behaviour.md). */

let server: SharedServer;
let api: Api;
let otherApi: Api;
beforeAll(async () => {
  server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme'));
  otherApi = apiOf(server.url, await server.createKey('other'));
  await Promise.all([storeItems(api, ours), storeItems(otherApi, theirs)]);
  await storeItems(api, deleted, { is_deleted: true });
});

const newItems = () => ({
  SHOP: randomUUID(),
  TAG: randomUUID(),
  KEYWORD: randomUUID(),
  OFFER: randomUUID(),
  student: randomUUID(),
});
type Items = ReturnType<typeof newItems>;
const [ours, theirs, deleted] = [newItems(), newItems(), newItems()];
const kinds = ['TAG', 'OFFER', 'SHOP', 'KEYWORD'] as const;

async function storeItems(to: Api, ids: Items, fields: object = {}) {
  const records: [string, object][] = [
    ['shops', { shop_id: ids.SHOP, name: 'Shop', region: 'GB' }],
    ['tags', { tag_id: ids.TAG, name: 'tag' }],
    ['keywords', { keyword_id: ids.KEYWORD, name: 'keyword' }],
    [
      'offers',
      { offer_id: ids.OFFER, shop_id: ids.SHOP, name: 'Offer', type: 'fixed', value: 1, region: 'GB' },
    ],
    ['customers', { customer_id: ids.student, user_id: randomUUID(), region: 'GB' }],
  ];
  for (const [type, record] of records) {
    expect((await to.batch(type, [{ ...record, ...fields }])).counts.created).toBe(1);
  }
}

const minimal = (fields: object = {}) => ({
  interaction_type: 'PAGE_VIEW',
  item_type: 'SHOP',
  item_id: ours.SHOP,
  event_timestamp: '2026-03-14T09:26:53Z',
  ...fields,
});
const record = (fields: object = {}, from = api) => from.post('/user-interactions', minimal(fields));

async function expectRecorded(fields: object, returned: object = fields) {
  const { status, body } = await record(fields);
  expect({ status, body }).toMatchObject({ status: 201, body: returned });
}

async function expectRefused(fields: object, field: string, code: string) {
  const answer = await record(fields);
  expectError(answer, 400, [field]);
  expect(answer.body.details[0].code).toBe(code);
}

describe('the created object', () => {
  it('33: has its own id, every field as sent, and the time of receipt; no more, no less', async () => {
    const sent = {
      interaction_type: 'DISCOUNT_CODE',
      user_id: 'visitor-1',
      student_id: ours.student,
      item_type: 'OFFER',
      item_id: ours.OFFER,
      city: 'Leeds',
      country: 'United Kingdom',
      platform: 'IOS',
      event_timestamp: 1_700_000_000,
      source: 'SERVICE',
      recommendation_id: randomUUID(),
    };
    const before = Date.now();
    const { status, headers, body } = await api.post('/user-interactions', sent);
    expect(status).toBe(201);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    const { interaction_id, event_time, created, ...fields } = body;
    expect(event_time).toBe('2023-11-14T22:13:20.000000Z');
    expect(interaction_id).toMatch(uuidV7);
    expect(fields).toEqual(sent);
    expect(new Date(created).toISOString()).toBe(created);
    expect(Date.parse(created)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(created)).toBeLessThanOrEqual(Date.now());
  });

  it('33: has null for an omitted field', async () => {
    const { status, body } = await record();
    expect(status).toBe(201);
    expect(body).toEqual({
      interaction_id: expect.stringMatching(uuidV7),
      ...minimal(),
      user_id: null,
      student_id: null,
      city: null,
      country: null,
      platform: null,
      source: null,
      recommendation_id: null,
      event_time: '2026-03-14T09:26:53.000000Z',
      created: expect.any(String),
    });
  });

  it('33: has its UUIDs in lower case', async () => {
    const id = randomUUID();
    const capitals = { item_id: ours.SHOP.toUpperCase(), recommendation_id: id.toUpperCase() };
    await expectRecorded(capitals, { item_id: ours.SHOP, recommendation_id: id });
  });

  it('8: names an unknown field, and ignores it', async () => {
    const { status, body } = await record({ platfrom: 'WEB' });
    expect(status).toBe(201);
    expect(body.warnings).toMatchObject([{ field: 'platfrom', count: 1 }]);
    expect(body).not.toHaveProperty('platfrom');
  });
});

describe('fields', () => {
  const taken: Record<string, unknown[]> = {
    interaction_type: ['FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE'],
    user_id: ['v', 'x'.repeat(255), '😀'.repeat(255), 'jürgen', '', null],
    city: ['Leeds', '', 'x'.repeat(1_000), null],
    country: ['GB', 'United Kingdom', 'x'.repeat(1_000), null],
    platform: ['ANDROID', 'IOS', 'WEB', 'OTHER', null],
    source: ['SERVICE', null],
    recommendation_id: [randomUUID(), null],
    student_id: [null],
  };
  const takenCases = Object.entries(taken).flatMap(([field, values]) =>
    values.map((value) => ({ field, value })),
  );
  it.each(takenCases)('Interaction: $field may be $value', async ({ field, value }) => {
    await expectRecorded({ [field]: value });
  });

  const refused: Record<string, [string, unknown[]][]> = {
    interaction_type: [
      ['invalid_value', ['page_view', 'VIEW', 'PAGE_VIEW ']],
      ['required', ['', null, undefined]],
      ['wrong_type', [1, true, ['SHARE'], {}]],
    ],
    user_id: [
      ['too_long', ['x'.repeat(256), '😀'.repeat(256)]],
      ['wrong_type', [1, true, [], {}]],
      ['invalid_characters', ['a\u0000b', '\ud800']],
    ],
    student_id: [
      ['invalid_format', ['', 'x', randomUUID().replaceAll('-', ''), `{${randomUUID()}}`]],
      ['wrong_type', [1, true]],
    ],
    item_type: [
      ['invalid_value', ['shop', 'CATEGORY', '__proto__']],
      ['required', ['', null, undefined]],
      ['wrong_type', [1, ['SHOP']]],
    ],
    item_id: [
      ['invalid_format', ['x', `${randomUUID()}0`]],
      ['required', ['', null, undefined]],
      ['wrong_type', [1, {}]],
    ],
    city: [
      ['too_long', ['x'.repeat(1_001)]],
      ['wrong_type', [1, ['Leeds']]],
    ],
    country: [
      ['too_long', ['x'.repeat(1_001)]],
      ['wrong_type', [1, {}]],
    ],
    platform: [
      ['invalid_value', ['web', 'DESKTOP', '']],
      ['wrong_type', [1, ['WEB']]],
    ],
    event_timestamp: [
      ['required', ['', null, undefined]],
      ['wrong_type', [true, [], {}]],
    ],
    source: [
      ['invalid_value', ['service', 'SERVICES', 'OTHER', 'null', '']],
      ['wrong_type', [0, false, ['SERVICE']]],
    ],
    recommendation_id: [
      ['invalid_format', ['x', '']],
      ['wrong_type', [1, {}]],
    ],
  };
  const refusedCases = Object.entries(refused).flatMap(([field, reasons]) =>
    reasons.flatMap(([code, values]) => values.map((value) => ({ field, code, value }))),
  );
  it.each(refusedCases)('Interaction: $field may not be $value: $code', async ({ field, code, value }) => {
    await expectRefused({ [field]: value }, field, code);
  });

  it('Interaction: every bad field is listed, at most five', async () => {
    const bad = {
      interaction_type: 1,
      user_id: 1,
      student_id: 1,
      item_type: 1,
      item_id: 1,
      city: 1,
      platform: 1,
    };
    const fields = ['interaction_type', 'user_id', 'student_id', 'item_type', 'item_id'];
    expectError(await record(bad), 400, fields);
  });

  it.each([[[]], ['text'], [7], [true], [null]])('Interaction: the body %j is refused', async (body) => {
    expectError(await api.post('/user-interactions', body), 400, ['body']);
  });

  it('Interaction: a body wrapped in records is refused with a hint', async () => {
    const required = ['records', 'interaction_type', 'item_type', 'item_id', 'event_timestamp'];
    expectError(await api.post('/user-interactions', { records: [minimal()] }), 400, required);
  });

  it('Interaction: a refusal repeats nothing of the body, and stores nothing', async () => {
    const secret = 'sent-in-confidence';
    const answer = await record({ interaction_type: secret, platform: secret, item_id: secret });
    expectError(answer, 400, ['interaction_type', 'item_id', 'platform']);
    expect(JSON.stringify(answer.body)).not.toContain(secret);
  });
});

describe('the references of an interaction', () => {
  it.each(kinds)('30: an existing item of kind %s is accepted, deleted or not', async (item_type) => {
    await expectRecorded({ item_type, item_id: ours[item_type] });
    await expectRecorded({ item_type, item_id: deleted[item_type] });
  });

  it.each(kinds)('30: a missing item of kind %s is refused', async (item_type) => {
    await expectRefused({ item_type, item_id: randomUUID() }, 'item_id', 'reference_not_found');
  });

  it.each(kinds)(
    '19: an item of kind %s of another organisation gets the same answer as a missing one',
    async (item_type) => {
      const [foreign, absent] = [
        await record({ item_type, item_id: theirs[item_type] }),
        await record({ item_type, item_id: randomUUID() }),
      ];
      expectError(foreign, 400, ['item_id']);
      expect(foreign.body).toEqual(absent.body);
      expect((await record({ item_type, item_id: theirs[item_type] }, otherApi)).status).toBe(201);
    },
  );

  const wrongKinds = kinds.flatMap((named) =>
    kinds.filter((is) => is !== named).map((is) => ({ named, is })),
  );
  it.each(wrongKinds)('30: an item of kind $is is not a $named', async ({ named, is }) => {
    await expectRefused({ item_type: named, item_id: ours[is] }, 'item_id', 'reference_not_found');
  });

  it('16: a student is a customer of the same organisation, deleted or not', async () => {
    await expectRecorded({ student_id: ours.student });
    await expectRecorded({ student_id: deleted.student });
    await expectRefused({ student_id: ours.SHOP }, 'student_id', 'reference_not_found');
  });

  it('19: a student of another organisation gets the same answer as a missing one', async () => {
    const [foreign, absent] = [
      await record({ student_id: theirs.student }),
      await record({ student_id: randomUUID() }),
    ];
    expectError(foreign, 400, ['student_id']);
    expect(foreign.body).toEqual(absent.body);
  });

  it('30: a missing student and a missing item are both named', async () => {
    const answer = await record({ student_id: randomUUID(), item_id: randomUUID() });
    expectError(answer, 400, ['student_id', 'item_id']);
  });
});

describe('event_timestamp', () => {
  it.each([
    1,
    1_700_000_000,
    99_999_999_999,
    100_000_000_000,
    1_700_000_000_000,
    253_402_300_799_999,
    '2026-03-14T09:26:53Z',
    '2026-03-14T09:26:53.589793238+02:00',
    '2026-03-14T09:26:53',
    '9999-12-31T23:59:59.999Z',
  ])('31: %j is accepted, and returned as sent', async (event_timestamp) => {
    const { status, body } = await record({ event_timestamp });
    expect({ status, sent: body.event_timestamp }).toEqual({ status: 201, sent: event_timestamp });
    const { body: read } = await api.get(`/user-interactions/${body.interaction_id}`);
    expect(read).toEqual(body);
  });

  it.each([
    0,
    -1,
    1.5,
    1_700_000_000.5,
    253_402_300_800_000,
    Number.MAX_SAFE_INTEGER,
    1e300,
    '1700000000',
    '2026-02-30T00:00:00Z',
    '2026-03-14',
    '14/03/2026',
    '10000-01-01T00:00:00Z',
    'now',
  ])('31: %j is refused', async (event_timestamp) => {
    await expectRefused({ event_timestamp }, 'event_timestamp', 'invalid_format');
  });

  it('31: a number beyond all limits is refused', async () => {
    const body = JSON.stringify(minimal({ event_timestamp: 1 })).replace(':1}', ':1e400}');
    const headers = { 'content-type': 'application/json' };
    expectError(await api.send('/user-interactions', { method: 'POST', headers, body }), 400, [
      'event_timestamp',
    ]);
  });
});
