import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { readFeed } from '../support/change-feed.ts';
import { type CountingPostgres, startCountingPostgres } from '../support/counting-postgres.ts';
import { many, newTag } from '../support/new-records.ts';
import { forgetPeak, residentMegabytes } from '../support/process-state.ts';
import { replayRejections } from '../support/rejections.ts';
import { feedCursor, replayCursorAfter, reportCursorAfter, signerOf } from '../support/signed-cursor.ts';

/** Only the server can create cursors for the feed, replays and reports. A forged cursor is refused without a query. */

let postgres: CountingPostgres;
let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  postgres = await startCountingPostgres();
  server = await startBuiltServer({ DATABASE_URL: postgres.url });
  api = apiOf(server.url, await server.createKey('acme'));
  await server.run('organisations', 'set-report', 'acme', 'on');
  await api.upload(
    'tags',
    many(3, () => newTag()),
  );
});
afterAll(async () => {
  await server?.stop();
  await postgres?.stop();
});

const feed = (after: string, by = api) => by.get(`/v1/changes?after=${encodeURIComponent(after)}`);
const report = (cursor: string, by = api) =>
  by.get(`/v1/reports/recommendations?group_by=platform&cursor=${encodeURIComponent(cursor)}`);
const replay = (cursor: string, by = api) => replayRejections(by, { cursor });

function expectRefused({ status, body }: Answer, field: string): void {
  expect({ status, details: body.details }).toMatchObject({
    status: 400,
    details: [{ field, code: 'invalid_format', message: expect.stringMatching(/start again|leave it out/) }],
  });
}

/** Returns copies of the cursor, each with one bit of one character flipped. */
const spoilt = (cursor: string) =>
  [...cursor].map((character, at) => {
    const other = String.fromCharCode(character.charCodeAt(0) ^ 1);
    return cursor.slice(0, at) + other + cursor.slice(at + 1);
  });

it('a cursor of the feed is refused if anything in it was changed', async () => {
  const { changes, cursor } = await readFeed(api);
  expect((await feed(cursor)).status).toBe(200);
  for (const one of spoilt(cursor)) expectRefused(await feed(one), 'after');
  const [number, offset, size, ...rest] = changes[1]!.cursor.split('-');
  expect([offset, size]).toEqual(['2', '3']);
  const made = (...parts: unknown[]) => [...parts, ...rest].join('-');
  expect((await feed(made(number, 1, 3))).body.changes).toMatchObject(changes.slice(1));
  for (const outside of [0, 3, 4, 999_999].map((wrong) => made(number, wrong, 3)))
    expectRefused(await feed(outside), 'after');
  for (const changed of [made(number, 2, 999_999), made(2, 2, 3), made(Number(number) + 1, 0, 0)])
    expectRefused(await feed(changed), 'after');
});

it('a cursor in the format from before cursors were signed is refused', async () => {
  for (const old of ['1-0-1f0c2d3e', '1-999999-1f0c2d3e']) expectRefused(await feed(old), 'after');
});

it('a cursor belongs to one organisation and one kind', async () => {
  const other = apiOf(server.url, await server.createKey('other'));
  const own = {
    feed: await signerOf(postgres.url, 'acme', 'feed'),
    replay: await signerOf(postgres.url, 'acme', 'replay'),
    report: await signerOf(postgres.url, 'acme', 'report'),
  };
  const kinds = [
    { kind: 'feed', field: 'after', ask: feed, make: (sign) => feedCursor(sign, { number: 1 }) },
    {
      kind: 'replay',
      field: 'cursor',
      ask: replay,
      make: (sign) => replayCursorAfter(sign, 'tags', randomUUID()),
    },
    {
      kind: 'report',
      field: 'cursor',
      ask: report,
      make: (sign) => reportCursorAfter(sign, 'platform', '=WEB'),
    },
  ] satisfies {
    kind: keyof typeof own;
    field: string;
    ask: (cursor: string, by?: Api) => Promise<Answer>;
    make: (sign: (text: string) => string) => string;
  }[];
  for (const { kind, field, ask, make } of kinds) {
    for (const [signedFor, sign] of Object.entries(own)) {
      if (signedFor === kind) expect((await ask(make(sign))).status).toBe(200);
      else expectRefused(await ask(make(sign)), field);
    }
    expectRefused(await ask(make(own[kind]), other), field);
  }
  const ofItems = reportCursorAfter(own.report, 'item_type', '=WEB');
  expectRefused(await report(ofItems), 'cursor');
});

it('many forged cursors at once cost neither a query nor memory', async () => {
  const { cursor } = await readFeed(api);
  const forged = cursor.replace(/^(\d+)-0-0/, '1-999999-999999');
  expect(forged).not.toBe(cursor);
  // By now, everything that is looked up only once, such as the key, is cached.
  expectRefused(await feed(forged), 'after');
  await postgres.reset();
  forgetPeak(server.process.pid);
  const before = residentMegabytes(server.process.pid, 'VmRSS');
  for (const answer of await Promise.all(many(60, () => feed(forged)))) expectRefused(answer, 'after');
  expect(residentMegabytes(server.process.pid, 'VmHWM') - before).toBeLessThan(100);
  // Only the feed's queries count, because maintenance also reads all organisations' changes and rejections.
  const asksFeed = /cursor_key|\bfrom tenants t left join change_counters\b/;
  const asked = async () => (await postgres.calls()).filter(({ query }) => asksFeed.test(query));
  expect(await asked()).toEqual([]);
  await feed(cursor);
  expect(await asked()).not.toEqual([]);
});
