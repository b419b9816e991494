// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Connection } from '../src/connection.ts';
import { Intake, type Interaction } from '../src/index.ts';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { startHttpProxy } from './support/http-proxy.ts';
import { type Place, runIntake, startIntake } from './support/run-intake.ts';

/**
 * This file tests uploading interactions from files. Interactions have no ids, so sending them twice would store them twice.
 */

let server: SharedServer;
let key: string;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  key = await server.createKey(`interactions-${++made}`);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-interactions-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, text: string) => writeFileSync(join(place.cwd, name), text);
const read = (name: string) => readFileSync(join(place.cwd, name), 'utf8');
const linesOf = (name: string) => (existsSync(join(place.cwd, name)) ? read(name).trimEnd().split('\n') : []);

async function stored(): Promise<Interaction[]> {
  const found: Interaction[] = [];
  for await (const one of intake.interactions.list({ limit: 1000 })) found.push(one);
  return found.toReversed();
}

async function countOf(): Promise<number> {
  const types = await intake.data.overview();
  return types.find(({ type }) => (type as string) === 'interactions')?.records ?? 0;
}

it('a CSV of interactions is mapped, converted and uploaded after its references', async () => {
  put('shops.csv', 'shop_id,name,region\nS1,Bakery,GB\n');
  put('tags.csv', 'tag_id,name\nS1,vegan\n');
  put(
    'interactions.csv',
    [
      'What,item_type,item_id,Visitor,platform,When',
      'PAGE_VIEW,SHOP,S1,v1,WEB,1700000000',
      'PAGE_VIEW,TAG,S1,v2,,1700000000123',
      'SHARE,SHOP,S1,,IOS,2026-03-14T09:26:53.000001Z',
      'SHARE,SHOP,S1,,IOS,14.03.2026 09:26',
      'PAGE_VIEW,SHOP,S9,v1,WEB,1700000000',
      'PAGE_VIEW,HOUSE,S1,v1,WEB,1700000000',
      'PAGE_VIEW,SHOP,S1,v1,WEB,yesterday',
      '',
    ].join('\n'),
  );
  const options = [
    '--map',
    'What=interaction_type',
    '--map',
    'Visitor=user_id',
    '--map',
    'When=event_timestamp',
  ];
  const more = ['--id-from', 'Receipt', '--date-format', 'dd.MM.yyyy'];
  const checked = await runIntake(place, 'check', 'interactions.csv', ...options, ...more);
  expect(checked).toMatchObject({ exitCode: 1 });
  expect(checked.stdout).toMatch(
    / item_type +must be one of TAG, OFFER, SHOP, KEYWORD.* \(in interactions\.csv:7\)\n/,
  );
  expect(checked.stdout).toMatch(
    / When +must be a date written as dd\.MM\.yyyy.*epoch seconds.* \(in interactions\.csv:8\)\n/,
  );
  const dry = await runIntake(place, 'upload', '.', '--dry-run', ...options, ...more);
  expect(dry.exitCode).toBe(1);
  expect(await countOf()).toBe(0);
  const { exitCode, stdout } = await runIntake(place, 'upload', '.', ...options, ...more);
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/tags\.csv .*\ninteractions\.csv +interactions +7 +4 +3\n/);
  expect(stdout).toMatch(/Missing ids\nRecords +Type +Id +Key in the file\n +1 +shops +[0-9a-f-]{36} +S9\n/);
  const shop = deriveId('shops', ['S1']);
  const tag = deriveId('tags', ['S1']);
  expect((await stored()).map((one) => [one.item_id, one.event_timestamp, one.user_id])).toEqual([
    [shop, 1_700_000_000, deriveId('users', ['v1'])],
    [tag, 1_700_000_000_123, deriveId('users', ['v2'])],
    [shop, '2026-03-14T09:26:53.000001Z', null],
    [shop, '2026-03-14T09:26:00Z', null],
  ]);
  const failed = linesOf('interactions.csv.failed.csv');
  expect(failed.map((line) => line.split(',')[2])).toEqual(['item_id', 'S9', 'S1', 'S1']);
  expect(existsSync(join(place.cwd, 'interactions.csv.journal'))).toBe(false);
});

it('an export as NDJSON or CSV has every interaction, newest first, and can be uploaded elsewhere', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const rows = many(2_500, (at) => `PAGE_VIEW,SHOP,${shop.shop_id},${at + 1}\n`);
  put('interactions.csv', `interaction_type,item_type,item_id,event_timestamp\n${rows.join('')}`);
  expect(await runIntake(place, 'upload', 'interactions.csv')).toMatchObject({ exitCode: 0 });
  const lines = (await runIntake(place, 'export', 'interactions')).stdout.trimEnd().split('\n');
  const exported: Interaction[] = lines.map((line) => JSON.parse(line));
  const ids = exported.map(({ interaction_id }) => interaction_id);
  expect(ids).toEqual(ids.toSorted().toReversed());
  // Requests are sent concurrently, so interactions may be stored in a different order from the file.
  const times = exported.map(({ event_timestamp }) => Number(event_timestamp)).sort((a, b) => a - b);
  expect(times).toEqual(many(2_500, (at) => at + 1));
  const { stdout } = await runIntake(place, 'export', 'interactions', '--format', 'csv');
  put('interactions.csv', stdout);
  const other = await server.createKey(`interactions-${made}-other`);
  const elsewhere = { ...place, env: { ...place.env, INTAKE_KEY: other } };
  await new Intake({ url: server.url, key: other }).upload('shops', [shop]).finish();
  const again = await runIntake(elsewhere, 'upload', 'interactions.csv');
  expect(again).toMatchObject({ exitCode: 0 });
  expect(again.stderr).toContain('not sent: interaction_id, event_time, created');
  const since = await runIntake(elsewhere, 'export', 'interactions', '--since', '2100-01-01T00:00:00Z');
  expect(since).toMatchObject({ exitCode: 0, stdout: '' });
});

const header = 'interaction_type,item_type,item_id,event_timestamp\n';

/** Uploads 9,000 rows. The response to the third request is lost, and then the command is killed. */
async function interrupted() {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const rows = many(
    9_000,
    (at) => `PAGE_VIEW,SHOP,${at % 100 === 7 ? randomUUID() : shop.shop_id},${at + 1}\n`,
  );
  put('interactions.csv', header + rows.join(''));
  let isLost = true;
  const proxy = await startHttpProxy(server.url, async ({ url, body }) => {
    const isThird = url.startsWith('/user-interactions/batch') && body.includes('"event_timestamp":4001}');
    if (!isThird || !isLost) return 'pass';
    return 'cut after';
  });
  const through = { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
  const running = startIntake(through, 'upload', 'interactions.csv');
  // Wait until all valid rows are stored and the journal has two answered requests.
  await expect.poll(countOf).toBe(8_910);
  while (linesOf('interactions.csv.journal').filter((line) => line.includes('"done"')).length < 2)
    await sleep(5);
  running.kill('SIGKILL');
  await running.ended;
  isLost = false;
  return { proxy, through };
}

it('an upload whose answers were lost is resumed, and nothing is stored twice', async () => {
  const { proxy, through } = await interrupted();
  const again = await runIntake(through, 'upload', 'interactions.csv');
  expect(again).toMatchObject({ exitCode: 2, stdout: '' });
  expect(again.stderr).toContain('Continue it with --resume');
  const { exitCode, stdout } = await runIntake(through, 'upload', 'interactions.csv', '--resume', '--json');
  expect(exitCode).toBe(1);
  expect(JSON.parse(stdout).files[0].counts).toMatchObject({ received: 9_000, created: 8_910, failed: 90 });
  expect(await countOf()).toBe(8_910);
  expect(linesOf('interactions.csv.failed.csv')).toHaveLength(91);
  const times = (await stored()).map(({ event_timestamp }) => event_timestamp);
  expect(new Set(times).size).toBe(8_910);
  await proxy.close();
});

/** Changes how many hours ago the requests in the journal were sent, by this computer's clock and by the service's. */
function setAge(hours: number, hoursAtService: number): void {
  const msAgo = (count: number) => Date.now() - count * 3_600_000;
  const aged = linesOf('interactions.csv.journal').map((line) => {
    const parsed = JSON.parse(line);
    const times = { atMs: msAgo(hours), serviceMs: msAgo(hoursAtService) };
    return JSON.stringify({ ...parsed, ...('atMs' in parsed && times) });
  });
  put('interactions.csv.journal', `${aged.join('\n')}\n`);
}

it('a day later an upload whose answers were lost is not resumed, because its keys have expired', async () => {
  const { proxy, through } = await interrupted();
  const hours = (count: number) => setAge(count, count);
  hours(24);
  const before = proxy.seen.length;
  const late = await runIntake(through, 'upload', 'interactions.csv', '--resume');
  expect(late).toMatchObject({ exitCode: 2, stdout: '' });
  expect(late.stderr).toMatch(/records 4001 to 9000 were sent at .* without an answer/);
  const advice = [...late.stderr.matchAll(/^ {2}intake (requests --idempotency-key \S+-(\d+))$/gm)];
  expect(advice.map(([, , first]) => first)).toEqual(['4000', '6000', '8000']);
  const { stdout: receipts } = await runIntake(through, ...(advice[0]?.[1] ?? '').split(' '));
  expect(receipts).toMatch(/interactions +upload +207 +2,000 +20 +[0-9a-f-]{36}\n$/);
  expect(late.stderr).toMatch(/remove interactions\.csv\.journal/);
  expect(proxy.seen.slice(before).filter(({ method }) => method === 'POST')).toEqual([]);
  expect(await countOf()).toBe(8_910);
  hours(23);
  expect(await runIntake(through, 'upload', 'interactions.csv', '--resume')).toMatchObject({ exitCode: 1 });
  expect(await countOf()).toBe(8_910);
  await proxy.close();
});

it('the age of a request is measured by the service, because this clock may have been wrong', async () => {
  const { proxy, through } = await interrupted();
  const noted = linesOf('interactions.csv.journal').map((line) => JSON.parse(line));
  for (const { serviceMs } of noted.filter((line) => 'sent' in line))
    expect(Math.abs(Date.now() - serviceMs)).toBeLessThan(600_000);
  // The clock was 10 hours ahead and has been corrected.
  setAge(16, 26);
  const before = proxy.seen.length;
  const late = await runIntake(through, 'upload', 'interactions.csv', '--resume');
  expect(late).toMatchObject({ exitCode: 2, stdout: '' });
  expect(late.stderr).toMatch(/records 4001 to 9000 were sent at .* without an answer/);
  expect(proxy.seen.slice(before).filter(({ method }) => method === 'POST')).toEqual([]);
  setAge(-9, 1);
  expect(await runIntake(through, 'upload', 'interactions.csv', '--resume')).toMatchObject({ exitCode: 1 });
  expect(await countOf()).toBe(8_910);
  await proxy.close();
});

it('a truncated file is continued when it is complete, and refused when it is another', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const rows = many(12_000, (at) => `PAGE_VIEW,SHOP,${shop.shop_id},${at + 1}\n`);
  const whole = gzipSync(header + rows.join(''));
  writeFileSync(join(place.cwd, 'interactions.csv.gz'), whole.subarray(0, whole.length / 2));
  const broken = await runIntake(place, 'upload', 'interactions.csv.gz');
  expect(broken).toMatchObject({ exitCode: 2 });
  expect(broken.stderr).toContain('Replace the file with a complete one and run the same command');
  const before = await countOf();
  expect(before).toBeGreaterThan(1_000);
  writeFileSync(join(place.cwd, 'interactions.csv.gz'), gzipSync(header + rows.toReversed().join('')));
  const other = await runIntake(place, 'upload', 'interactions.csv.gz', '--resume');
  expect(other).toMatchObject({ exitCode: 2, stdout: '' });
  expect(other.stderr).toContain(`${before} of its records are done`);
  writeFileSync(join(place.cwd, 'interactions.csv.gz'), whole);
  const { exitCode, stdout, stderr } = await runIntake(
    place,
    'upload',
    'interactions.csv.gz',
    '--resume',
    '--json',
  );
  expect(exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout).files[0].counts).toMatchObject({ received: 12_000, created: 12_000 });
  expect(await countOf()).toBe(12_000);
  expect(existsSync(join(place.cwd, 'interactions.csv.gz.journal'))).toBe(false);
});

it('a request is not sent again after its key has expired', async () => {
  const proxy = await startHttpProxy(server.url, () => 'cut after');
  const connection = new Connection({ url: proxy.url, key });
  const body = JSON.stringify({ records: [] });
  const call = { method: 'POST', path: '/user-interactions/batch', body } as const;
  await expect(connection.request({ ...call, resendUntilMs: Date.now() })).rejects.toMatchObject({
    code: 'connection_failed',
  });
  expect(proxy.seen).toHaveLength(1);
  await proxy.close();
});

it('NDJSON may have keys, and the summary shows the key of a missing record', async () => {
  await intake.upload('shops', [newShop({ shop_id: deriveId('shops', ['7']) })]).finish();
  const lines = [
    { interaction_type: 'SHARE', item_type: 'SHOP', item_id: 7, event_timestamp: 1 },
    { interaction_type: 'SHARE', item_type: 'SHOP', item_id: '8', event_timestamp: 2 },
  ];
  put('clicks.ndjson', lines.map((line) => JSON.stringify(line)).join('\n'));
  const { exitCode, stdout } = await runIntake(
    place,
    ...['upload', 'clicks.ndjson', '--type', 'interactions', '--id-from', 'item_id', '--json'],
  );
  expect(exitCode).toBe(1);
  const { files, missing } = JSON.parse(stdout);
  expect(files[0].counts).toMatchObject({ created: 1, failed: 1 });
  expect(missing).toMatchObject([{ type: 'shops', id: deriveId('shops', ['8']), key: '8', count: 1 }]);
});
