// @module-tag full

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { embeddedBinaries, type LocalPostgres, startLocalPostgres } from '../../scripts/local-postgres.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { type Change, FeedCopy, followFeed, readFeed } from '../support/change-feed.ts';
import { createTestDatabase } from '../support/database.ts';
import { disposable } from '../support/disposable.ts';
import { freePort } from '../support/free-port.ts';
import { type LocalPostmaster, localPostmaster } from '../support/local-postmaster.ts';
import { many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { readLines } from '../support/read-lines.ts';
import { runCommand } from '../support/run-command.ts';

/**
 * Readers keep copies from the feed while eight clients upload, and the service and its database are killed in turn.
 * Every acknowledged record must be read, no reader may see an older version after a newer one, and at the end every
 * copy must equal the stored data.
 */

const seconds = Number(process.env.FEED_SECONDS ?? 8);
const killEveryMs = 2_500;
const uploaders = 8;
const types = ['tags', 'shops', 'transactions', 'interactions'];

let folder: string | undefined;
let postgres: LocalPostgres | undefined;
let postmaster: LocalPostmaster | undefined;
let databaseUrl: string;
let key: string;
let port: string;
let server: BuiltServer;
let isOver = false;

/**
 * Starts a separate PostgreSQL server that the test can kill. A Citus cluster is shared, so there only the service is
 * killed.
 */
async function startDatabase(): Promise<string> {
  if (inject('citus') !== null) return createTestDatabase();
  folder = mkdtempSync(join(tmpdir(), 'intake-feed-'));
  chmodSync(folder, 0o755);
  // Even without fsync, data that a killed PostgreSQL server has written stays in the page cache.
  postgres = await startLocalPostgres(folder, embeddedBinaries(), disposable);
  const url = postgres.url('postgres');
  await runCommand(['migrate'], { DATABASE_URL: url });
  const { password } = new URL(url);
  await queryDatabase(url, `create role intake_test login password '${password}' in role intake_serve`);
  postmaster = await localPostmaster(url);
  return url;
}

beforeAll(async () => {
  databaseUrl = await startDatabase();
  port = String(await freePort());
  server = await startBuiltServer({ DATABASE_URL: databaseUrl, PORT: port });
  key = await server.createKey('acme');
});
afterAll(async () => {
  await server?.stop();
  await postmaster?.kill();
  await postgres?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Kills the service and the database in turn, and restarts them. */
async function killInTurn(): Promise<{ server: number; database: number }> {
  const kills = { server: 0, database: 0 };
  const endMs = performance.now() + seconds * 1_000;
  while (performance.now() < endMs) {
    await sleep(killEveryMs * (0.5 + Math.random()));
    if (postmaster && kills.database < kills.server) {
      await postmaster.kill();
      await postmaster.start();
      kills.database++;
    } else {
      const ended = once(server.process, 'exit');
      server.process.kill('SIGKILL');
      await ended;
      server = await startBuiltServer({ DATABASE_URL: databaseUrl, PORT: port });
      kills.server++;
    }
  }
  return kills;
}

/** All uploaders share these ids, so that they change each other's records. */
const shared = { tags: many(40, () => randomUUID()), shops: many(20, () => randomUUID()) };
const anyOf = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)]!;

/** The acknowledged records, as type and id. */
const acknowledged = new Set<string>();

async function storeSomething(api: Api): Promise<void> {
  const name = randomUUID();
  const some = <T>(make: () => T) => many(1 + Math.floor(Math.random() * 60), make);
  const isOld = () => Math.random() < 0.5;
  const batches = {
    tags: () =>
      some(() =>
        newTag({ name, is_deleted: Math.random() < 0.2, ...(isOld() && { tag_id: anyOf(shared.tags) }) }),
      ),
    shops: () => some(() => newShop({ name, ...(isOld() && { shop_id: anyOf(shared.shops) }) })),
    transactions: () => some(() => newTransaction(anyOf(shared.shops))),
  };
  const type = anyOf(types);
  const note = (ofType: string, id: unknown) => void acknowledged.add(`${ofType} ${id}`);
  if (type === 'interactions') {
    const event_timestamp = new Date().toISOString();
    const sent = {
      interaction_type: 'SHARE',
      item_type: 'TAG',
      item_id: anyOf(shared.tags),
      event_timestamp,
    };
    const { status, body } = await api.post('/user-interactions', sent);
    if (status === 201) note(type, body.interaction_id);
    return;
  }
  const records: Record<string, unknown>[] = batches[type as keyof typeof batches]();
  const { body } = await api.upload(type, records);
  const [batch] = body.batches ?? [];
  if (!batch || batch.status === 500) return;
  const failed = new Set(batch.data.errors.map(({ index }: { index: number }) => index));
  const id = type.replace(/s$/, '_id');
  for (const [index, record] of records.entries()) if (!failed.has(index)) note(type, record[id]);
}

async function upload(): Promise<void> {
  const api = apiOf(server.url, key);
  while (!isOver) await storeSomething(api).catch(() => sleep(50));
}

/** A reader that keeps a copy and its cursor, as a client should. */
class Reader {
  readonly copy = new FeedCopy();
  cursor: string | undefined;
  wentBack: string[] = [];
  interruptions = 0;

  take(change: Partial<Change> & { cursor: string }): void {
    if (this.cursor !== undefined && isBefore(change.cursor, this.cursor))
      this.wentBack.push(`${change.cursor} after ${this.cursor}`);
    if (change.type !== undefined) this.copy.apply(change as Change);
    this.cursor = change.cursor;
  }

  /** Follows the stream and reconnects when it is cut off. Sometimes the reader itself disconnects. */
  async follow(): Promise<void> {
    while (!isOver) {
      const hangUp = AbortSignal.timeout(500 + Math.floor(Math.random() * 4_000));
      const from = { ...(this.cursor !== undefined && { after: this.cursor }), signal: hangUp };
      try {
        for await (const line of followFeed(server.url, key, from)) {
          this.take(line);
          if (isOver) return;
        }
      } catch {
        this.interruptions++;
        await sleep(50);
      }
    }
  }

  async readPages(): Promise<void> {
    while (!isOver) {
      await this.drain().catch(() => this.interruptions++);
      await sleep(20);
    }
  }

  /** Reads until there are no more changes. */
  async drain(): Promise<void> {
    const { changes, cursor } = await readFeed(apiOf(server.url, key), {
      after: this.cursor,
      query: 'limit=300',
    });
    for (const change of changes) this.take(change);
    this.cursor = cursor;
  }

  /** Starts with exports of all types while uploads are running, and continues from the first export's cursor. */
  async beginWithExports(): Promise<void> {
    for (const type of types) {
      const path = type === 'interactions' ? '/user-interactions' : `/v1/data/${type}?include_deleted=true`;
      const id = type.replace(/s$/, '_id');
      for (let isRead = false; !isRead; ) {
        const lines: Record<string, unknown>[] = [];
        try {
          const { headers } = await readLines(server.url + path, key, {
            onLine: (line) => void lines.push(JSON.parse(line)),
          });
          this.cursor ??= headers.get('changes-cursor')!;
          for (const record of lines) this.copy.apply({ type, id: String(record[id]), record });
          isRead = true;
        } catch {
          this.interruptions++;
          await sleep(100);
        }
      }
    }
    await this.readPages();
  }
}

function isBefore(one: string, other: string): boolean {
  const [a = 0, b = 0] = one.split('-').map(Number);
  const [c = 0, d = 0] = other.split('-').map(Number);
  return a < c || (a === c && b < d);
}

/** Returns all stored records as the API returns them, by type and id. */
async function readStored(): Promise<Map<string, string>> {
  const all = new FeedCopy();
  for (const type of types) {
    const path = type === 'interactions' ? '/user-interactions' : `/v1/data/${type}?include_deleted=true`;
    await readLines(server.url + path, key, {
      onLine(line) {
        const record = JSON.parse(line);
        all.apply({ type, id: record[type.replace(/s$/, '_id')], record });
      },
    });
  }
  const [row] = await queryDatabase<{ count: number }>(
    databaseUrl,
    `select (${types.map((type) => `(select count(*) from ${type})`).join(' + ')})::integer as count`,
  );
  expect(all.records.size).toBe(row?.count);
  return all.records;
}

const sorted = (records: ReadonlyMap<string, string>) =>
  [...records].map((pair) => pair.join(' ')).toSorted();

it(`copies that are kept from the feed for ${seconds} seconds, while everything is killed in turn, equal the stored data`, {
  timeout: seconds * 1_000 + 300_000,
}, async () => {
  const seeded = apiOf(server.url, key);
  await seeded.upload(
    'tags',
    shared.tags.map((tag_id) => newTag({ tag_id })),
  );
  await seeded.upload(
    'shops',
    shared.shops.map((shop_id) => newShop({ shop_id })),
  );
  const [following, paging, hangingUp, exporting] = many(4, () => new Reader());
  const working = [
    ...many(uploaders, upload),
    following!.follow(),
    hangingUp!.follow(),
    paging!.readPages(),
    sleep(seconds * 300).then(() => exporting!.beginWithExports()),
  ];
  const kills = await killInTurn();
  isOver = true;
  await Promise.all(working);
  const readers = [following!, hangingUp!, paging!, exporting!];
  // The database may still be starting.
  await expect.poll(async () => (await seeded.get('/health/ready')).status).toBe(200);
  const stored = await readStored();
  for (const reader of readers) {
    await reader.drain();
    expect(reader.wentBack).toEqual([]);
    expect([...acknowledged].filter((one) => !reader.copy.records.has(one))).toEqual([]);
    expect(sorted(reader.copy.records)).toEqual(sorted(stored));
  }
  const interruptions = readers.map((reader) => reader.interruptions);
  console.log(`${stored.size} stored, ${acknowledged.size} acknowledged; kills`, kills, { interruptions });
  expect(acknowledged.size).toBeGreaterThan(30);
  expect(kills.server).toBeGreaterThan(0);
});
