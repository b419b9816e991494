// @module-tag full
// @module-tag long

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { badTag, many, newTag } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';
import { type Link, startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/**
 * The process is killed at random moments during uploads. At any moment, the receipts and the stored data must agree
 * for every batch, and retrying every upload with its key must complete it.
 *
 * A moment is a number of messages to the database, not a time, so that kills happen at the same steps on slow and fast
 * machines. KILL_SEED repeats the uploads and the numbers, but how uploads interleave depends on the machine.
 */

const kills = Number(process.env.KILLS ?? 8);
/** Each lane has its own process, which is killed repeatedly. All lanes use the same database. */
const lanes = 2;
const uploadsPerKill = 2;
/** The uploads before a kill send fewer messages than this, so the latest possible kill happens after them. */
const messagesMax = 55;
const seed = Number(process.env.KILL_SEED ?? Math.floor(Math.random() * 2 ** 32));
console.log(`KILL_SEED=${seed}`);

/** Returns a Mulberry32 generator: pseudorandom numbers from 0 to 1 that are the same for the same seed. */
function randomFrom(state: number): () => number {
  let at = state;
  return () => {
    at = (at + 0x6d2b79f5) | 0;
    let mixed = Math.imul(at ^ (at >>> 15), 1 | at);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Sent {
  readonly idempotencyKey: string;
  readonly records: readonly { tag_id: string; name: unknown }[];
  /** The responses that the client received before the process was killed, for every attempt. */
  readonly answers: Answer[];
}

let databaseUrl: string;
let key: string;
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  const run = (...args: string[]) => runCommand(args, { DATABASE_URL: databaseUrl });
  await run('organisations', 'create', 'acme');
  key = JSON.parse((await run('keys', 'issue', '--organisation', 'acme', '--json')).stdout).key;
});

const proxies: TcpProxy[] = [];
const servers = new Set<BuiltServer>();
async function start(through: string): Promise<BuiltServer> {
  const server = await startBuiltServer({ DATABASE_URL: through });
  servers.add(server);
  return server;
}
afterAll(async () => {
  for (const server of servers) await server.stop();
  for (const proxy of proxies) await proxy.close();
});

/**
 * Makes two or three batches with about one bad record in a hundred, and sometimes a batch of only bad records. Small
 * uploads are checked in the event loop, and larger ones in a thread.
 */
function newUpload(random: () => number): Sent {
  const count = 1_000 + Math.ceil(random() * (random() < 0.2 ? 1_100 : 100));
  const badBatch = random() < 0.1 ? Math.floor(random() * 3) : -1;
  const records = many(count, (at) =>
    Math.floor(at / 1_000) === badBatch || random() < 0.01 ? badTag() : newTag({ name: 'x' }),
  );
  return { idempotencyKey: randomUUID(), records, answers: [] };
}

const send = (api: Api, { idempotencyKey, records }: Sent) =>
  api.post('/v1/data/tags', { records }, { 'idempotency-key': idempotencyKey });

async function killDuring(
  server: BuiltServer,
  proxy: TcpProxy,
  uploads: readonly Sent[],
  /** The last message's number, or 'first batch' for the first batch's commit, which still arrives. */
  lastMessage: number | 'first batch',
  lastArrives: boolean,
): Promise<void> {
  const api = apiOf(server.url, key);
  const ended = once(server.process, 'exit');
  let messages = 0;
  let isOver = false;
  /** Connections that have sent records. Messages with records are the longest. */
  const storing = new Set<Link>();
  proxy.watch((bytes, link) => {
    // Messages from a starting process do not count, because they would outnumber all others.
    if (isOver || (messages === 0 && !bytes.includes('begin'))) return !isOver;
    messages++;
    if (bytes.length > 10_000) storing.add(link);
    const endsBatch = storing.has(link) && bytes.includes('commit');
    isOver = lastMessage === 'first batch' ? endsBatch : messages === lastMessage;
    if (isOver) server.process.kill('SIGKILL');
    return !isOver || lastArrives;
  });
  await Promise.all(
    uploads.map((upload) =>
      send(api, upload).then(
        (answer) => upload.answers.push(answer),
        () => {},
      ),
    ),
  );
  server.process.kill('SIGKILL');
  await ended;
  proxy.unwatch();
  servers.delete(server);
}

/** Kills one process after another. Some of the interrupted uploads are retried, and interrupted again. */
async function runLane(lane: number, all: Sent[]): Promise<void> {
  const random = randomFrom(seed + lane);
  const proxy = await startTcpProxy(databaseUrl);
  proxies.push(proxy);
  for (let kill = lane; kill < kills; kill += lanes) {
    const server = await start(proxy.databaseUrl);
    const brokenOff = all.filter(({ answers }) => answers.length === 0);
    // The last kill in each lane leaves a partly stored upload, regardless of the other kills.
    const isLast = kill + lanes >= kills;
    const again = random() < 0.5 && !isLast ? brokenOff[Math.floor(random() * brokenOff.length)] : undefined;
    const fresh = many(uploadsPerKill - (again ? 1 : 0), () => newUpload(random));
    all.push(...fresh);
    // Kills are spread over all messages, so that some happen before, during and after the batches.
    const lastMessage = isLast
      ? 'first batch'
      : Math.ceil(((kill + random()) / (kills - lanes)) * messagesMax);
    const lastArrives = isLast || random() < 0.5;
    await killDuring(server, proxy, again ? [again, ...fresh] : fresh, lastMessage, lastArrives);
  }
}

interface Batch {
  readonly batch: number;
  readonly status: number;
  readonly data: { readonly counts: Record<string, number> };
}

/** Returns the data stored in the database. */
async function readStored() {
  const tags = await queryDatabase<{ tag_id: string }>(databaseUrl, 'select tag_id from tags');
  const rejections = await queryDatabase<{ place: string }>(
    databaseUrl,
    `select request_id || ' ' || index as place from rejections`,
  );
  return {
    tagIds: new Set(tags.map(({ tag_id }) => tag_id)),
    tagCount: tags.length,
    rejectionPlaces: new Set(rejections.map(({ place }) => place)),
    rejectionCount: rejections.length,
  };
}
type Stored = Awaited<ReturnType<typeof readStored>>;

/** Returns each batch with its stored records, as a receipt should report it. */
function batchesFound({ records }: Sent, requestId: string | undefined, stored: Stored) {
  return many(Math.ceil(records.length / 1_000), (at) => {
    const places = records.slice(at * 1_000, (at + 1) * 1_000).map((record, place) => ({
      good: record.name !== 7,
      stored: stored.tagIds.has(record.tag_id),
      rejected: stored.rejectionPlaces.has(`${requestId} ${at * 1_000 + place}`),
    }));
    return {
      batch: at + 1,
      good: places.filter(({ good }) => good).length,
      bad: places.filter(({ good }) => !good).length,
      created: places.filter((one) => one.good && one.stored).length,
      rejected: places.filter((one) => !one.good && one.rejected).length,
      astray: places.filter((one) => (one.good ? one.rejected : one.stored)).length,
    };
  });
}

async function receiptOf(api: Api, { idempotencyKey }: Sent): Promise<Answer['body'] | undefined> {
  const { status, body } = await api.get(`/v1/requests?idempotency_key=${idempotencyKey}`);
  expect(status).toBe(200);
  expect(body.requests.length).toBeLessThan(2);
  if (body.requests.length === 0) return undefined;
  const receipt = await api.get(`/v1/requests/${body.requests[0].request_id}`);
  expect(receipt.status).toBe(200);
  return receipt.body;
}

/** Compares the receipt with the stored data, and returns how many of the batches are stored. */
function expectAgreement(
  upload: Sent,
  receipt: Answer['body'] | undefined,
  stored: Stored,
): [number, number] {
  const found = batchesFound(upload, receipt?.request_id, stored);
  const told = new Map<number, Batch>((receipt?.batches ?? []).map((one: Batch) => [one.batch, one]));
  const expected = found.map(({ batch, good, bad }) => {
    const counts = told.get(batch)?.data.counts;
    if (counts) expect([counts.created, counts.failed]).toEqual([good, bad]);
    return { batch, good, bad, created: counts ? good : 0, rejected: counts ? bad : 0, astray: 0 };
  });
  expect(found).toEqual(expected);
  if (receipt) {
    const missing = found.map(({ batch }) => batch).filter((batch) => !told.has(batch));
    expect([receipt.batch_count, receipt.missing_batches, receipt.complete]).toEqual([
      found.length,
      missing,
      missing.length === 0,
    ]);
  }
  // No acknowledged record is lost.
  for (const { body } of upload.answers)
    for (const batch of (body.batches ?? []) as Batch[])
      if (batch.status !== 500) expect(told.get(batch.batch)).toEqual(batch);
  return [told.size, found.length];
}

it(`a process killed ${kills} times leaves correct receipts, and every upload can be finished`, async () => {
  const all: Sent[] = [];
  await Promise.all(many(lanes, (lane) => runLane(lane, all)));
  const api = apiOf((await start(databaseUrl)).url, key);
  // The database ends the killed process's transactions as soon as it notices the closed connections.
  const busy = () =>
    queryDatabase(
      databaseUrl,
      `select from pg_stat_activity where datname = current_database() and application_name = 'intake-server'
           and xact_start is not null`,
    );
  await expect.poll(async () => (await busy()).length).toBe(0);

  const stored = await readStored();
  const outcome = { none: 0, some: 0, all: 0, answered: 0 };
  let rejectionsTold = 0;
  for (const upload of all) {
    const receipt = await receiptOf(api, upload);
    const [there, of] = expectAgreement(upload, receipt, stored);
    outcome[there === 0 ? 'none' : there < of ? 'some' : 'all']++;
    if (upload.answers.length > 0) outcome.answered++;
    for (const { data } of (receipt?.batches ?? []) as Batch[]) rejectionsTold += data.counts.failed!;
  }
  console.log(`after ${kills} kills, of ${all.length} uploads:`, outcome);
  // If this fails, the kills happened at the wrong moments, and the test proves nothing.
  expect(outcome.none).toBeGreaterThan(0);
  expect(outcome.some).toBeGreaterThan(0);
  expect(outcome.all).toBeGreaterThan(0);
  expect(stored.rejectionCount).toBe(rejectionsTold);
  expect((await overviewOf(api)).tags).toMatchObject({
    records: stored.tagCount,
    open_rejections: stored.rejectionCount,
  });

  for (const upload of all) {
    const first = await receiptOf(api, upload);
    const again = await send(api, upload);
    const batches = again.body.batches as Batch[];
    expect(batches.map(({ status }) => status)).not.toContain(500);
    for (const batch of (first?.batches ?? []) as Batch[]) expect(batches[batch.batch - 1]).toEqual(batch);
    if (first) expect(again.body.request_id).toBe(first.request_id);
    upload.answers.push(again);
  }
  const finished = await readStored();
  for (const upload of all) {
    const [there, of] = expectAgreement(upload, await receiptOf(api, upload), finished);
    expect(there).toBe(of);
  }
  const sent = all.flatMap(({ records }) => records);
  const good = sent.filter(({ name }) => name !== 7).length;
  expect([finished.tagCount, finished.rejectionCount]).toEqual([good, sent.length - good]);
  expect((await overviewOf(api)).tags).toMatchObject({
    records: good,
    open_rejections: sent.length - good,
  });
});
