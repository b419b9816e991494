import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { deriveId } from '../src/files/derived-id.ts';
import { type Place, runIntake } from './support/run-intake.ts';

/** What people stumble over before they reach a service. */

vi.setConfig({ testTimeout: 240_000 });

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
  expect(stderr).toContain('sales.csv: its name says no type');
  expect(stderr).toContain('nowhere.csv: there is no such file');
  expect(stderr).toContain(`column "Shop ID" is not a field of shops; did you mean shop_id?`);
  expect(stderr).toContain('tags.csv: no column is tag_id');
});

it('all problems of a row are listed at once, also those behind a cell that cannot be converted', async () => {
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
  expect(stderr).toContain('--map names the column "Shop Id", which no file has; did you mean "Shop ID"?');
  expect(stderr).toContain(
    '--map names the column "Country", which no file has; the columns are "Shop ID", "name", "region", "Tag"',
  );
  const good = await runIntake(place, 'check', '.', '--map', 'Tag=tag_id', '--map', 'Shop ID=shop_id');
  expect(good).toMatchObject({ exitCode: 0, stderr: '' });
});

it('names what a folder has that is not uploaded', async () => {
  put('shops.csv', `shop_id,name,region\n${id(1)},Bakery,GB\n`);
  put('notes.txt', '');
  mkdirSync(join(place.cwd, 'old'));
  const { exitCode, stderr } = await runIntake(place, 'check', '.');
  expect(exitCode).toBe(0);
  expect(stderr).toBe('Skipped: notes.txt (not a format that can be read), old (a folder)\n');
});

it('says which encoding it has detected', async () => {
  put('shops.csv', Buffer.from(`shop_id,name,region\n${id(1)},Bäckerei,DE\n`, 'latin1'));
  const { exitCode, stderr } = await runIntake(place, 'check', 'shops.csv');
  expect(exitCode).toBe(0);
  expect(stderr).toContain('shops.csv is not UTF-8, so it is read as windows-1252.');
  expect(await runIntake(place, 'check', 'shops.csv', '--encoding', 'cp1252')).toMatchObject({
    exitCode: 0,
    stderr: '',
  });
});
