// @module-tag full

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { type Place, runIntake } from './support/run-intake.ts';

/** This file tests typical user errors that are found before the service is reached. */

let place: Place;

beforeEach(() => {
  const cwd = mkdtempSync(join(tmpdir(), 'intake-offline-'));
  place = { cwd, env: { XDG_CONFIG_HOME: cwd } };
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, text: string | Uint8Array) => writeFileSync(join(place.cwd, name), text);
const id = (at: number) => deriveId('shops', [String(at)]);

it('all problems of all files are listed at once', async () => {
  put('shops.csv', 'Shop ID,name,region\n');
  put('tags.csv', 'name\n');
  put('sales.csv', '');
  const { exitCode, stderr } = await runIntake(place, 'check', '.', 'nowhere.csv');
  expect(exitCode).toBe(2);
  expect(stderr).toContain('sales.csv: its name contains no type');
  expect(stderr).toContain('nowhere.csv: there is no such file');
  expect(stderr).toContain(`column "Shop ID" is not a field of shops; did you mean shop_id?`);
  expect(stderr).toMatch(/tags\.csv: no column matches tag_id, .*; the columns are "name"\n/);
});

it('a file of another kind is recognised by its first bytes', async () => {
  const kinds = [
    ['shops.pdf', '%PDF-1.7\n', 'a PDF file, not CSV or NDJSON; export the records as CSV'],
    ['shops.png', Uint8Array.of(0x89, 0x50, 0x4e, 0x47), 'a PNG image, not'],
    ['shops.xls', Uint8Array.of(0xd0, 0xcf, 0x11, 0xe0), 'an old Excel file, not CSV or NDJSON; save it as'],
    ['shops.csv', 'PK\u0003\u0004', 'a ZIP archive; unpack it, or, if it is a spreadsheet, name it .xlsx'],
  ] as const;
  for (const [name, bytes] of kinds) put(name, bytes);
  const { exitCode, stderr } = await runIntake(place, 'check', ...kinds.map(([name]) => name));
  expect(exitCode).toBe(2);
  for (const [name, , message] of kinds) expect(stderr).toContain(`${name}: it is ${message}`);
});

it('all problems of a row are listed at once, including those after a cell that cannot be converted', async () => {
  put('transactions.csv', `transaction_id,shop_id,region,savings,amount\n${id(1)},S1,England,a lot,-5\n`);
  const { exitCode, stdout } = await runIntake(place, 'check', 'transactions.csv', '--json');
  expect(exitCode).toBe(1);
  const columns = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).column);
  expect(columns).toEqual(['savings', 'shop_id', 'region', 'amount']);
});

it('--map of a column that no file has is an error', async () => {
  put('shops.csv', `Shop ID,name,region\n${id(1)},Bakery,GB\n`);
  put('tags.csv', `Tag,name\n${id(1)},vegan\n`);
  const options = ['--map', 'Tag=tag_id', '--map', 'Shop Id=shop_id', '--map', 'Country=region'];
  const { exitCode, stderr } = await runIntake(place, 'check', '.', ...options);
  expect(exitCode).toBe(2);
  expect(stderr).toContain('--map refers to the column "Shop Id", which no file has; did you mean "Shop ID"');
  expect(stderr).toContain(
    '--map refers to the column "Country", which no file has; the columns are "Shop ID", "name", "region", "Tag"',
  );
  const good = await runIntake(place, 'check', '.', '--map', 'Tag=tag_id', '--map', 'Shop ID=shop_id');
  expect(good).toMatchObject({ exitCode: 0, stderr: '' });
});

it('lists the files of a folder that are not uploaded', async () => {
  put('shops.csv', `shop_id,name,region\n${id(1)},Bakery,GB\n`);
  put('notes.txt', '');
  mkdirSync(join(place.cwd, 'old'));
  const { exitCode, stderr } = await runIntake(place, 'check', '.');
  expect(exitCode).toBe(0);
  expect(stderr).toBe('Skipped: notes.txt (not a format that can be read), old (a folder)\n');
});

it('reports the detected encoding', async () => {
  put('shops.csv', Buffer.from(`shop_id,name,region\n${id(1)},Bäckerei,DE\n`, 'latin1'));
  const { exitCode, stderr } = await runIntake(place, 'check', 'shops.csv');
  expect(exitCode).toBe(0);
  expect(stderr).toContain('shops.csv is not UTF-8, so it is read as windows-1252.');
  expect(await runIntake(place, 'check', 'shops.csv', '--encoding', 'cp1252')).toMatchObject({
    exitCode: 0,
    stderr: '',
  });
});

it('check reports ids that several records share, even in several files, and does not fail', async () => {
  const row = (at: number) => `${id(at)},Bakery,GB\n`;
  put('shops_1.csv', `shop_id,name,region\n${row(1)}${row(2)}${row(1).toUpperCase()}`);
  put('shops_2.csv', `shop_id,name,region\n${row(3)}${row(2)}${row(4)}`);
  const { exitCode, stdout } = await runIntake(place, 'check', '.');
  expect(exitCode).toBe(0);
  expect(stdout).toContain(
    'shops_1.csv:4: shop_id: is also the id of line 2, so this record would replace that one',
  );
  expect(stdout).toContain('shops_2.csv:3: shop_id: is also the id of shops_1.csv:3');
  expect(stdout).toMatch(/Repeated ids\nshops_1\.csv +shops +3 +0 +1\nshops_2\.csv +shops +3 +0 +1\n/);
  const json = await runIntake(place, 'check', 'shops_1.csv', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ line: 4, column: 'shop_id', code: 'repeated_id' });
});

it('fields lists the fields of a type', async () => {
  const { exitCode, stdout } = await runIntake(place, 'fields', 'transactions');
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^Field +Value +Needed +Meaning\ntransaction_id +UUID +yes/);
  expect(stdout).toMatch(/\nshop_id +UUID +yes +must reference an existing record of `shops`\n/);
  expect(stdout).toMatch(/\namount +number +yes +what the student paid; greater than 0\n/);
  expect(stdout).toMatch(/\ncreated +date-time +when the record was created/);
  const interactions = await runIntake(place, 'fields', 'interactions', '--json');
  const fields = JSON.parse(interactions.stdout);
  expect(fields.find(({ field }: { field: string }) => field === 'platform')).toEqual({
    field: 'platform',
    value: 'ANDROID, IOS, WEB, OTHER',
    required: false,
    meaning: '',
  });
  expect((await runIntake(place, 'fields', 'shop')).stderr).toContain(
    'There is no record type shop. Use one of',
  );
});

it('map writes a mapping file, which upload and check accept once it is edited', async () => {
  mkdirSync(join(place.cwd, 'till'));
  put('till/shops.csv', 'Shop-ID,Name,Country,Colour\nS001,Bakery,GB,red\n');
  put('till/tags.ndjson', `{"id":"${id(1)}","name":"vegan"}\n`);
  const made = await runIntake(place, 'map', 'till');
  expect(made).toMatchObject({ exitCode: 0 });
  expect(made.stdout).toContain('intake check till --mapping till/mapping.json');
  expect(made.stdout).toContain('shops: no column matches region');
  const mapping = JSON.parse(readFileSync(join(place.cwd, 'till/mapping.json'), 'utf8'));
  expect(mapping).toEqual({
    shops: {
      columns: { 'Shop-ID': 'shop_id', Name: 'name', Country: '', Colour: '' },
      id_from: ['Shop-ID'],
    },
    tags: { columns: { id: 'tag_id', name: 'name' } },
  });
  mapping.shops.columns.Country = 'region';
  put('till/mapping.json', JSON.stringify(mapping));
  const checked = await runIntake(place, 'check', 'till', '--mapping', 'till/mapping.json');
  expect(checked).toMatchObject({ exitCode: 0, stderr: '' });
  const again = await runIntake(place, 'map', 'till');
  expect(again).toMatchObject({ exitCode: 2 });
  expect(again.stderr).toContain('till/mapping.json already exists. Remove it');
});
