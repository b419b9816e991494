import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Answer, apiOf } from '../support/api.ts';
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

/** Tests reading interactions by event time, and in one export (rows 104 and 105 of docs/api-behaviour.md). */

describe('times of the event', () => {
  const eventOf = (at: number) => new Date((1_700_000_000 - at) * 1_000).toISOString();
  const secondsOf = (one: Interaction) => Number(one.event_timestamp);

  it('104: event_from is inclusive, and event_to is exclusive', async () => {
    const [event_from, event_to] = [eventOf(15), eventOf(5)];
    const [first, end] = [1_700_000_000 - 15, 1_700_000_000 - 5];
    expect(idsOf(await list({ event_from }))).toEqual(newestFirst((one) => secondsOf(one) >= first));
    expect(idsOf(await list({ event_to }))).toEqual(newestFirst((one) => secondsOf(one) < end));
    expect(idsOf(await list({ event_from, event_to }))).toEqual(
      newestFirst((one) => secondsOf(one) >= first && secondsOf(one) < end),
    );
    expect(idsOf(await list({ event_from: event_to, event_to: event_from }))).toEqual([]);
  });

  it('104: they combine with every other filter, and with times of receipt', async () => {
    const query = { event_from: eventOf(20), from: recorded[5]!.created };
    const times = (one: Interaction) => secondsOf(one) >= 1_700_000_000 - 20 && one.created >= query.from;
    const others = { student_id: student!, user_id: 'visitor & co+1', item_id: shop!, item_type: 'SHOP' };
    const more = { recommendation_id: recommendation!, interaction_type: 'DISCOUNT_CODE', source: 'SERVICE' };
    for (const [field, value] of Object.entries({ ...others, ...more })) {
      const expected = newestFirst((one) => one[field] === value && times(one));
      expect(idsOf(await list({ ...query, [field]: value }))).toEqual(expected);
    }
  });

  it('104: an event is found by its time, however that was written', async () => {
    const user_id = randomUUID();
    const written = [
      '2001-02-03T05:05:06.000007+01:00',
      981_173_106,
      981_173_106_001,
      '2001-02-03T04:05:07Z',
    ];
    for (const event_timestamp of written) await record({ ...fieldsOf(1), user_id, event_timestamp });
    const asked = { user_id, event_from: '2001-02-03T04:05:06Z', event_to: '2001-02-03T04:05:07Z' };
    const { body } = await list(asked);
    const found = body.interactions.map(({ event_timestamp }: Interaction) => event_timestamp);
    expect(found).toEqual(written.slice(0, 3).toReversed());
    const { body: later } = await list({ ...asked, event_from: '2001-02-03T04:05:06.000008Z' });
    expect(later.interactions).toHaveLength(1);
  });
});

describe('an export', () => {
  const lines = { accept: 'application/x-ndjson' };
  const linesOf = ({ body }: Answer): Interaction[] =>
    body === ''
      ? []
      : body
          .trimEnd()
          .split('\n')
          .map((line: string) => JSON.parse(line));
  const exported = (query: Record<string, string> = {}, from = api) =>
    from.get(`/user-interactions?${new URLSearchParams(query)}`, lines);

  it('105: returns all matches, newest received first, one per line, as in the list', async () => {
    const answer = await exported();
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
    expect(answer.headers.get('vary')).toContain('accept');
    expect(linesOf(answer)).toEqual((await list({ limit: '1000' })).body.interactions);
    const query = { interaction_type: 'DISCOUNT_CODE', event_to: '2023-11-14T22:13:15Z' };
    const { body } = await list(query);
    expect(body.interactions.length).toBeGreaterThan(0);
    expect(linesOf(await exported(query))).toEqual(body.interactions);
  });

  it('105: continues after the last line that was received', async () => {
    const all = linesOf(await exported());
    const cursor = all[9]!.interaction_id;
    expect(linesOf(await exported({ cursor }))).toEqual(all.slice(10));
  });

  it('105: of nothing is empty, and contains nothing of another organisation', async () => {
    expect(linesOf(await exported({ item_id: randomUUID() }))).toEqual([]);
    expect(linesOf(await exported({}, otherApi))).toHaveLength(1);
  });

  it('105: accepts no limit', async () => {
    expectError(await exported({ limit: '5' }), 400, ['limit']);
  });

  it('105: can be sent back as a batch, line by line', async () => {
    const third = apiOf(server.url, await server.createKey('third'));
    await third.batch('tags', [{ tag_id: tag, name: 'vegan' }]);
    const { body } = await exported({ item_type: 'TAG' });
    const headers = { 'content-type': 'application/x-ndjson' };
    const sent = await third.send('/user-interactions/batch', { method: 'POST', headers, body });
    const { counts } = sent.body.batches[0].data;
    expect(counts.created + counts.failed).toBe(linesOf(await exported({ item_type: 'TAG' })).length);
    expect(linesOf(await exported({}, third))).toHaveLength(counts.created);
  });

  it('105: of thousands returns each exactly once', async () => {
    const records = Array.from({ length: 2_500 }, (_, at) => ({ ...fieldsOf(1), event_timestamp: at + 1 }));
    const fourth = apiOf(server.url, await server.createKey('fourth'));
    await fourth.batch('shops', [{ shop_id: shop, name: 'Shop', region: 'GB' }]);
    await fourth.post('/user-interactions/batch', { records });
    const times = linesOf(await exported({}, fourth)).map(({ event_timestamp }) => event_timestamp);
    expect(times).toEqual(records.map(({ event_timestamp }) => event_timestamp).toReversed());
  });
});
