// @module-tag full

import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { startHoldingProxy } from './support/http-proxy.ts';
import { runIntake, startIntake } from './support/run-intake.ts';

/**
 * To run the test manually with more interactions: INTERACTIONS=2000000 npx vitest run
 * client/test/resume-interactions.test.ts
 */
const count = Number(process.env.INTERACTIONS ?? 30_000);
const kills = 3;
/** The journal has two lines per 2,000 records, so this number spreads the kills over the file. */
const linesPerRun = Math.floor(count / 5_000);

let server: BuiltServer;

beforeAll(async () => {
  server = await startBuiltServer();
});

afterAll(() => server.stop());

/** Rows with mistakes that an exported file may contain. */
const dirt: readonly ((at: number) => string)[] = [
  (at) => `PAGE_VIEW,SHOP,S1,user-${at},yesterday`,
  (at) => `PAGE_VIEW,SHOP,S9,user-${at},${at + 1}`,
  (at) => `LOOK,SHOP,S1,user-${at},${at + 1}`,
  (at) => `PAGE_VIEW,HOUSE,S1,user-${at},${at + 1}`,
  (at) => `PAGE_VIEW,SHOP,,user-${at},${at + 1}`,
  (at) => `PAGE_VIEW,SHOP,S1,user-${at}`,
  (at) => `PAGE_VIEW,SHOP,S1,user-${at},0`,
  (at) => `${'x'.repeat(300)},SHOP,S1,user-${at},${at + 1}`,
];

function isDirty(at: number): boolean {
  return at % 997 === 5;
}

function rowOf(at: number): string {
  const make = dirt[Math.floor(at / 997) % dirt.length];
  if (isDirty(at) && make !== undefined) return make(at);
  // The times are in epoch seconds, in epoch milliseconds, in ISO 8601, and in the format given by --date-format.
  const times = [at + 1, 1_700_000_000_000 + at, '2026-03-14T09:26:53Z', '14.03.2026 09:26'];
  return `${at % 3 ? 'PAGE_VIEW' : 'SHARE'},SHOP,S1,"user-${at}",${times[at % 4]}`;
}

function writeRows(path: string): void {
  const file = openSync(path, 'w');
  writeSync(file, 'What,item_type,item_id,user_id,When\n');
  for (let at = 0; at < count; at += 1_000) {
    const rows = Array.from({ length: Math.min(1_000, count - at) }, (_, index) => rowOf(at + index));
    writeSync(file, `${rows.join('\n')}\n`);
  }
  closeSync(file);
}

function journalLines(path: string): number {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length : 0;
}

it(`${count} interactions from a dirty file are stored once each, although the upload is killed ${kills} times`, async () => {
  const key = await server.createKey('history');
  const intake = new Intake({ url: server.url, key });
  await intake.upload('shops', [newShop({ shop_id: deriveId('shops', ['S1']) })]).finish();
  const cwd = mkdtempSync(join(tmpdir(), 'intake-history-'));
  const path = join(cwd, 'interactions.csv');
  writeRows(path);
  const proxy = await startHoldingProxy(server.url);
  const place = { cwd, env: { INTAKE_URL: proxy.url, INTAKE_KEY: key } };
  const mapping = ['--map', 'What=interaction_type', '--map', 'When=event_timestamp'];
  const options = [...mapping, '--id-from', 'item_id', '--date-format', 'dd.MM.yyyy'];
  const began = performance.now();
  for (let killed = 0; killed < kills; killed++) {
    const before = journalLines(`${path}.journal`);
    const resumed = killed === 0 ? [] : ['--resume'];
    const running = startIntake(place, 'upload', 'interactions.csv', ...options, ...resumed);
    while (running.exitCode === null && journalLines(`${path}.journal`) < before + linesPerRun)
      await sleep(5);
    proxy.hold();
    expect(running.kill('SIGKILL')).toBe(true);
    expect(await running.ended).toMatchObject({ exitCode: null, stdout: '' });
    proxy.release();
  }
  const last = await runIntake(place, 'upload', 'interactions.csv', ...options, '--resume', '--json');
  const seconds = (performance.now() - began) / 1_000;
  expect(last.exitCode, last.stderr).toBe(1);
  console.info(`${Math.round(count / seconds)} interactions/s, the four starts included`);

  const dirty = Array.from({ length: count }, (_, at) => at).filter(isDirty);
  const [{ counts, unsent }] = JSON.parse(last.stdout).files;
  expect(counts.created).toBe(count - dirty.length);
  expect(counts.failed + unsent).toBe(dirty.length);
  const database = new Client(server.databaseUrl);
  await database.connect();
  const { rows } = await database.query(
    'select count(*)::int as all, count(distinct user_id)::int as users from interactions',
  );
  await database.end();
  expect(rows).toEqual([{ all: count - dirty.length, users: count - dirty.length }]);
  const kept = readFileSync(`${path}.failed.csv`, 'utf8').trimEnd().split('\n').slice(1);
  expect(kept.map((line) => Number(/(?:user-|x)(\d+)/.exec(line)?.[1]))).toEqual(dirty);
  expect(existsSync(`${path}.journal`)).toBe(false);
  await proxy.close();
  rmSync(cwd, { recursive: true });
}, 3_600_000);
