// @module-tag full

import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { Intake } from '../src/index.ts';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { makeXlsx } from './files/make-xlsx.ts';
import { type Place, runIntake } from './support/run-intake.ts';

/** This file tests an export of a partner who has no UUIDs, as spreadsheet programs and tills write it. */

let server: SharedServer;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  const key = await server.createKey(`messy-export-${++made}`);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-messy-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  return () => rmSync(cwd, { recursive: true });
});

const tables = {
  'shops.csv': [
    'Filialen der Bäckerei Müller, Stand 05/03/2026',
    'Filiale;Name;Region;Is Public;Created',
    '1;Bäckerei Süß;Deutschland;ja;05/03/2025',
    '2;Café Größe;Österreich;nein;31/12/2025',
  ],
  'customers.csv': [
    'Kundenliste;;;',
    ';;;',
    'Kunde;Region;Birthdate;Gender',
    '100500;Deutschland;29/02/2004;w',
    '100501;Österreich;01/07/2003;m',
    '100502;Deutschland;;',
  ],
  'transactions.csv': [
    'Umsätze',
    'Beleg;Filiale;Student ID;Region;Amount;Savings;Created',
    'B-17;1;100500;Deutschland;1.234,50;12,5;05/03/2026 09:26',
    'B-18;2;100501;Österreich;7,90;0;13/03/2026 17:00',
    'Summe;;;;1.242,40;12,5;',
  ],
};

const interactions = [
  ['Aufrufe', null, null, null, null, null],
  ['Interaction Type', 'Item Type', 'Item ID', 'User ID', 'Platform', 'Event Timestamp'],
  ['PAGE_VIEW', 'SHOP', { number: '1' }, { number: '100500' }, 'WEB', '05/03/2026 09:20'],
  ['DISCOUNT_CODE', 'SHOP', { number: '2' }, { number: '100501' }, 'IOS', '13/03/2026 16:55'],
  ['SHARE', 'SHOP', { number: '1' }, { number: '100502' }, 'WEB', '14/03/2026 08:00'],
];

function putExport(): void {
  mkdirSync(join(place.cwd, 'export'));
  for (const [name, lines] of Object.entries(tables))
    writeFileSync(join(place.cwd, 'export', name), Buffer.from(`${lines.join('\r\n')}\r\n`, 'latin1'));
  const notes = [['Export'], ['Stand', '05/03/2026']];
  const path = makeXlsx('interactions.xlsx', notes, { others: { Daten: interactions } });
  copyFileSync(path, join(place.cwd, 'export/interactions.xlsx'));
}

async function all<T>(records: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const record of records) found.push(record);
  return found;
}

it('is stored with the mapping file that map proposes, after three corrections', async () => {
  putExport();
  const mapped = await runIntake(place, 'map', 'export');
  expect(mapped).toMatchObject({ exitCode: 0, stderr: '' });
  const path = join(place.cwd, 'export/mapping.json');
  const mapping = JSON.parse(readFileSync(path, 'utf8'));
  expect(mapping).toMatchObject({
    customers: { id_from: ['Kunde'], skip_top: 2, date_format: 'dd/MM/yyyy' },
    shops: { id_from: ['Filiale'], skip_top: 1, values: { 'Is Public': { ja: true, nein: false } } },
    transactions: { id_from: ['Beleg'], skip_top: 1, decimal_comma: true, date_format: 'dd/MM/yyyy' },
    interactions: { sheet: 'Daten', skip_top: 1, date_format: 'dd/MM/yyyy' },
  });
  expect(mapped.stdout).toContain('customers: no column matches user_id, which is required');
  expect(mapped.stdout).not.toContain('customers: no column matches customer_id');

  mapping.customers.columns.Kunde = 'user_id';
  mapping.transactions.columns.Filiale = 'shop_id';
  mapping.transactions.skip_bottom = 1;
  writeFileSync(path, JSON.stringify(mapping));
  const uploaded = await runIntake(place, 'upload', 'export', '--mapping', 'export/mapping.json');
  expect(uploaded).toMatchObject({ exitCode: 0 });

  const usersOf = new Map(
    (await all(intake.data.list('customers'))).map(({ customer_id, user_id }) => [customer_id, user_id]),
  );
  const numbers = ['100500', '100501', '100502'];
  expect(usersOf).toEqual(
    new Map(
      numbers
        .map((number) => [deriveId('customers', [number]), deriveId('users', [number])] as const)
        .toSorted(),
    ),
  );
  const shopId = (number: string) => deriveId('shops', [number]);
  expect(await intake.data.get('shops', shopId('1'))).toMatchObject({
    name: 'Bäckerei Süß',
    region: 'DE',
    is_public: true,
  });
  expect(await intake.data.get('shops', shopId('2'))).toMatchObject({ name: 'Café Größe', region: 'AT' });
  const sales = await all(intake.data.list('transactions'));
  expect(sales.map(({ amount }) => amount).toSorted()).toEqual([1234.5, 7.9]);
  for (const { shop_id, student_id } of sales) {
    expect([shopId('1'), shopId('2')]).toContain(shop_id);
    expect([...usersOf.keys()]).toContain(student_id);
  }
  const seen = await all(intake.interactions.list());
  expect(seen.map(({ user_id }) => user_id).toSorted()).toEqual([...usersOf.values()].toSorted());
  expect(new Set(seen.map(({ item_id }) => item_id))).toEqual(new Set([shopId('1'), shopId('2')]));
  expect(await all(intake.rejections.list())).toEqual([]);
});
