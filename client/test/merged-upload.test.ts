// @module-tag full

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { Intake } from '../src/index.ts';
import { type Place, runIntake } from './support/run-intake.ts';

let server: SharedServer;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  const key = await server.createKey(`merged-${++made}`);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-merged-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, ...lines: string[]) =>
  writeFileSync(join(place.cwd, name), lines.map((line) => `${line}\n`).join(''));

const [one, two] = [randomUUID(), randomUUID()];
const user = randomUUID();
const all = 'customer_id,user_id,region,birthdate,gender';

async function uploadAll(): Promise<void> {
  put('customers.csv', all, `${one},${user},GB,2004-02-29,f`, `${two},${user},GB,2005-01-01,m`);
  expect(await runIntake(place, 'upload', 'customers.csv')).toMatchObject({ exitCode: 0, stderr: '' });
}

it('an export without a column keeps its stored values, and an empty cell clears one', async () => {
  await uploadAll();
  put('customers.csv', 'customer_id,user_id,region,gender', `${one},${user},FR,f`, `${two},${user},FR,`);
  const { exitCode, stdout } = await runIntake(place, 'upload', 'customers.csv');
  expect(exitCode).toBe(0);
  expect(stdout).toContain('Fields without a column, whose stored values are kept');
  expect(stdout).toMatch(/customers\.csv +birthdate, institute_id, course_id, created, updated, is_deleted/);
  expect(await intake.data.get('customers', one)).toMatchObject({
    region: 'FR',
    birthdate: '2004-02-29',
    gender: 'f',
  });
  expect(await intake.data.get('customers', two)).toMatchObject({ birthdate: '2005-01-01', gender: null });
});

it('a file of ids and is_deleted marks records as deleted, and new records without their fields fail', async () => {
  await uploadAll();
  put('customers.csv', 'customer_id,is_deleted', `${one},yes`, `${randomUUID()},yes`);
  const { exitCode, stdout, stderr } = await runIntake(place, 'upload', 'customers.csv', '--json');
  expect(exitCode).toBe(1);
  expect(stderr).toContain('customers that are not stored yet will fail, because they need user_id, region');
  expect(JSON.parse(stdout)).toMatchObject({
    failed: 1,
    files: [{ counts: { updated: 1, failed: 1 }, kept_fields: expect.arrayContaining(['birthdate']) }],
    reasons: [{ code: 'required' }, { code: 'required' }],
  });
  const deleted = await intake.data.get('customers', one);
  expect(deleted).toMatchObject({ is_deleted: true, user_id: user, birthdate: '2004-02-29' });
});

it('fields that no record in JSON has are listed, and after --resume those of files that were finished before', async () => {
  await uploadAll();
  const record = (id: string, fields: object) => JSON.stringify({ customer_id: id, region: 'GB', ...fields });
  const kept = ['user_id', 'birthdate', 'institute_id', 'course_id', 'created', 'updated', 'is_deleted'];
  const keptIn = ({ stdout }: { stdout: string }) =>
    JSON.parse(stdout).files.map((file: { kept_fields: string[] }) => file.kept_fields);
  put('customers.ndjson', record(one, {}), record(two, { gender: null }), '{}');
  expect(keptIn(await runIntake(place, 'upload', 'customers.ndjson', '--json'))).toEqual([kept]);
  const { stdout } = await runIntake(place, 'check', 'customers.ndjson');
  expect(stdout).toMatch(/customers\.ndjson +user_id, birthdate, institute_id/);

  put('customers.ndjson', record(one, {}), record(two, { gender: null }));
  writeFileSync(join(place.cwd, 'shops.json'), '[{"shop_id"');
  const files = ['upload', 'customers.ndjson', 'shops.json', '--json'];
  expect(await runIntake(place, ...files)).toMatchObject({ exitCode: 2 });
  writeFileSync(join(place.cwd, 'shops.json'), '[]');
  const resumed = await runIntake(place, ...files, '--resume');
  expect(keptIn(resumed)).toEqual([kept, expect.arrayContaining(['name', 'region'])]);
});

it('JSON and failed records keep the difference between a field that is left out and null', async () => {
  await uploadAll();
  const records = [
    { customer_id: one, birthdate: null },
    { customer_id: two, gender: null, birthdate: 'never' },
  ];
  put('customers.ndjson', ...records.map((record) => JSON.stringify(record)));
  expect(await runIntake(place, 'upload', 'customers.ndjson')).toMatchObject({ exitCode: 1 });
  expect(await intake.data.get('customers', one)).toMatchObject({ birthdate: null, gender: 'f' });
  const failed = readFileSync(join(place.cwd, 'customers.ndjson.failed.ndjson'), 'utf8');
  put('customers.ndjson', failed.trimEnd().replace('never', '2005-02-02'));
  expect(await runIntake(place, 'upload', 'customers.ndjson')).toMatchObject({ exitCode: 0 });
  const corrected = await intake.data.get('customers', two);
  expect(corrected).toMatchObject({ birthdate: '2005-02-02', gender: null, region: 'GB' });
});

it('--replace shows which stored values it would clear, and stores nothing until that is confirmed', async () => {
  await uploadAll();
  put('customers.csv', 'customer_id,user_id,region', `${one},${user},GB`, `${two},${user},FR`);
  const replace = (...options: string[]) =>
    runIntake(place, 'upload', 'customers.csv', '--replace', ...options);
  const refused = await replace();
  expect(refused).toMatchObject({ exitCode: 2 });
  expect(refused.stderr).toContain('so nothing was stored: birthdate of 2 customers, gender of 2 customers');
  expect(refused.stderr).toContain('Add --yes');
  expect(await intake.data.get('customers', two)).toMatchObject({ region: 'GB', gender: 'm' });
  const dryRun = await replace('--dry-run', '--json');
  expect(JSON.parse(dryRun.stdout)).toMatchObject({
    cleared: [
      { type: 'customers', field: 'birthdate', count: 2 },
      { type: 'customers', field: 'gender', count: 2 },
    ],
  });
  expect(await replace('--yes')).toMatchObject({ exitCode: 0 });
  expect(await intake.data.get('customers', two)).toMatchObject({ region: 'FR', gender: null });
  // Nothing is left to clear.
  expect(await replace()).toMatchObject({ exitCode: 0 });
});

it('--replace asks about records that refer to another file of the upload', async () => {
  const [shop, later, transaction] = [randomUUID(), randomUUID(), randomUUID()];
  const columns = 'transaction_id,shop_id,region,savings,amount';
  put('shops.csv', 'shop_id,name,region', `${shop},Tea House,GB`);
  put('transactions.csv', `${columns},source`, `${transaction},${shop},GB,1,2,online`);
  const files = ['upload', 'shops.csv', 'transactions.csv'];
  expect(await runIntake(place, ...files)).toMatchObject({ exitCode: 0 });
  put('shops.csv', 'shop_id,name,region', `${later},Tea Room,GB`);
  put('transactions.csv', columns, `${transaction},${later},GB,1,2`);
  const refused = await runIntake(place, ...files, '--replace');
  expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('source of 1 transactions') });
});

it('--replace needs a file that can be read twice, and all required columns', async () => {
  expect(await runIntake(place, 'upload', '-', '--type', 'shops', '--replace')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('standard input can be read only once'),
  });
  put('customers.csv', 'customer_id,is_deleted', `${one},yes`);
  for (const command of ['upload', 'check'])
    expect(await runIntake(place, command, 'customers.csv', '--replace')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('no column matches user_id'),
    });
});

it('--replace asks again for files that were not begun, and never after a file that is cut off', async () => {
  await uploadAll();
  const rows = ['customer_id,user_id,region', `${one},${user},GB`];
  writeFileSync(join(place.cwd, 'customers.csv'), `${rows.join('\n')}\n${two},"${user}`);
  const cutOff = await runIntake(place, 'upload', 'customers.csv', '--replace');
  expect(cutOff).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('Nothing was stored') });
  expect(await intake.data.get('customers', one)).toMatchObject({ gender: 'f' });
  // With the answer given, it ends at the same place. The whole file is another one.
  expect(await runIntake(place, 'upload', 'customers.csv', '--replace', '--yes')).toMatchObject({
    exitCode: 2,
  });
  put('customers.csv', ...rows, `${two},${user},GB`);
  const resumed = await runIntake(place, 'upload', 'customers.csv', '--replace', '--resume');
  expect(resumed).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('Add --yes') });
  expect(await intake.data.get('customers', two)).toMatchObject({ gender: 'm' });
  const merged = await runIntake(place, 'upload', 'customers.csv', '--resume');
  expect(merged).toMatchObject({ exitCode: 0 });
  expect(await intake.data.get('customers', two)).toMatchObject({ gender: 'm' });
});
