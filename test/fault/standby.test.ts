// @module-tag full

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import type { LocalPostgres } from '../../scripts/local-postgres.ts';
import { apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { servingLogin } from '../support/database.ts';
import { newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
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
 * Follows the "Standby" section in docs/operating/scaling.md, with its statements and its pg_basebackup command, on
 * separate clusters.
 */

const running = new AsyncDisposableStack();
afterAll(() => running.disposeAsync());

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'intake-standby-'));
  chmodSync(folder, 0o755);
  running.defer(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function started(starting: Promise<LocalPostgres>): Promise<LocalPostgres> {
  const cluster = await starting;
  running.defer(() => cluster.stop());
  return cluster;
}

it.skipIf(!standbyIsInstalled)(
  'a promoted standby has every acknowledged record, and no process is restarted',
  async () => {
    expect(standbyStatements).toHaveLength(4);
    const [createRole = '', waitForStandby = '', reload = '', promote = ''] = standbyStatements;
    const folder = makeFolder();
    const primary = await started(startPrimary(join(folder, 'first')));
    await queryDatabase(primary.url('postgres'), createRole);
    await queryDatabase(primary.url('postgres'), 'create database intake');
    const url = primary.url('intake');
    expect(await runCommand(['migrate'], { DATABASE_URL: url })).toMatchObject({ exitCode: 0 });
    const { password } = new URL(url);
    await queryDatabase(url, `create role ${servingLogin} login password '${password}' in role intake_serve`);
    const standby = await started(startStandby(primary, join(folder, 'second')));
    await queryDatabase(url, waitForStandby);
    await queryDatabase(url, reload);

    const proxy = await startTcpProxy(url);
    running.defer(() => proxy.close());
    const server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
    running.defer(() => server.stop());
    const api = apiOf(server.url, await server.createKey('acme'));
    const acknowledged: string[] = [];
    const upload = async () => {
      const tag = newTag();
      const { status } = await api.upload('tags', [tag]);
      if (status === 200) acknowledged.push(tag.tag_id);
      return status;
    };
    let isOver = false;
    const uploading = Array.from({ length: 4 }, async () => {
      while (!isOver) await sleep((await upload()) === 200 ? 10 : 50);
    });
    await expect.poll(() => acknowledged.length).toBeGreaterThan(50);

    killPostgres(primary);
    await expect.poll(upload).toBe(503);
    const before = acknowledged.length;
    await queryDatabase(standby.url('postgres'), promote);
    proxy.leadTo(standby.url('intake'));
    await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 50);
    isOver = true;
    await Promise.all(uploading);

    const stored = await queryDatabase<{ tag_id: string }>(standby.url('intake'), 'select tag_id from tags');
    const there = new Set(stored.map(({ tag_id }) => tag_id));
    expect(acknowledged.filter((id) => !there.has(id))).toEqual([]);
    expect(server.process.exitCode).toBeNull();
  },
);
