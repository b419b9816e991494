// @module-tag full

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import type { LocalPostgres } from '../../scripts/local-postgres.ts';
import { type Api, apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { type Change, FeedCopy, followFeed, readFeed } from '../support/change-feed.ts';
import { servingLogin } from '../support/database.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { readLines } from '../support/read-lines.ts';
import { runCommand } from '../support/run-command.ts';
import {
  killPostgres,
  standbyIsInstalled,
  standbyStatements,
  startPrimary,
  startStandby,
} from '../support/standby.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

/**
 * The primary is lost along with commits that its standby never received, and the standby then assigns the numbers of
 * the lost changes to new changes. A feed reader must get all stored data, or a 410.
 */

const running = new AsyncDisposableStack();
afterAll(() => running.disposeAsync());

async function startTwo(): Promise<{ primary: LocalPostgres; standby: LocalPostgres }> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-lossy-'));
  chmodSync(folder, 0o755);
  running.defer(() => rmSync(folder, { recursive: true, force: true }));
  const primary = await startPrimary(join(folder, 'first'));
  running.defer(() => primary.stop());
  const url = primary.url('postgres');
  const [createRole = ''] = standbyStatements;
  await queryDatabase(url, createRole);
  await runCommand(['migrate'], { DATABASE_URL: url });
  const { password } = new URL(url);
  await queryDatabase(url, `create role ${servingLogin} login password '${password}' in role intake_serve`);
  const standby = await startStandby(primary, join(folder, 'second'));
  running.defer(() => standby.stop());
  return { primary, standby };
}

/** Waits until the standby has received all commits so far, and then stops its replication. */
async function cutOff(primary: LocalPostgres, standby: LocalPostgres): Promise<void> {
  const [from, to] = [primary.url('postgres'), standby.url('postgres')];
  const [row] = await queryDatabase<{ lsn: string }>(from, 'select pg_current_wal_lsn() as lsn');
  const hasAll = async () =>
    (
      await queryDatabase<{ has: boolean }>(to, `select pg_last_wal_replay_lsn() >= $1::pg_lsn as has`, [
        row?.lsn,
      ])
    )[0]?.has;
  await expect.poll(hasAll).toBe(true);
  await queryDatabase(to, `alter system set primary_conninfo = ''`);
  await queryDatabase(to, 'select pg_reload_conf()');
  const followers = () => queryDatabase(from, 'select from pg_stat_replication');
  await expect.poll(followers).toEqual([]);
}

interface At {
  readonly url: string;
  readonly key: string;
  readonly api: Api;
}

/** Keeps a copy as described in docs/uploading/feed.md. After a 410, it starts again with an export. */
class Reader {
  copy = new FeedCopy();
  cursor: string | undefined;
  refusals = 0;
  readonly #at: At;

  constructor(at: At) {
    this.#at = at;
  }

  #take(change: Partial<Change> & { cursor: string }): void {
    if (change.type !== undefined) this.copy.apply(change as Change);
    this.cursor = change.cursor;
  }

  async #recover(error: unknown): Promise<void> {
    if (!String(error).includes('cursor_too_old')) return sleep(20);
    this.refusals++;
    this.copy = new FeedCopy();
    const { headers } = await readLines(`${this.#at.url}/v1/data/tags?include_deleted=true`, this.#at.key, {
      onLine: (line) => {
        const record = JSON.parse(line);
        this.copy.apply({ type: 'tags', id: record.tag_id, record });
      },
    });
    this.cursor = headers.get('changes-cursor') ?? undefined;
  }

  async follow(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const after = this.cursor === undefined ? {} : { after: this.cursor };
      try {
        for await (const line of followFeed(this.#at.url, this.#at.key, { ...after, signal: over }))
          this.#take(line);
      } catch (error) {
        if (!over.aborted) await this.#recover(error).catch(() => {});
      }
    }
  }

  async readPages(over: AbortSignal): Promise<void> {
    for (; !over.aborted; await sleep(20)) await this.#readOn().catch(() => {});
  }

  /** Reads until there are no more changes. */
  async drain(): Promise<void> {
    while (!(await this.#readOn()));
  }

  async #readOn(): Promise<boolean> {
    try {
      const { changes, cursor } = await readFeed(this.#at.api, { after: this.cursor, query: 'limit=7' });
      for (const change of changes) this.#take(change);
      this.cursor = cursor;
      return true;
    } catch (error) {
      await this.#recover(error);
      return false;
    }
  }
}

it.skipIf(!standbyIsInstalled)(
  'after a failover to a standby without the last commits, a reader gets everything that is stored, or a 410',
  async () => {
    const { primary, standby } = await startTwo();
    const proxy = await startTcpProxy(primary.url('postgres'));
    running.defer(() => proxy.close());
    const server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
    running.defer(() => server.stop());
    const key = await server.createKey('acme');
    const at = { url: server.url, key, api: apiOf(server.url, key) };
    const upload = async () =>
      (
        await at.api.upload(
          'tags',
          many(3, () => newTag()),
        )
      ).status;
    const uploadTimes = async (times: number) => {
      for (let time = 0; time < times; time++) expect(await upload()).toBe(200);
    };
    const over = new AbortController();
    const [streaming, paging, before, within, beyond] = many(5, () => new Reader(at));
    const reading = [streaming!.follow(over.signal), paging!.readPages(over.signal)];

    await uploadTimes(10);
    await before!.drain();
    await cutOff(primary, standby);
    await uploadTimes(10);
    // This reader reads again only when the log has more numbers than before the failover.
    await beyond!.drain();
    // This reader has read one record of the first change that will be lost.
    const { changes } = await readFeed(at.api, { after: before!.cursor });
    within!.cursor = changes[0]!.cursor;
    const sizes = () => [streaming, paging].map((reader) => reader!.copy.records.size);
    await expect.poll(sizes).toEqual([60, 60]);

    killPostgres(primary);
    await expect.poll(upload).toBe(503);
    await queryDatabase(standby.url('postgres'), 'select pg_promote()');
    proxy.leadTo(standby.url('postgres'));
    await expect.poll(upload).toBe(200);
    await uploadTimes(20);
    over.abort();
    await Promise.all(reading);

    const rows = await queryDatabase<{ tag_id: string }>(standby.url('postgres'), 'select tag_id from tags');
    const stored = rows.map(({ tag_id }) => `tags ${tag_id}`).toSorted();
    expect(stored.length).toBeGreaterThanOrEqual(90);
    for (const reader of [streaming!, paging!, before!, within!, beyond!]) {
      await reader.drain();
      expect([...reader.copy.records.keys()].toSorted()).toEqual(stored);
    }
    expect(before!.refusals).toBe(0);
    for (const reader of [streaming!, paging!, within!, beyond!]) expect(reader.refusals).toBe(1);
  },
);
