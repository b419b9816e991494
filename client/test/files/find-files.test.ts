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
  ])('takes the type from the name: %s', (name, type) => {
    expect(typeOf(join('shops', name))).toBe(type);
  });

  it.each(['data.csv', 'workshops.csv', 'shops-and-branches.csv'])('does not guess: %s', (name) => {
    expect(() => typeOf(name)).toThrow('--type');
  });

  it('takes the format from the name', () => {
    expect(['a.csv', 'a.TSV', 'a.jsonl.zst', 'a.json.gz', 'a.parquet', 'a.txt', 'csv'].map(formatOf)).toEqual(
      ['csv', 'csv', 'ndjson', 'json', 'parquet', undefined, 'csv'],
    );
  });

  it('puts what others refer to first, whatever order it is named in', async () => {
    const folder = folderOf([
      'transactions.csv',
      'shops.csv',
      'shop-tags.ndjson',
      'tags.json',
      'customers.csv.gz',
      'student-favourites.csv',
    ]);
    const found = await findFiles([join(folder, 'transactions.csv'), folder]);
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

  it('passes over failed records, hidden files, other files and folders within a folder', async () => {
    const folder = folderOf([
      'shops.csv',
      'shops.csv.failed.csv',
      'shops.csv.failed.ndjson',
      '.shops.csv',
      'README.md',
      'mapping.json',
    ]);
    mkdirSync(join(folder, 'old.csv'));
    expect(await findFiles([folder])).toEqual([{ path: join(folder, 'shops.csv'), type: 'shops' }]);
    const failed = join(folder, 'shops.csv.failed.csv');
    expect(await findFiles([failed])).toEqual([{ path: failed, type: 'shops' }]);
    await expect(findFiles([folder, failed])).rejects.toThrow('upload it by itself');
  });

  it('says what to do when there is nothing to find', async () => {
    await expect(findFiles(['no-such.csv'])).rejects.toThrow('no-such.csv: there is no such file or folder');
    await expect(findFiles([folderOf(['README.md'])])).rejects.toThrow(
      'there is no CSV, NDJSON, JSON, Parquet or .xlsx file',
    );
    await expect(findFiles(['-'])).rejects.toThrow('--type');
    expect(await findFiles(['-'], 'shops')).toEqual([{ path: '-', type: 'shops' }]);
    const folder = folderOf(['data.csv']);
    await expect(findFiles([folder])).rejects.toThrow(`${join(folder, 'data.csv')}: its name says no type`);
  });
});
