// @module-tag full

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { makeXlsx } from './files/make-xlsx.ts';
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

it('check groups problems by reason, with the first places of each, whatever file they are in', async () => {
  const rows = (from: number, count: number, region: string) =>
    Array.from({ length: count }, (_, at) => `${id(from + at)},Bakery,${region}\n`).join('');
  put('shops_1.csv', `shop_id,name,region\n${rows(1, 2, 'England')}${rows(3, 1, 'GB')}`);
  put('shops_2.csv', `shop_id,name,region\n${id(4)},,GB\n${rows(5, 40, 'England')}`);
  const { exitCode, stdout } = await runIntake(place, 'check', '.');
  expect(exitCode).toBe(1);
  const [files = '', reasons = '', kept, ...others] = stdout.split('\n\n');
  expect(others).toEqual([]);
  expect(kept).toMatch(
    /stored values are kept\nFile +Fields\nshops_1.csv +is_public, created, updated, is_deleted\n/,
  );
  expect(files).toMatch(/shops_1\.csv +shops +3 +2\nshops_2\.csv +shops +41 +41$/);
  expect(reasons.trimEnd().split('\n')).toEqual([
    'Why records would fail',
    expect.stringMatching(/^Count +Type +Column +Reason$/),
    expect.stringMatching(
      /^ +42 +shops +region +must be .*\(first in shops_1\.csv:2, shops_1\.csv:3, shops_2\.csv:3\)$/,
    ),
    expect.stringMatching(/^ +1 +shops +name +is required .*\(in shops_2\.csv:2\)$/),
  ]);
  const json = await runIntake(place, 'check', '.', '--json');
  expect(json.stdout.trimEnd().split('\n')).toHaveLength(43);
});

it('check reports ids that several records share, even in several files, and does not fail', async () => {
  const row = (at: number) => `${id(at)},Bakery,GB\n`;
  put('shops_1.csv', `shop_id,name,region\n${row(1)}${row(2)}${row(1).toUpperCase()}`);
  put('shops_2.csv', `shop_id,name,region\n${row(3)}${row(2)}${row(4)}`);
  const { exitCode, stdout } = await runIntake(place, 'check', '.');
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(
    / +2 +shops +shop_id +is also the id of an earlier record.* \(in shops_1\.csv:4 and line 2, shops_2\.csv:3 and shops_1\.csv:3\)\n/,
  );
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

it('check stops if a file lacks a column of the mapping file, and names the sheets that it does not read', async () => {
  const header = ['shop_id', 'Name', 'Land'];
  const shops = [header, [id(1), 'Bakery', 'Deutschland']];
  const path = makeXlsx('shops.xlsx', shops, { others: { Old: shops, Notes: [[]] } });
  const columns = { Name: 'name', Land: 'region' };
  const mapping = { shops: { columns, values: { Land: { Deutschland: 'DE' } } } };
  put('mapping.json', JSON.stringify(mapping));
  const checked = await runIntake(place, 'check', path, '--mapping', 'mapping.json');
  expect(checked.exitCode).toBe(0);
  expect(checked.stderr).toBe(
    `Warning: ${path}: only the first sheet is read. To read another, specify "sheet" in a mapping file: "Old"\n`,
  );
  put('mapping.json', JSON.stringify({ shops: { columns: { ...columns, Datum: 'created' }, sheet: 'Old' } }));
  const lacking = await runIntake(place, 'check', path, '--mapping', 'mapping.json');
  expect(lacking).toMatchObject({ exitCode: 2, stdout: '' });
  expect(lacking.stderr).toContain('the mapping file refers to the column "Datum"');
});

it('map suggests formats and values from the content, unless the files of a type differ', async () => {
  const header = 'transaction_id,shop_id,region,savings,amount,created';
  const row = (amount: string) => `${header}\n${id(1)},${id(2)},Deutschland,1,"${amount}",14.03.2026\n`;
  put('transactions.csv', row('12,5'));
  const made = await runIntake(place, 'map', '.');
  expect(made.stdout).toContain('"decimal_comma": true, because column "amount" has "12,5"');
  const first = JSON.parse(readFileSync(join(place.cwd, 'mapping.json'), 'utf8')).transactions;
  const values = { region: { Deutschland: 'DE' } };
  expect(first).toMatchObject({ date_format: 'dd.MM.yyyy', decimal_comma: true, values });
  expect(await runIntake(place, 'check', '.', '--mapping', 'mapping.json')).toMatchObject({ exitCode: 0 });
  // The files are read in the order of their names.
  for (const name of ['a-transactions.csv', 'z-transactions.csv']) {
    rmSync(join(place.cwd, 'mapping.json'));
    put(name, row('1.234'));
    const mixed = await runIntake(place, 'map', '.');
    expect(mixed.stdout).toContain('"decimal_comma" is left out, because other files of transactions are');
    const second = JSON.parse(readFileSync(join(place.cwd, 'mapping.json'), 'utf8')).transactions;
    expect(second).toMatchObject({ date_format: 'dd.MM.yyyy', values });
    expect(second).not.toHaveProperty('decimal_comma');
    rmSync(join(place.cwd, name));
  }
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
  expect(made.stdout).toContain('till/shops.csv: "id_from": ["Shop-ID"], because the column has "S001"');
  mapping.shops.columns.Country = 'region';
  put('till/mapping.json', JSON.stringify(mapping));
  const checked = await runIntake(place, 'check', 'till', '--mapping', 'till/mapping.json');
  expect(checked).toMatchObject({ exitCode: 0, stderr: '' });
  const again = await runIntake(place, 'map', 'till');
  expect(again).toMatchObject({ exitCode: 2 });
  expect(again.stderr).toContain('till/mapping.json already exists. Remove it');
});
