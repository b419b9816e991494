// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { limits } from '../../src/limits.ts';
import { changeOrganisation } from '../../src/operator/audited-actions.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { type Change, FeedCopy } from '../support/change-feed.ts';
import { expireAll } from '../support/jobs.ts';
import { addInteractions, addOldDay, type OldDay } from '../support/old-interactions.ts';

/** Change feed readers have the same interactions as the database, even after some interactions have expired. */

let test: TestApp;
const days: OldDay[] = [];
beforeAll(async () => {
  test = await createTestApp();
  for (let daysAgo = 3; daysAgo <= 8; daysAgo++) days.push(await addOldDay(test.pool, daysAgo));
});
afterAll(() => test.close());

const dayMs = 86_400_000;
const keep = (slug: string, interactions_kept_days: number | null) =>
  changeOrganisation(test.pool, { actor: 'test' }, slug, { interactions_kept_days });

async function newOrganisation() {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId, key } = await test.organisation(slug);
  const headers = { authorization: `Bearer ${key}` };
  const get = async (url: string) => {
    const answer = await test.app.inject({ url, headers });
    expect(answer.statusCode, answer.body).toBe(200);
    return answer.json();
  };
  return { slug, organisationId, headers, get };
}
type Organisation = Awaited<ReturnType<typeof newOrganisation>>;

/** A reader that updates its copy page by page. */
class Follower {
  readonly copy = new FeedCopy();
  readonly seen: Change[] = [];
  readonly #organisation: Organisation;
  readonly #limit: number;
  #cursor = '';

  constructor(organisation: Organisation, limit = 100) {
    this.#organisation = organisation;
    this.#limit = limit;
  }

  async follow(): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const after = this.#cursor === '' ? '' : `&after=${this.#cursor}`;
      const page = await this.#organisation.get(
        `/v1/changes?types=interactions&limit=${this.#limit}${after}`,
      );
      for (const change of page.changes as Change[]) {
        this.copy.apply(change);
        this.seen.push(change);
      }
      this.#cursor = page.next_cursor;
      hasMore = page.has_more;
    }
  }

  /** Returns the copied ids, except the ones reported as deleted. */
  get ids(): string[] {
    return [...this.copy.records]
      .flatMap(([key, record]) => (record === 'null' ? [] : key.split(' ')[1]!))
      .toSorted();
  }
}

async function storedOf({ get }: Organisation): Promise<string[]> {
  const { interactions } = await get('/user-interactions?limit=100');
  return interactions.map(({ interaction_id }: { interaction_id: string }) => interaction_id).toSorted();
}

it('a copy equals the data after every interruption, whenever it started, page by page', async () => {
  const one = await newOrganisation();
  const other = await newOrganisation();
  for (const day of days) await addInteractions(test.pool, one.organisationId, day, 5);
  // Another organisation keeps every second day, so half of the days are dropped, and rows are deleted from the other half.
  for (const day of days.filter((_, at) => at % 2 === 0))
    await addInteractions(test.pool, other.organisationId, day, 2);
  await keep(one.slug, 1);
  const early = new Follower(one, 3);
  await early.follow();
  expect(early.ids).toHaveLength(30);
  for (let ago = 6; ago >= 0; ago--) {
    await expireAll(test.pool, new Date(Date.now() - ago * dayMs - 1_000));
    await early.follow();
    const stored = await storedOf(one);
    expect(early.ids).toEqual(stored);
    const late = new Follower(one, 4);
    await late.follow();
    expect(late.ids).toEqual(stored);
    // Expiry is not reported as an erasure.
    expect(late.seen.filter(({ erased }) => erased)).toEqual([]);
  }
  expect(early.ids).toEqual([]);
  const cuts = early.seen.filter(({ expired_before }) => expired_before !== undefined);
  expect(cuts.length).toBeGreaterThanOrEqual(6);
  for (const cut of cuts)
    expect(cut).toEqual({
      cursor: expect.any(String),
      type: 'interactions',
      expired_before: expect.stringMatching(/T00:00:00\.000Z$/),
    });
  expect(await storedOf(other)).toHaveLength(6);
  const follower = new Follower(other);
  await follower.follow();
  expect(follower.ids).toHaveLength(6);
  expect(follower.seen.filter(({ expired_before }) => expired_before !== undefined)).toEqual([]);
});

it('entries of other types come in their order, and a stream has the same', async () => {
  const one = await newOrganisation();
  const day = await addOldDay(test.pool, 20);
  const ids = await addInteractions(test.pool, one.organisationId, day, 2);
  const tag = { tag_id: randomUUID(), name: 'a' };
  const upload = (name: string) =>
    test.app.inject({
      method: 'POST',
      url: '/v1/data/tags',
      headers: one.headers,
      payload: { records: [{ ...tag, name }] },
    });
  await upload('a');
  await keep(one.slug, 2);
  await one.get('/v1/changes');
  await expireAll(test.pool);
  await one.get('/v1/changes');
  await upload('b');
  const { changes } = await one.get('/v1/changes');
  const short = (each: Change) => each.expired_before ?? `${each.type} ${each.id}`;
  const expected = [
    ...ids.map((id) => `interactions ${id}`),
    `tags ${tag.tag_id}`,
    new Date(day.startMs + dayMs).toISOString(),
    `tags ${tag.tag_id}`,
  ];
  expect(changes.map(short)).toEqual(expected);
  expect(changes.slice(0, 2)).toMatchObject([
    { deleted: true, erased: false, record: null },
    { deleted: true, erased: false, record: null },
  ]);
  for (const [at, { cursor }] of changes.entries())
    expect((await one.get(`/v1/changes?after=${cursor}`)).changes.map(short)).toEqual(expected.slice(at + 1));
  expect((await one.get('/v1/changes?types=tags')).changes.map(short)).toEqual([expected[2], expected[4]]);
  const url = await test.app.listen({ port: 0, host: '127.0.0.1' });
  const ending = new AbortController();
  const answer = await fetch(`${url}/v1/changes`, {
    headers: { ...one.headers, accept: 'application/x-ndjson' },
    signal: ending.signal,
  });
  let text = '';
  const decoder = new TextDecoder();
  for await (const piece of answer.body!) {
    text += decoder.decode(piece, { stream: true });
    if (text.trim().split('\n').length >= expected.length) break;
  }
  ending.abort();
  expect(
    text
      .trim()
      .split('\n')
      .map((line) => short(JSON.parse(line))),
  ).toEqual(expected);
});

it('an interaction that was removed but has not expired is reported as erased', async () => {
  const one = await newOrganisation();
  const [id] = await addInteractions(
    test.pool,
    one.organisationId,
    { startMs: Date.now() - 1_000 },
    1,
    () => 0,
  );
  await keep(one.slug, 2);
  await expireAll(test.pool);
  await test.pool.query('delete from interactions where interaction_id = $1', [id]);
  const { changes } = await one.get('/v1/changes');
  expect(changes).toMatchObject([{ id, deleted: true, erased: true, record: null }]);
});

it('a replay stores an interaction whose key has expired under a new id, because its day may have expired', async () => {
  const one = await newOrganisation();
  const tag = { tag_id: randomUUID(), name: 'late' };
  const send = (url: string, payload?: object, more: object = {}) =>
    test.app.inject({
      method: 'POST',
      url,
      headers: { ...one.headers, ...more },
      ...(payload && { payload }),
    });
  const interaction = {
    interaction_type: 'SHARE',
    item_type: 'TAG',
    item_id: tag.tag_id,
    event_timestamp: 1,
  };
  const rejected = await send('/user-interactions', interaction, { 'idempotency-key': 'k' });
  expect(rejected.statusCode).toBe(400);
  const oldId = uuidFloor(Date.now() - 2 * limits.idempotencyKeyLifeMs - 10 * dayMs);
  const { rowCount } = await test.pool.query(
    'update rejections set record_id = $2 where organisation_id = $1 and record_id is not null',
    [one.organisationId, oldId],
  );
  expect(rowCount).toBe(1);
  await send('/v1/data/tags', { records: [tag] });
  const replayed = await send('/v1/rejections/replay');
  expect(replayed.statusCode, replayed.body).toBe(200);
  const { interactions } = await one.get('/user-interactions');
  expect(interactions).toHaveLength(1);
  expect(interactions[0].interaction_id > uuidFloor(Date.now() - dayMs)).toBe(true);
});
