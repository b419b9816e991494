// @module-tag full

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { holdUploads } from './support/hold-uploads.ts';
import { mainFile, type Place, runIntake, startIntake } from './support/run-intake.ts';

let server: SharedServer;
let key: string;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  key = await server.createKey(`broken-${++made}`);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-broken-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, content: string | Uint8Array) => writeFileSync(join(place.cwd, name), content);
const has = (name: string) => existsSync(join(place.cwd, name));
const linesOf = (name: string) => readFileSync(join(place.cwd, name), 'utf8').trimEnd().split('\n');
const newTags = (count: number) => many(count, (at) => ({ tag_id: randomUUID(), name: `tag ${at}` }));
const csvOf = (tags: readonly { tag_id: string; name: string }[]) =>
  `tag_id,name\n${tags.map(({ tag_id, name }) => `${tag_id},${name}\n`).join('')}`;
const stored = async (wanted: string) =>
  (await intake.data.overview()).find(({ type }) => type === wanted)?.records ?? 0;

it('of a truncated JSON file everything before is uploaded; a complete one is resumed', async () => {
  const tags = newTags(2_000);
  const whole = JSON.stringify(tags, null, 1);
  put('tags.json', whole.slice(0, -40));
  put('shop-tags.csv', 'shop_tag_id,shop_id,tag_id\n');
  const { exitCode, stdout, stderr } = await runIntake(place, 'upload', '.');
  expect(exitCode).toBe(2);
  expect(stdout).toMatch(/tags\.json +tags +1,999 +1,999 +0/);
  expect(stderr).toMatch(
    /^Error: tags\.json: record 2000 is cut off; .*\nEverything before it was uploaded\. 1 more file was not started\. .* --resume\.\n$/,
  );
  expect(await stored('tags')).toBe(1_999);
  const again = await runIntake(place, 'upload', '.', '--resume');
  expect(again.exitCode).toBe(2);
  expect(again.stdout).toMatch(/tags\.json +tags +1,999 +1,999 +0/);
  put('tags.json', whole);
  const resumed = await runIntake(place, 'upload', '.', '--resume', '--json');
  expect(resumed).toMatchObject({ exitCode: 0, stderr: '' });
  expect(JSON.parse(resumed.stdout).files[0].counts).toMatchObject({ received: 2_000, created: 1 });
  expect(has('tags.json.journal')).toBe(false);
});

it('of a truncated gzip file every complete line is uploaded', async () => {
  const packed = gzipSync(csvOf(newTags(3_000)));
  put('tags.csv.gz', packed.subarray(0, packed.length - 1_000));
  const { exitCode, stdout, stderr } = await runIntake(place, 'upload', 'tags.csv.gz', '--json');
  expect(exitCode).toBe(2);
  const [{ counts, error }] = JSON.parse(stdout).files;
  expect(counts.created).toBeGreaterThan(2_900);
  expect(error).toContain(`after line ${counts.created + 1}: it cannot be decompressed`);
  expect(stderr).toContain(error);
  const check = await runIntake(place, 'check', 'tags.csv.gz');
  expect(check).toMatchObject({ exitCode: 2, stderr: `Error: ${error}\n` });
  expect(check.stdout).toMatch(/tags\.csv\.gz +tags +2,9\d\d +0/);
});

it('every header is checked before anything is sent', async () => {
  put('shops.csv', `shop_id,name,region\n${Object.values(newShop()).join(',')}\n`);
  put('tags.csv', 'Tag ID,name\n');
  put('transactions.csv', 'transaction_id,Shop ID\n');
  for (const command of ['upload', 'check']) {
    const { exitCode, stdout, stderr } = await runIntake(place, command, '.');
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain('tags.csv: column "Tag ID"');
    expect(stderr).toContain('transactions.csv: column "Shop ID"');
  }
  expect(await stored('shops')).toBe(0);
  expect(has('shops.csv.journal')).toBe(false);
});

it('--resume is refused with another key, and shows options as they were typed', async () => {
  put('tags.csv', csvOf(newTags(20_000)).replace('name', 'Label'));
  const map = ['--map', 'Label=name', '--decimal-comma'];
  const proxy = await holdUploads(server.url);
  place = { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
  const running = startIntake(place, 'upload', 'tags.csv', ...map);
  while (!has('tags.csv.journal') || !linesOf('tags.csv.journal').join().includes('"done"')) await sleep(2);
  running.kill('SIGINT');
  expect((await running.ended).exitCode).toBe(2);
  proxy.end();
  expect(linesOf('tags.csv.journal').join()).not.toContain(key.split('_')[2]);
  const otherKey = await server.createKey(`broken-${made}-other`);
  const other = { ...place, env: { ...place.env, INTAKE_KEY: otherKey } };
  const [id, otherId] = [key, otherKey].map((each) => each.split('_')[1]);
  expect((await runIntake(other, 'upload', 'tags.csv', '--resume', ...map)).stderr).toBe(
    `Error: The upload of tags.csv began with the key ${id}, and the key ${otherId} does not show its receipts. Use a key of the same organisation that may read data, or upload it again without --resume.\n`,
  );
  const { stderr } = await runIntake(place, 'upload', 'tags.csv', '--resume', '--map', 'Label=name');
  expect(stderr).toContain("began with other options: --map 'Label=name' --decimal-comma. Give");
  expect((await runIntake(place, 'upload', 'tags.csv', '--resume', ...map)).exitCode).toBe(0);
  expect(await stored('tags')).toBe(20_000);
});

it('a full disk ends an upload, and --resume loses nothing', async () => {
  const rows = newTags(6_000).map(({ tag_id, name }, at) => `${tag_id},${name},${at % 2 ? 'maybe' : 'no'}\n`);
  put('tags.csv', `tag_id,name,is_deleted\n${rows.join('')}`);
  // Writing past a file size limit fails like a full disk: part of a write succeeds, and the next write fails.
  const command = `ulimit -f 200; exec ${process.execPath} ${mainFile} upload tags.csv`;
  const full = await promisify(execFile)('bash', ['-c', command], place).catch((error) => error);
  expect(full).toMatchObject({ code: 2, stdout: '' });
  expect(full.stderr).toMatch(
    /tags\.csv\.failed\.\w+ cannot be written: .*\nEverything that was answered .* --resume to continue\.\n$/,
  );
  const { exitCode, stdout } = await runIntake(place, 'upload', 'tags.csv', '--resume', '--json');
  expect(exitCode).toBe(1);
  expect(JSON.parse(stdout).files[0]).toMatchObject({ unsent: 0, counts: { created: 3_000, failed: 3_000 } });
  const ids = rows.filter((_, at) => at % 2).map((row) => row.slice(0, 36));
  expect(linesOf('tags.csv.failed.ndjson').map((line) => JSON.parse(line).tag_id)).toEqual(ids);
  expect(
    linesOf('tags.csv.failed.csv')
      .slice(1)
      .map((line) => line.slice(0, 36)),
  ).toEqual(ids);
});

it('a record that could not be converted is kept with its other fields converted, with a message for a nonexistent date', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  put(
    'sales.csv',
    `transaction_id,Shop,region,savings,amount,created\n${randomUUID()},${shop.shop_id},GB,"2,5",a lot,14.03.2026\n` +
      `${randomUUID()},${shop.shop_id},GB,"2,5","7,1",30.02.2026\n${randomUUID()},${shop.shop_id},GB,"2,5","7,1",2026-02-30T09:00:00Z\n`,
  );
  const options = [
    '--type',
    'transactions',
    '--map',
    'Shop=shop_id',
    '--decimal-comma',
    '--date-format',
    'dd.MM.yyyy',
  ];
  expect((await runIntake(place, 'upload', 'sales.csv', ...options)).exitCode).toBe(1);
  const kept = linesOf('sales.csv.failed.ndjson').map((line) => JSON.parse(line));
  expect(kept[0]).toMatchObject({
    shop_id: shop.shop_id,
    savings: 2.5,
    amount: 'a lot',
    created: '2026-03-14T00:00:00Z',
  });
  expect(kept[1].failed_reason).toContain('created: is not a valid date or time in the format');
  expect(kept[2].failed_reason).toContain('created: is not a day in the calendar');
  const check = await runIntake(place, 'check', 'sales.csv', ...options);
  expect(check.stdout).toMatch(/ created +is not a day in the calendar.* \(in sales\.csv:4\)\n/);
  const fixed = kept.map((record) => ({ ...record, amount: 7, created: '2026-02-28T09:00:00Z' }));
  put('sales.csv.failed.ndjson', fixed.map((record) => `${JSON.stringify(record)}\n`).join(''));
  const again = await runIntake(place, 'upload', 'sales.csv.failed.ndjson', '--type', 'transactions');
  expect(again).toMatchObject({ exitCode: 0, stderr: '' });
});
