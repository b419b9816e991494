// @module-tag full

import { execFile } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { holdUploads } from './support/hold-uploads.ts';
import { type Fate, type Seen, startHttpProxy } from './support/http-proxy.ts';
import { mainFile, type Place, runIntake, startIntake } from './support/run-intake.ts';

/** This file tests uploads of files that are replaced, have several paths, or have odd contents. */

let server: SharedServer;
let key: string;
let shopId: string;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  key = await server.createKey(`odd-files-${++made}`);
  const shop = newShop();
  shopId = shop.shop_id;
  await new Intake({ url: server.url, key }).upload('shops', [shop]).finish();
  const cwd = mkdtempSync(join(tmpdir(), 'intake-odd-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  return () => rmSync(cwd, { recursive: true });
});

const header = 'interaction_type,item_type,item_id,user_id,event_timestamp\n';
const rowsOf = (count: number, user: string) =>
  many(count, (at) => `SHARE,SHOP,${shopId},${user} ${at},${at + 100_000}\n`).join('');
const put = (name: string, content: string | Uint8Array) => writeFileSync(join(place.cwd, name), content);
const names = () => readdirSync(place.cwd).toSorted();

async function countOf(): Promise<number> {
  const types = await new Intake({ url: server.url, key }).data.overview();
  return types.find(({ type }) => (type as string) === 'interactions')?.records ?? 0;
}

/** Returns a place whose first upload request waits until `change` has returned. */
async function changing(change: () => void): Promise<Place> {
  let isChanged = false;
  const proxy = await startHttpProxy(server.url, ({ method }: Seen): Fate => {
    if (method === 'POST' && !isChanged) change();
    isChanged ||= method === 'POST';
    return 'pass';
  });
  onTestFinished(() => proxy.close());
  return { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
}

it('a file that is replaced by another one while it is read is not taken for the first by --resume', async () => {
  put('interactions.csv', header + rowsOf(60_000, 'first'));
  const at = await changing(() => {
    put('new', header + rowsOf(80_000, 'second'));
    renameSync(join(place.cwd, 'new'), join(place.cwd, 'interactions.csv'));
  });
  const first = await runIntake(at, 'upload', 'interactions.csv');
  expect(first.exitCode).toBe(2);
  expect(first.stderr).toContain('it changed while it was read');
  const stored = await countOf();
  expect(stored).toBeLessThan(60_000);
  const resumed = await runIntake(at, 'upload', 'interactions.csv', '--resume');
  expect(resumed).toMatchObject({ exitCode: 2, stdout: '' });
  expect(resumed.stderr).toContain(
    `interactions.csv has changed since its upload began. ${stored} of its records are done`,
  );
  expect(await countOf()).toBe(stored);
});

it('a file that is replaced while --resume waits for the service is refused', async () => {
  put('interactions.csv', header + rowsOf(30_000, 'first'));
  let isReplaced = true;
  let uploads = 0;
  const body = JSON.stringify({ code: 'unauthorized', message: 'no' });
  const refused: Fate = { status: 401, body, type: 'application/json' };
  const proxy = await startHttpProxy(server.url, ({ method, headers }): Fate => {
    if (!isReplaced) put('interactions.csv', header + rowsOf(40_000, 'second'));
    isReplaced = true;
    return method !== 'POST' || (++uploads && /-0$/.test(String(headers['idempotency-key'])))
      ? 'pass'
      : refused;
  });
  onTestFinished(() => proxy.close());
  const at = { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
  expect(await runIntake(at, 'upload', 'interactions.csv')).toMatchObject({ exitCode: 2 });
  const stored = await countOf();
  uploads = 0;
  isReplaced = false;
  const resumed = await runIntake(at, 'upload', 'interactions.csv', '--resume');
  expect(resumed).toMatchObject({ exitCode: 2, stdout: '' });
  expect(resumed.stderr).toMatch(
    /interactions\.csv has changed since its upload began\. [1-9]\d* of its records/,
  );
  expect(isReplaced).toBe(true);
  expect({ uploads, stored: await countOf() }).toEqual({ uploads: 0, stored });
});

it('a file that is still being written is continued by --resume', async () => {
  put('interactions.csv', header + rowsOf(60_000, 'first'));
  const at = await changing(() =>
    appendFileSync(join(place.cwd, 'interactions.csv'), rowsOf(10_000, 'second')),
  );
  expect((await runIntake(at, 'upload', 'interactions.csv')).stderr).toContain(
    'it changed while it was read',
  );
  const resumed = await runIntake(at, 'upload', 'interactions.csv', '--resume', '--json');
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(JSON.parse(resumed.stdout).files[0].counts).toMatchObject({ received: 70_000, created: 70_000 });
  expect(await countOf()).toBe(70_000);
});

it('a file that has several paths is uploaded once', async () => {
  put('interactions.csv', header + rowsOf(100, 'visitor'));
  put('interactions-2.csv', header + rowsOf(10, 'visitor'));
  symlinkSync('interactions.csv', join(place.cwd, 'z-interactions.csv'));
  const paths = ['.', './interactions.csv', place.cwd, 'interactions-2.csv'];
  const { exitCode, stdout, stderr } = await runIntake(place, 'upload', ...paths, '--json');
  expect(exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout).files).toHaveLength(2);
  expect(stderr).toContain('z-interactions.csv (the same file as interactions.csv)');
  expect(await countOf()).toBe(110);
  expect(names()).toEqual(['interactions-2.csv', 'interactions.csv', 'z-interactions.csv']);
});

it('a symbolic link has the lock and the journal of its file', async () => {
  put('interactions.csv', header + rowsOf(3_000, 'visitor'));
  const links = join(place.cwd, 'links');
  mkdirSync(links);
  symlinkSync('../interactions.csv', join(links, 'interactions-1.csv'));
  let isStuck = true;
  const proxy = await startHttpProxy(server.url, ({ method }) =>
    isStuck && method === 'POST' ? 'cut after' : 'pass',
  );
  onTestFinished(() => proxy.close());
  const at = { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
  const running = startIntake(at, 'upload', 'interactions.csv');
  await expect.poll(countOf).toBe(3_000);
  const meanwhile = await runIntake(at, 'upload', 'links');
  expect(meanwhile.stderr).toContain(`is sending ${join(place.cwd, 'interactions.csv')}, as process`);
  running.kill('SIGKILL');
  await running.ended;
  const again = await runIntake(at, 'upload', 'links');
  expect(again.stderr).toContain('Continue it with --resume');
  isStuck = false;
  const resumed = await runIntake(at, 'upload', 'links/interactions-1.csv', '--resume');
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(await countOf()).toBe(3_000);
  expect(names()).toEqual(['interactions.csv', 'links']);
});

it('an upload that is resumed by another path keeps its failed records', async () => {
  const folder = join(place.cwd, 'exports');
  mkdirSync(folder);
  const failing = many(3, (at) => `SHARE,SHOP,${shopId},visitor ${at},yesterday\n`).join('');
  put('exports/interactions.csv', header + failing + rowsOf(30_000, 'visitor'));
  const proxy = await holdUploads(server.url);
  const held = { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
  const running = startIntake(held, 'upload', 'exports');
  const journal = join(folder, 'interactions.csv.journal');
  const isBegun = () => existsSync(journal) && readFileSync(journal, 'utf8').includes('"done"');
  while (running.exitCode === null && !isBegun()) await sleep(2);
  expect(running.kill('SIGKILL')).toBe(true);
  await running.ended;
  proxy.end();
  const there = { ...held, cwd: folder };
  const resumed = await runIntake(there, 'upload', 'interactions.csv', '--resume', '--json');
  expect(resumed.exitCode, resumed.stderr).toBe(1);
  const [file] = JSON.parse(resumed.stdout).files;
  expect(file.failed_files).toEqual(['interactions.csv.failed.ndjson', 'interactions.csv.failed.csv']);
  const kept = readFileSync(join(folder, 'interactions.csv.failed.csv'), 'utf8').trimEnd().split('\n');
  expect(kept.slice(1).map((line) => line.split(',')[3])).toEqual(['visitor 0', 'visitor 1', 'visitor 2']);
  expect(await countOf()).toBe(30_000);
});

it('a padded gzip file is continued by --resume', async () => {
  const rows = rowsOf(30_000, 'visitor');
  const half = rows.indexOf('\n', rows.length / 2) + 1;
  const members = [gzipSync(header + rows.slice(0, half)), gzipSync(rows.slice(half)), Buffer.alloc(1_000)];
  put('interactions.csv.gz', Buffer.concat(members));
  const proxy = await holdUploads(server.url);
  const held = { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
  const running = startIntake(held, 'upload', 'interactions.csv.gz');
  const journal = join(place.cwd, 'interactions.csv.gz.journal');
  const isBegun = () => names().length > 1 && readFileSync(journal, 'utf8').includes('"done"');
  while (running.exitCode === null && !(names().includes('interactions.csv.gz.journal') && isBegun()))
    await sleep(2);
  expect(running.kill('SIGKILL')).toBe(true);
  await running.ended;
  proxy.end();
  const resumed = await runIntake(held, 'upload', 'interactions.csv.gz', '--resume', '--json');
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(JSON.parse(resumed.stdout).files[0].counts).toMatchObject({ received: 30_000, created: 30_000 });
  expect(await countOf()).toBe(30_000);
});

it('a row that fails is kept with its separator characters, and can be corrected', async () => {
  const unknown = crypto.randomUUID();
  const rows = ['a\u001fb', '\u001f', '7\u001f3\u001fx', '"x, \u001f"'].map(
    (user) => `SHARE,SHOP,${unknown},${user},1\n`,
  );
  put('interactions.csv', header + rows.join('') + rowsOf(1, 'visitor'));
  expect((await runIntake(place, 'upload', 'interactions.csv')).exitCode).toBe(1);
  const failed = readFileSync(join(place.cwd, 'interactions.csv.failed.csv'), 'utf8').trimEnd().split('\n');
  expect(failed.slice(1).map((line, at) => line.startsWith(rows[at]?.trimEnd() ?? '-'))).toEqual(
    rows.map(() => true),
  );
  const ndjson = readFileSync(join(place.cwd, 'interactions.csv.failed.ndjson'), 'utf8')
    .trimEnd()
    .split('\n');
  const users = ['a\u001fb', '\u001f', '7\u001f3\u001fx', 'x, \u001f'];
  expect(ndjson.map((line) => JSON.parse(line).user_id)).toEqual(users);
  put('interactions-2.csv', `${failed.join('\n').replaceAll(unknown, shopId)}\n`);
  const corrected = await runIntake(place, 'upload', 'interactions-2.csv');
  expect(corrected.exitCode, corrected.stderr).toBe(0);
  const stored: unknown[] = [];
  for await (const { user_id } of new Intake({ url: server.url, key }).interactions.list())
    stored.push(user_id);
  expect(new Set(stored)).toEqual(new Set([...users, 'visitor 0']));
});

it('many files are uploaded with few file descriptors', async () => {
  for (let at = 0; at < 120; at++) put(`tags-${at}.csv`, `tag_id,name\n${crypto.randomUUID()},tag\n`);
  const command = `ulimit -n 64; exec ${process.execPath} ${mainFile} upload . --json`;
  const { stdout } = await promisify(execFile)('bash', ['-c', command], place);
  expect(JSON.parse(stdout).files).toHaveLength(120);
  expect(names().filter((name) => name.endsWith('.journal'))).toEqual([]);
});
