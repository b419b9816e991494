// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { builtVersion } from '../../test/support/built-version.ts';
import { many, newShop, newTransaction } from '../../test/support/new-records.ts';
import { commands } from '../src/command/commands.ts';
import { Intake } from '../src/index.ts';
import { holdUploads } from './support/hold-uploads.ts';
import { feedIntake, type Place, runIntake, startIntake } from './support/run-intake.ts';

let server: SharedServer;
let key: string;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  key = await server.createKey(`command-${++made}`);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-command-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, text: string) => writeFileSync(join(place.cwd, name), text);
const read = (name: string) => readFileSync(join(place.cwd, name), 'utf8');

function csvOf(records: readonly object[]): string {
  const header = Object.keys(records[0] ?? {});
  return [header, ...records.map((record) => Object.values(record))]
    .map((row) => `${row.join(',')}\n`)
    .join('');
}

it('prints its version', async () => {
  expect(await runIntake(place, '--version')).toMatchObject({
    exitCode: 0,
    stdout: `${builtVersion}\n`,
    stderr: '',
  });
});

it('every command has help with examples; a typo is exit code 2 and does nothing', async () => {
  const { stdout } = await runIntake(place, '--help');
  const names = [...stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name = '']) => name);
  expect(names).toEqual(
    'login whoami fields map check upload status runs requests rejections export interactions changes report pull erase erasures access completion'.split(
      ' ',
    ),
  );
  for (const name of names) expect(commands[name]?.help).toMatch(/^Usage: intake [\s\S]+\nExamples:\n {2}/);
  const help = await runIntake(place, 'upload', '--help');
  expect(help).toEqual({ exitCode: 0, stdout: `${commands.upload?.help}\n`, stderr: '' });
  put('shops.csv', csvOf([newShop()]));
  const typo = await runIntake(place, 'upload', 'shops.csv', '--dryrun');
  expect(typo).toMatchObject({ exitCode: 2, stdout: '' });
  expect(typo.stderr).toBe(
    'Error: intake upload has no option --dryrun. Did you mean --dry-run? See intake upload --help.\n',
  );
  const status = await runIntake(place, 'requests', '--status', '500');
  expect(status.stderr).toBe('Error: --status must be one of 200, 207, 400, not 500.\n');
  expect(await intake.data.overview()).toEqual([]);
  expect((await runIntake(place, 'uplaod')).stderr).toBe(
    'Error: There is no command uplaod. Did you mean upload? See intake --help.\n',
  );
  expect((await runIntake(place, 'delete')).stderr).toContain('upload them with is_deleted set to true');
});

it('login stores address and key only for the user; the environment takes precedence', async () => {
  const bare = { ...place, env: { XDG_CONFIG_HOME: place.cwd } };
  const before = await runIntake(bare, 'whoami');
  expect(before).toMatchObject({ exitCode: 2, stdout: '' });
  expect(before.stderr).toContain('Run intake login');
  const wrong = await feedIntake(bare, 'intake_wrong\n', 'login', server.url);
  expect(wrong).toMatchObject({ exitCode: 2, stdout: '' });
  expect(wrong.stderr).toMatch(/does not accept this key\. Check that you copied all of it/);
  const said = async (address: string, input = `${key}\n`) =>
    (await feedIntake(bare, input, 'login', address)).stderr;
  const port = new URL(server.url).port;
  expect(await said(server.url, '\n')).toContain(
    'There is no key on standard input. Write it in the first line',
  );
  expect(await said(`127.0.0.1:${port}`)).toContain(`Write: intake login https://127.0.0.1:${port}`);
  expect(await said(`https://127.0.0.1:${port}`)).toContain('answers, but not with HTTPS');
  expect(await said(`${server.url}/docs`)).toContain(`Use the address without a path: ${server.url}`);
  expect(existsSync(join(place.cwd, 'intake/config.json'))).toBe(false);
  expect(await feedIntake(bare, `${key}\n`, 'login', server.url)).toMatchObject({ exitCode: 0 });
  expect(statSync(join(place.cwd, 'intake/config.json')).mode & 0o777).toBe(0o600);
  expect((await runIntake(bare, 'whoami')).stdout).toContain(server.url);
  const { stdout } = await runIntake(bare, 'whoami', '--json');
  expect(JSON.parse(stdout)).toEqual({
    url: server.url,
    key_id: key.split('_')[1],
    source: join(place.cwd, 'intake/config.json'),
  });
  const empty = { ...bare, env: { ...bare.env, INTAKE_URL: '', INTAKE_KEY: '' } };
  expect((await runIntake(empty, 'whoami')).stdout).toContain(server.url);
  const elsewhere = { ...bare, env: { ...bare.env, INTAKE_URL: 'http://127.0.0.1:9', INTAKE_KEY: key } };
  expect((await runIntake(elsewhere, 'whoami')).stderr).toContain('http://127.0.0.1:9');
  const withAddress = async (INTAKE_URL: string) =>
    (await runIntake({ ...place, env: { ...place.env, INTAKE_URL } }, 'whoami')).stderr;
  expect(await withAddress(`127.0.0.1:${port}`)).toContain('url must begin with http:// or https://');
  expect(await withAddress(`https://127.0.0.1:${port}`)).toContain(`or try ${server.url} if`);
  expect(await withAddress(`${server.url}/v1`)).toContain(
    `If the service is not below /v1, use ${server.url}.`,
  );
});

it('uploads referenced types first, in whatever order the files are named', async () => {
  const shops = many(3, () => newShop());
  put('shops.csv', csvOf(shops));
  put('transactions.csv', csvOf(shops.map(({ shop_id }) => newTransaction(shop_id))));
  const { exitCode, stdout, stderr } = await runIntake(place, 'upload', 'transactions.csv', 'shops.csv');
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout.replace(/[0-9a-f-]{36}/, '<id>')).toBe(
    [
      'File              Type          Records  Created  Failed',
      'shops.csv         shops               3        3       0',
      'transactions.csv  transactions        3        3       0',
      '',
      'Run transactions: intake runs <id>',
      '',
    ].join('\n'),
  );
  expect(existsSync(join(place.cwd, 'shops.csv.journal'))).toBe(false);
  const again = await runIntake(place, 'upload', '.', '--json');
  expect(JSON.parse(again.stdout)).toMatchObject({
    failed: 0,
    files: [{ counts: { unchanged: 3 } }, { counts: { unchanged: 3 } }],
  });
});

it('keeps failed records to be fixed and uploaded again, with the reasons', async () => {
  const shop = newShop();
  const missing = randomUUID();
  put('shops.csv', csvOf([shop]));
  const sales = [
    newTransaction(shop.shop_id),
    newTransaction(missing),
    newTransaction(shop.shop_id, { amount: 'a lot' }),
    newTransaction(missing),
    newTransaction(shop.shop_id, { amount: -1 }),
  ];
  const renamed = csvOf(sales).replace('shop_id', 'Shop number').replace('amount', 'Paid');
  put('transactions.csv', renamed);
  const map = ['--map', 'Shop number=shop_id', '--map', 'Paid=amount'];
  expect((await runIntake(place, 'upload', 'shops.csv')).exitCode).toBe(0);
  const { exitCode, stdout } = await runIntake(place, 'upload', 'transactions.csv', ...map);
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/transactions\.csv {2}transactions {8}5 {8}1 {7}4/);
  expect(stdout).toMatch(/ {4}2 {2}transactions {2}Shop number {2}.* \(first in line 3\)\n/);
  expect(stdout).toMatch(new RegExp(` {6}2 {2}shops {2}${missing}`));
  expect(stdout).toContain('transactions.csv.failed.csv');
  const failed = read('transactions.csv.failed.csv');
  const lines = failed.trimEnd().split('\n');
  expect(lines).toHaveLength(5);
  expect(lines[0]).toMatch(/^transaction_id,Shop number,region,savings,Paid,failed_reason$/);
  expect(lines[2]).toContain('Paid: ');
  expect(read('transactions.csv.failed.ndjson').trimEnd().split('\n')).toHaveLength(4);
  put(
    'transactions.csv.failed.csv',
    failed.replaceAll(missing, shop.shop_id).replace('a lot', '5').replace(',-1,', ',1,'),
  );
  const fixed = await runIntake(place, 'upload', 'transactions.csv.failed.csv', ...map);
  expect(fixed).toMatchObject({ exitCode: 0, stderr: '' });
  expect((await intake.data.overview()).find(({ type }) => type === 'transactions')?.records).toBe(5);
});

it('a dry run stores nothing and leaves no journal', async () => {
  put('shops.csv', csvOf([newShop()]));
  const { exitCode, stdout } = await runIntake(place, 'upload', 'shops.csv', '--dry-run');
  expect(exitCode).toBe(0);
  expect(stdout).toContain('nothing is stored');
  expect(await intake.data.overview()).toEqual([]);
});

it('in a dry run, records can refer to others that pass, and what would fail is ignored later', async () => {
  const [good, bad] = [newShop(), newShop({ region: 'GBR' })];
  put('shops.csv', csvOf([good, bad]));
  const sales = [good.shop_id.toUpperCase(), bad.shop_id, randomUUID()].map((id) => newTransaction(id));
  put('transactions.csv', csvOf(sales));
  const dry = await runIntake(place, 'upload', '.', '--dry-run');
  expect(dry.exitCode).toBe(1);
  expect(dry.stdout).toMatch(/shops\.csv +shops +2 +1 +1\ntransactions\.csv +transactions +3 +1 +2\n/);
  expect(dry.stdout).toMatch(/refers to a missing shop.* \(first in transactions\.csv:3\)\n/);
  expect(dry.stdout).toContain(
    'Records that would fail, with the reason:\n  shops.csv.dry-run.failed.ndjson\n',
  );
  expect(dry.stdout).not.toContain('upload either file');
  expect(await intake.data.overview()).toEqual([]);
  const real = await runIntake(place, 'upload', '.');
  expect(real).toMatchObject({ exitCode: 1, stderr: '' });
  expect(real.stdout.split('\n').slice(0, 3)).toEqual(dry.stdout.split('\n').slice(0, 3));
});

it('reports the lines of records that share an id', async () => {
  const [shop, twice, other] = many(3, () => newShop());
  put('shops.csv', csvOf([shop!, twice!, shop!, other!, twice!, shop!]));
  const { exitCode, stdout } = await runIntake(place, 'upload', 'shops.csv');
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/ 3 {2}shop_id {2}occurs more than once .*: lines 2, 4 and 7; lines 3 and 6\n/);
});

it('reads standard input', async () => {
  const shops = many(3, () => newShop());
  const ndjson = shops.map((shop) => `${JSON.stringify(shop)}\n`).join('');
  expect((await feedIntake(place, ndjson, 'upload', '-', '--type', 'shops')).exitCode).toBe(0);
  expect((await feedIntake(place, ndjson, 'upload', '-')).stderr).toContain('--type');
  expect((await feedIntake(place, ndjson, 'upload', '-', '--type', 'shops', '--resume')).exitCode).toBe(2);
});

it('Ctrl-C ends an upload, which --resume continues; not with another file or other options', async () => {
  const shops = many(30_000, () => newShop());
  put('shops.csv', csvOf(shops));
  const proxy = await holdUploads(server.url);
  const slow = { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
  const running = startIntake(slow, 'upload', 'shops.csv');
  const journal = join(place.cwd, 'shops.csv.journal');
  while (!existsSync(journal) || !readFileSync(journal, 'utf8').includes('"done"')) await sleep(5);
  running.kill('SIGINT');
  const { exitCode, stdout, stderr } = await running.ended;
  proxy.end();
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  expect(stderr).toContain('Run the same command with --resume');
  const other = await runIntake(slow, 'upload', 'shops.csv', '--resume', '--decimal-comma');
  expect(other.stderr).toContain('other options');
  const resumed = await runIntake(slow, 'upload', 'shops.csv', '--resume', '--json');
  expect(JSON.parse(resumed.stdout).files[0].counts).toMatchObject({ received: 30_000, created: 30_000 });
  writeFileSync(
    journal,
    `${JSON.stringify({ upload: 'a', service: server.url, reading: '', bytes: 1, modifiedMs: 1 })}\n{"done":1}\n`,
  );
  expect((await runIntake(place, 'upload', 'shops.csv', '--resume')).stderr).toContain('has changed');
});

it('reports what it waits for, and survives an outage of the service', async () => {
  // Nothing listens on port 2, and fetch does not block it, as it does port 9.
  const away = { ...place, env: { ...place.env, INTAKE_URL: 'http://127.0.0.1:2' } };
  put('shops.csv', csvOf([newShop()]));
  const running = startIntake(away, 'upload', 'shops.csv');
  await new Promise((resolve) => running.stderr?.once('data', resolve));
  running.kill('SIGTERM');
  const { exitCode, stderr } = await running.ended;
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(
    /^No answer from http:\/\/127\.0\.0\.1:2: connect ECONNREFUSED .*\. .* Trying again in \d+s\.\n/,
  );
  // The service has never received a request, so there is nothing to resume.
  expect(stderr).toMatch(/Interrupted\.\nNothing in shops\.csv was stored\.\n$/);
  expect(existsSync(join(place.cwd, 'shops.csv.journal'))).toBe(false);
});

it('check finds offline what an upload would, with file, line and column', async () => {
  put('shops.csv', csvOf([newShop(), newShop({ region: 'GBR' }), newShop({ name: '' })]));
  const offline = { ...place, env: {} };
  const { exitCode, stdout } = await runIntake(offline, 'check', 'shops.csv');
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/\n +1 +shops +region +must be .* \(in shops\.csv:3\)\n/);
  expect(stdout).toMatch(/\n +1 +shops +name +is required .*\(in shops\.csv:4\)\n/);
  const json = await runIntake(offline, 'check', 'shops.csv', '--json');
  expect(
    json.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { path: 'shops.csv', line: 3, column: 'region' },
    { path: 'shops.csv', line: 4, column: 'name', code: 'required' },
  ]);
  put('shops.csv', csvOf([newShop()]));
  expect((await runIntake(offline, 'check', '.')).exitCode).toBe(0);
  expect((await runIntake(offline, 'check', 'nowhere.csv')).exitCode).toBe(2);
});

it('status, requests, rejections and export show the data of the service', async () => {
  const shop = newShop({ name: 'Bread, "fresh"' });
  const late = newShop();
  await intake.upload('shops', [shop]).finish();
  await intake.upload('transactions', [newTransaction(late.shop_id), newTransaction(randomUUID())]).finish();
  expect((await runIntake(place, 'status')).stdout).toMatch(
    /^Type +Records +Rejections +Last upload\ntransactions +0 +2 .*\nshops +1 +0 /,
  );
  const requests = (await runIntake(place, 'requests', '--json')).stdout.trimEnd().split('\n');
  expect(requests).toHaveLength(2);
  const { request_id } = JSON.parse(requests[0] ?? '');
  expect(JSON.parse((await runIntake(place, 'requests', request_id)).stdout).status).toBe(400);
  expect((await runIntake(place, 'requests', '--status', '400')).stdout).toContain(request_id);
  expect((await runIntake(place, 'rejections', 'summary')).stdout).toMatch(
    /\n +2 +transactions +shop_id +reference_not_found/,
  );
  expect((await runIntake(place, 'rejections', '--json')).stdout.trimEnd().split('\n')).toHaveLength(2);
  const lists = (...filters: string[]) => runIntake(place, 'rejections', '--limit', '1', ...filters);
  expect((await lists()).stdout).toMatch(/\n\n1 of 2; --limit shows more\n$/);
  expect((await lists('--code', 'reference_not_found')).stdout).toMatch(
    /\n\nThe first 1; --limit shows more\n$/,
  );
  expect((await lists('--limit', '2')).stdout).not.toContain('--limit');
  await intake.upload('shops', [late]).finish();
  const replay = await runIntake(place, 'rejections', 'replay');
  expect(replay).toMatchObject({ exitCode: 1, stdout: '2 tried: 1 passed, 1 failed again.\n' });
  expect(await runIntake(place, 'rejections', 'discard')).toMatchObject({ exitCode: 2, stdout: '' });
  const discard = async (...filters: string[]) =>
    (await runIntake(place, 'rejections', 'discard', '--yes', ...filters)).stdout;
  expect(await discard('--request', randomUUID())).toBe('No rejections match.\n');
  expect(await discard()).toBe('1 removed.\n');
  const csv = await runIntake(place, 'export', 'shops', '--format', 'csv');
  expect(csv.stdout).toMatch(/^shop_id,name,region,is_public,created,updated,is_deleted\n/);
  put('shops.csv', csv.stdout);
  expect((await runIntake(place, 'upload', 'shops.csv')).stdout).toMatch(/shops\.csv +shops +2 +0 +2 +0/);
  const ndjson = await runIntake(place, 'export', 'shops');
  expect(
    ndjson.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).name)
      .sort(),
  ).toEqual(['Bread, "fresh"', 'Corner Bakery']);
  expect((await runIntake(place, 'export', 'labels')).exitCode).toBe(2);
  expect((await runIntake(place, 'export', 'shops', '--format', 'xml')).exitCode).toBe(2);
});

it('interactions tail prints the newest and follows, without older ones', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const record = () =>
    intake.record({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp: 1_700_000_000,
    });
  await record();
  const past = await record();
  const running = startIntake(place, 'interactions', 'tail', '--json', '--limit', '1');
  await new Promise((resolve) => running.stdout?.once('data', resolve));
  let printed = '';
  running.stdout?.on('data', (chunk) => (printed += chunk));
  const isPrinted = ({ interaction_id }: { interaction_id: string | null }) =>
    expect.poll(() => printed).toContain(interaction_id);
  const next = await record();
  const last = await record();
  await isPrinted(last);
  // Later polls must not print any of these interactions again.
  const end = await record();
  await isPrinted(end);
  running.kill('SIGINT');
  const { exitCode, stdout } = await running.ended;
  expect(exitCode).toBe(0);
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).interaction_id),
  ).toEqual([past, next, last, end].map(({ interaction_id }) => interaction_id));
});
