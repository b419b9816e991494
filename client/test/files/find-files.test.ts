import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findFiles, formatOf, typeOf } from '../../src/files/find-files.ts';
import { makeFolder } from './support.ts';

function folderOf(names: readonly string[]): string {
  const folder = makeFolder();
  for (const name of names) writeFileSync(join(folder, name), '');
  return folder;
}

describe('finding files', () => {
  it.each([
    ['transactions.csv', 'transactions'],
    ['transactions-2026-03.csv.gz', 'transactions'],
    ['2026_03_14 Transactions (1).ndjson', 'transactions'],
    ['export_shop_categories.json', 'shop-categories'],
    ['SHOP-TAGS.parquet', 'shop-tags'],
    ['student favourites.csv', 'student-favourites'],
    ['shops.csv.failed.csv', 'shops'],
    ['shop.csv', 'shops'],
    ['category.csv', 'categories'],
    ['branch.xlsx', 'branches'],
    ['shopCategories.csv', 'shop-categories'],
    ['ShopCategoryExport.csv', 'shop-categories'],
    ['shoptags.csv', 'shop-tags'],
    ['customers_2.csv', 'customers'],
    ['customers2.csv', 'customers'],
    ['02-shops.csv', 'shops'],
    ['shop_transactions.csv', 'transactions'],
    ['userInteractions.ndjson', 'interactions'],
  ])('takes the type from the name: %s', (name, type) => {
    expect(typeOf(join('shops', name))).toBe(type);
  });

  it.each(['data.csv', 'workshops.csv', 'shops-and-branches.csv', 'offer-of-branch.csv'])(
    'does not guess: %s',
    (name) => {
      expect(() => typeOf(name)).toThrow('--type');
    },
  );

  it.each([
    ['students.csv', 'customers'],
    ['all_favourites_2026.csv', 'student-favourites'],
    ['student_favorites.csv', 'student-favourites'],
    ['Orders.xlsx', 'transactions'],
  ])('suggests a type for another common name: %s', (name, type) => {
    expect(() => typeOf(name)).toThrow(
      `no type; did you mean ${type}? Start the name with ${type}, or add --type ${type}`,
    );
  });

  it('takes the format from the name', () => {
    expect(['a.csv', 'a.TSV', 'a.jsonl.zst', 'a.json.gz', 'a.parquet', 'a.txt', 'csv'].map(formatOf)).toEqual(
      ['csv', 'csv', 'ndjson', 'json', 'parquet', undefined, 'csv'],
    );
  });

  it('puts referenced types first, in whatever order they are named', async () => {
    const folder = folderOf([
      'transactions.csv',
      'shops.csv',
      'shop-tags.ndjson',
      'tags.json',
      'customers.csv.gz',
      'student-favourites.csv',
    ]);
    const { files: found } = await findFiles([join(folder, 'transactions.csv'), folder]);
    expect(found.map(({ type }) => type)).toEqual([
      'customers',
      'shops',
      'tags',
      'transactions',
      'shop-tags',
      'student-favourites',
    ]);
    expect(found.filter(({ type }) => type === 'transactions').length).toBe(1);
  });

  it('skips failed records, hidden files, other files and folders within a folder', async () => {
    const folder = folderOf([
      'shops.csv',
      'shops.csv.failed.csv',
      'shops.csv.failed.ndjson',
      '.shops.csv',
      'README.md',
      'mapping.json',
    ]);
    mkdirSync(join(folder, 'old.csv'));
    const { files, skipped } = await findFiles([folder]);
    expect(files).toEqual([{ path: join(folder, 'shops.csv'), type: 'shops' }]);
    expect(skipped.map((each) => each.slice(folder.length + 1))).toEqual([
      'README.md (not a format that can be read)',
      'old.csv (a folder)',
      'shops.csv.failed.csv',
      'shops.csv.failed.ndjson',
    ]);
    const failed = join(folder, 'shops.csv.failed.csv');
    expect((await findFiles([failed])).files).toEqual([{ path: failed, type: 'shops' }]);
    expect((await findFiles([folder, failed])).problems).toMatchObject([
      expect.stringContaining('upload it alone'),
    ]);
  });

  it('explains what to do about everything that cannot be found, at once', async () => {
    const folder = folderOf(['data.csv', 'shops-tags.csv', 'shops.csv']);
    const { files, problems } = await findFiles(['no-such.csv', folderOf(['README.md']), '-', folder]);
    expect(files).toEqual([{ path: join(folder, 'shops.csv'), type: 'shops' }]);
    expect(problems).toMatchObject([
      expect.stringMatching(/^no-such\.csv: there is no such file or folder; check its name$/),
      expect.stringContaining('there is no CSV, NDJSON, JSON, Parquet or .xlsx file'),
      expect.stringMatching(/^standard input: it has no name that contains its type; specify the type with/),
      expect.stringContaining(`${join(folder, 'data.csv')}: its name contains no type`),
      expect.stringContaining(`${join(folder, 'shops-tags.csv')}: its name contains shops and tags`),
    ]);
    expect((await findFiles(['-'], 'shops')).files).toEqual([{ path: '-', type: 'shops' }]);
  });
});
