// @module-tag full

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectInTime } from '../support/in-time.ts';
import { many, newShop, newTag } from '../support/new-records.ts';
import { slowness } from '../support/slowness.ts';

/**
 * Stored changes must reach all readers of the stream within a second during heavy uploads. To measure the lag when
 * uploads saturate the service, run `npm run bench -- feed`.
 */

const promisedMs = 1_000;
const seconds = 4;
/** More would saturate a slow machine. */
const uploadsPerSecond = 8 / slowness();
const uploaders = 4;
const recordsPerUpload = 1_000;
const readers = 3;
const markers = 80;

let server: BuiltServer;
let key: string;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
});
afterAll(() => server.stop());

/** Shops that change with every upload. They are built once, because building them is not part of the service's work. */
const bodies = many(uploaders, () => {
  const body = JSON.stringify({ records: many(recordsPerUpload, () => newShop({ name: 'VERSION' })) });
  return ['one', 'other'].map((name) => Buffer.from(body.replaceAll('VERSION', name)));
});

/** Uploads until `isOver` returns true, and returns the number of uploads. */
async function uploadUntil(isOver: () => boolean, versions: readonly Buffer[]): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const beganMs = performance.now();
  for (let count = 0; ; count++) {
    await sleep(Math.max(0, beganMs + (count * 1_000 * uploaders) / uploadsPerSecond - performance.now()));
    if (isOver()) return count;
    const body = versions[count % versions.length]!;
    const answer = await fetch(`${server.url}/v1/data/shops`, { method: 'POST', headers, body });
    // If the machine stalls for seconds, an upload may get a 503.
    if (answer.status !== 503) expect(answer.status).toBe(200);
    await answer.arrayBuffer();
  }
}

const tagBegins = Buffer.from('"type":"tags","id":"');
const tagBytes = tagBegins.length + 36;

/** Returns a cursor after all stored changes. */
async function cursorNow(): Promise<string> {
  const exported = await apiOf(server.url, key).get('/user-interactions', { accept: 'application/x-ndjson' });
  return exported.headers.get('changes-cursor') ?? '';
}

/** Reads the stream and reports every tag in it, without parsing lines, because that would cost more than sending them. */
async function follow(after: string, signal: AbortSignal, onTag: (id: string) => void): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' };
  const { body } = await fetch(`${server.url}/v1/changes?after=${after}`, { headers, signal });
  let rest = Buffer.alloc(0);
  for await (const piece of body!) {
    const bytes = Buffer.concat([rest, piece]);
    let read = Math.max(0, bytes.length - tagBytes + 1);
    for (let at = bytes.indexOf(tagBegins); at !== -1 && at + tagBytes <= bytes.length; ) {
      onTag(bytes.toString('latin1', at + tagBegins.length, at + tagBytes));
      read = Math.max(read, at + tagBytes);
      at = bytes.indexOf(tagBegins, at + tagBytes);
    }
    rest = bytes.subarray(read);
  }
}

/** Returns the 99th percentile of the time between the response to a one-tag upload and the tag's arrival at a reader. */
async function measureLag(): Promise<number> {
  const answered = new Map<string, number>();
  const arrived = many(readers, () => new Map<string, number>());
  const ending = new AbortController();
  const after = await cursorNow();
  const following = arrived.map((times) =>
    follow(after, ending.signal, (id) => void times.set(id, performance.now())).catch(() => {}),
  );
  let isOver = false;
  const loads = bodies.map((body) => uploadUntil(() => isOver, body));
  for (let at = 0; at < markers; at++) {
    const tag = newTag();
    const { status } = await apiOf(server.url, key).upload('tags', [tag]);
    if (status === 200) answered.set(tag.tag_id, performance.now());
    await sleep((seconds * 1_000) / markers);
  }
  isOver = true;
  expect(answered.size).toBeGreaterThan(markers / 2);
  const uploads = (await Promise.all(loads)).reduce((sum, count) => sum + count, 0);
  const missing = () => arrived.flatMap((times) => [...answered.keys()].filter((id) => !times.has(id)));
  await expect.poll(missing).toEqual([]);
  ending.abort();
  await Promise.all(following);
  const lags = arrived
    .flatMap((times) => [...answered].map(([id, ms]) => times.get(id)! - ms))
    .toSorted((a, b) => a - b);
  const p99Ms = lags[Math.ceil(lags.length * 0.99) - 1]!;
  console.log(
    `p50 ${lags[Math.floor(lags.length / 2)]!.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms, during ${uploads} uploads of ${recordsPerUpload}`,
  );
  return p99Ms;
}

it('the 99th percentile of the time from a commit to a reader is less than a second', async () => {
  await expectInTime(async () => [{ what: 'p99 of the lag', ms: await measureLag(), promisedMs }]);
});
