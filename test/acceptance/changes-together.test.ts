import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { type Change, followFeed, readFeed } from '../support/change-feed.ts';
import { many, newTag } from '../support/new-records.ts';

/** Streams at the same position share their pages, and each stream still receives every change in order. */

let server: SharedServer;
beforeAll(async () => {
  server = await sharedServer();
});

const rounds = 60;
const ids = many(300, () => randomUUID());

/** Stores the same tags repeatedly, each time with a higher version number in their names. */
async function storeVersions(api: Api): Promise<void> {
  for (let version = 1; version <= rounds; version++) {
    const some = ids.slice(0, 1 + ((version * 67) % ids.length));
    const { status } = await api.upload(
      'tags',
      some.map((tag_id) => newTag({ tag_id, name: String(version) })),
    );
    expect(status).toBe(200);
  }
}

/** Reads until the change with id `lastId` arrives. The reader sleeps for `pauseMs` after every 500 changes. */
async function readUntil(key: string, after: string, lastId: string, pauseMs: number): Promise<Change[]> {
  const read: Change[] = [];
  const ending = new AbortController();
  for await (const line of followFeed(server.url, key, { after, signal: ending.signal })) {
    if (line.type === undefined) continue;
    read.push(line as Change);
    if (line.id === lastId) break;
    if (pauseMs > 0 && read.length % 500 === 0) await sleep(pauseMs);
  }
  ending.abort();
  return read;
}

it('streams that start at any time, from any cursor and at any pace get the same changes, and no record goes back', async () => {
  const key = await server.createKey('acme');
  const api = apiOf(server.url, key);
  await api.upload('tags', [newTag()]);
  const { cursor: first } = await readFeed(api);
  const last = newTag();
  const storing = storeVersions(api);
  const readers: { after: string; reading: Promise<Change[]> }[] = [];
  let after = first;
  for (let reader = 0; reader < 12; reader++) {
    if (reader % 4 === 3) ({ cursor: after } = await readFeed(api, { after }));
    readers.push({ after, reading: readUntil(key, after, last.tag_id, reader % 3 === 1 ? 20 : 0) });
    await sleep(reader * 10);
  }
  await storing;
  await api.upload('tags', [last]);
  const { changes } = await readFeed(api, { after: first });
  const cursors = changes.map(({ cursor }) => cursor);
  for (const { after: from, reading } of readers) {
    const read = await reading;
    expect(read.map(({ cursor }) => cursor)).toEqual(cursors.slice(cursors.indexOf(from) + 1));
    expect(read.map(({ id }) => id)).toEqual(changes.slice(cursors.indexOf(from) + 1).map(({ id }) => id));
    expect(goneBack(read)).toEqual([]);
  }
});

/** Returns the records for which an older version was read after a newer one. */
function goneBack(read: readonly Change[]): string[] {
  const versions = new Map<string, number>();
  return read.flatMap(({ id, cursor, record }) => {
    const version = Number(record?.name);
    const before = versions.get(id) ?? 0;
    versions.set(id, version);
    return version < before ? [`${cursor}: ${version} after ${before}`] : [];
  });
}
