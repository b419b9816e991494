import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { suggestType } from '../../client/src/parsing/columns/suggest-columns.ts';
import { makeXlsx } from '../../client/test/files/make-xlsx.ts';
import {
  absentFields,
  complaintsAbout,
  type DescribedFile,
  describeFile,
  type Settings,
  suggestSettings,
} from '../src/screens/upload-file/rows/describe-file.ts';
import { FailedRows, rowsKeptMax } from '../src/screens/upload-file/rows/failed-rows.ts';
import { RowChecker } from '../src/screens/upload-file/rows/row-checker.ts';
import { restName, restOf } from '../src/screens/upload-file/rows/save-rest.ts';
import { inScreenWords } from '../src/screens/upload-file/rows/screen-words.ts';

const shopId = '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01';

async function described(name: string, text: string | Uint8Array<ArrayBuffer>): Promise<DescribedFile> {
  return describeFile(new File([text], name), undefined);
}

async function checkerOf(name: string, text: string, changed: Partial<Settings> = {}): Promise<RowChecker> {
  const file = await described(name, text);
  return new RowChecker(file, { ...suggestSettings(file, file.suggestedType ?? 'shops'), ...changed });
}

it('each column of a spreadsheet shows its own values, and other sheets with data are named', async () => {
  const shops = [
    ['shop_id', '', 'name', ''],
    [shopId, 'one', 'Bakery', 'two'],
  ];
  const path = makeXlsx('shops.xlsx', shops, { others: { Notes: [[]], Old: shops } });
  const file = await described('shops.xlsx', new Uint8Array(readFileSync(path)));
  expect(file.firstRows).toEqual([{ line: 2, cells: [shopId, 'one', 'Bakery', 'two'] }]);
  expect(file.otherSheets).toEqual(['Old']);
});

it('the type is suggested by the name of the file, or otherwise by its columns', () => {
  expect(suggestType('02-shops_2026.csv', ['transaction_id'])).toBe('shops');
  expect(suggestType('export.csv', ['Shop ID', 'Name', 'Region'])).toBe('shops');
  expect(suggestType('export.csv', ['Branch ID', 'Shop ID', 'Name', 'Region'])).toBe('branches');
  expect(suggestType('export.csv', ['transaction_id', 'shop_id', 'region', 'savings', 'amount'])).toBe(
    'transactions',
  );
  expect(suggestType('export.csv', ['Invoice', 'Total'])).toBeUndefined();
});

it('columns, separator and encoding of a CSV are detected, even if it is compressed', async () => {
  const text = 'Shop ID;Name;Region;Owner\n1;Café;GB;me\n';
  const gzip = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'));
  const file = await described('shops.csv.gz', new Uint8Array(await new Response(gzip).arrayBuffer()));
  expect(file).toMatchObject({ format: 'csv', separator: ';', suggestedType: 'shops' });
  expect(file.firstRows).toEqual([{ line: 2, cells: ['1', 'Café', 'GB', 'me'] }]);
  const settings = suggestSettings(file, 'shops');
  expect(settings.map).toEqual({ 'Shop ID': 'shop_id', Name: 'name', Region: 'region', Owner: '' });
  // The ids in the file are not UUIDs, so UUIDs are derived from that column.
  expect(settings.idFrom).toEqual(['Shop ID']);
  const without = { ...settings, map: { ...settings.map, Region: '' } };
  expect(complaintsAbout(file, { ...without, isMerged: undefined })).toEqual([
    'no column matches region, which shops require; choose its column',
  ]);
  // Stored shops keep their region.
  expect(complaintsAbout(file, without)).toEqual([]);
  expect(absentFields(without)).toEqual(['region', 'is_public', 'created', 'updated', 'is_deleted']);
  const latin = Uint8Array.from('shop_id,name,region\n1,Caf\xe9,GB\n', (letter) => letter.charCodeAt(0));
  expect(await described('shops.csv', latin)).toMatchObject({ detectedEncoding: 'windows-1252' });
});

it('the message for an unreadable file explains what to do', async () => {
  await expect(described('shops.csv', '')).rejects.toThrow('The file is empty.');
  await expect(described('shops.csv', 'PK\u0003\u0004')).rejects.toThrow('Unpack it');
  await expect(described('shops.parquet', 'PAR1')).rejects.toThrow('cannot be read as Parquet');
});

it('a corrected cell is checked as the command checks it', async () => {
  const checker = await checkerOf('shops.csv', `shop_id,name,region\n${shopId},Bakery,GBR\n`);
  expect(checker.ofCells(2, [shopId, 'Bakery', 'GBR']).problems).toEqual([
    {
      column: 'region',
      code: 'invalid_format',
      message: 'must be a country code of two letters, such as GB',
    },
  ]);
  expect(checker.ofCells(2, [shopId, 'Bakery', 'GB'])).toMatchObject({
    record: { shop_id: shopId, name: 'Bakery', region: 'GB' },
    problems: [],
  });
  expect(checker.ofText(2, `${shopId},"Bakery, old",GB`)).toMatchObject({ problems: [] });
  expect(checker.ofText(2, `${shopId},Bakery, old,GB`).problems).toMatchObject([{ code: 'malformed_row' }]);
});

it('a JSON record is corrected by its fields, whatever its members are called', async () => {
  const checker = await checkerOf('shops.ndjson', `{"shopId":"${shopId}","name":"Bakery","region":7}\n`);
  expect(checker.header.slice(0, 4)).toEqual(['shop_id', 'name', 'region', 'is_public']);
  const row = checker.ofRecord({ line: 1, record: { shop_id: shopId, name: 'Bakery', region: 7 } });
  expect(row).toMatchObject({ problems: [{ column: 'region', code: 'wrong_type' }] });
  expect(row.cells?.slice(0, 3)).toEqual([shopId, 'Bakery', '7']);
  const corrected = checker.ofCells(1, row.cells?.with(2, 'GB') ?? []);
  expect(corrected).toMatchObject({ record: { region: 'GB' }, problems: [] });
});

it('at most 10,000 failed rows are kept, and all of them are counted', () => {
  const failed = new FailedRows();
  const problems = [{ column: 'region', code: 'invalid_format', message: 'is wrong' }];
  for (let line = 2; line < rowsKeptMax + 102; line++)
    failed.add({ line, cells: ['x'], record: undefined, problems });
  expect([failed.count, failed.keptCount, failed.isComplete]).toEqual([10_100, 10_000, false]);
  expect(failed.groups()).toMatchObject([{ count: 10_100, firstLine: 2 }]);
});

it('the rest is a CSV with reasons that can be uploaded again', async () => {
  const checker = await checkerOf('shops.csv', 'shop_id;name;region\n1;2;3\n');
  const problems = [{ column: 'region', code: 'invalid_format', message: 'must be a 2-letter country code' }];
  const malformed = [{ column: null, code: 'malformed_row', message: 'has 4 cells' }];
  const rest = restOf(checker, [
    { line: 2, cells: ['1', 'a;b', '3'], record: undefined, problems },
    { line: 3, cells: undefined, text: '1;2;3;4', record: undefined, problems: malformed },
  ]);
  expect(await rest.content.text()).toBe(
    'shop_id;name;region;failed_reason\n1;"a;b";3;region: must be a 2-letter country code\n1;2;3;4;has 4 cells\n',
  );
  expect(restName('shops.csv.gz', rest.extension)).toBe('shops.failed.csv');
});

it('a corrected row keeps the fields that it does not have, in the file of failed rows too', async () => {
  const checker = await checkerOf('shops.ndjson', `{"shop_id":"${shopId}","region":7}\n`);
  const lacking = checker.ofRecord({ line: 1, record: { shop_id: shopId, region: 7 } });
  const clearing = checker.ofRecord({ line: 2, record: { shop_id: shopId, name: null, is_public: true } });
  const region = checker.header.indexOf('region');
  const corrected = checker.ofCells(1, lacking.cells?.with(region, 'GB') ?? [], lacking.absent);
  expect(corrected.record).toEqual({ shop_id: shopId, region: 'GB' });
  const again = checker.ofCells(1, corrected.cells?.with(region, 'FR') ?? [], corrected.absent);
  expect(again.record).toEqual({ shop_id: shopId, region: 'FR' });
  const rest = restOf(checker, [lacking, clearing]);
  const lines = (await rest.content.text()).trimEnd().split('\n');
  expect(rest.extension).toBe('ndjson');
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { shop_id: shopId, region: '7', failed_reason: expect.stringContaining('region: ') },
    { shop_id: shopId, name: null, is_public: true, failed_reason: expect.stringContaining('name: ') },
  ]);
  // An empty cell would clear a field, so a CSV has only the columns that the rows have.
  const same = restOf(checker, [lacking]);
  expect((await same.content.text()).split('\n')[0]).toBe('shop_id,region,failed_reason');
});

it('no message about a file mentions an option of the command', () => {
  const sources = globSync('client/src/parsing/**/*.ts').map((file) =>
    readFileSync(file, 'utf8').replaceAll(/^\s*(\*|\/\/).*$/gm, ''),
  );
  const texts = sources.flatMap(
    (source) => source.match(/'[^'\n]*--[a-z][^\n]*'|`[^`\n]*--[a-z][^`\n]*`/g) ?? [],
  );
  expect(texts.length).toBeGreaterThan(10);
  // The user always chooses the type on the screen, so the screen never shows a message about --type.
  const shown = texts.filter((text) => !text.includes('--type'));
  expect(shown.map(inScreenWords).filter((text) => text.includes('--'))).toEqual([]);
});
