// @module-tag full

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { Intake } from '../src/index.ts';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { type Place, runIntake } from './support/run-intake.ts';

/** This file tests that failed records, once they are corrected, are uploaded with the options of the original file. */

let server: SharedServer;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  const key = await server.createKey(`failed-again-${++made}`);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-failed-again-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, text: string, encoding: BufferEncoding = 'utf8') =>
  writeFileSync(join(place.cwd, name), text, encoding);
const read = (name: string) => readFileSync(join(place.cwd, name), 'utf8');
const upload = (...args: string[]) =>
  runIntake(place, 'upload', ...args, '--mapping', 'mapping.json', '--json');

/** Names of columns that are fields of the service, but other ones, make a second conversion visible. */
const mapping = {
  shops: {
    id_from: ['name'],
    columns: { name: '', Bezeichnung: 'name', region: '', Land: 'region', updated: 'created' },
    values: { Land: { Deutschland: 'DE' } },
    date_format: 'yyyy-dd-MM',
    encoding: 'windows-1252',
    skip_top: 1,
    skip_bottom: 1,
  },
};

const shops =
  'Filialen\nname;Bezeichnung;region;Land;updated\n' +
  'F1;Bäckerei Süß;Süd;Deutschland;2025-03-05\n' +
  'F2;Café Größe;Süd;Österreich;2025-04-05\n' +
  'F3;Köln;West;Deutschland;2025-31-31\n' +
  'F4;Münster;West;Deutschland;2026-03-14T09:00Z\n' +
  'Summe;4;;;\n';

const stored = (key: string) => intake.data.get('shops', deriveId('shops', [key]));

async function expectAllStored(): Promise<void> {
  expect(await stored('F2')).toMatchObject({
    name: 'Café Größe',
    region: 'AT',
    created: expect.stringMatching(/^2025-05-04T00:00:00/),
  });
  expect(await stored('F3')).toMatchObject({
    name: 'Köln',
    region: 'DE',
    created: expect.stringMatching(/^2025-12-31T00:00:00/),
  });
  expect(await stored('F4')).toMatchObject({
    name: 'Münster',
    created: expect.stringMatching(/^2026-03-14T/),
  });
  const ids: string[] = [];
  for await (const { shop_id } of intake.data.list('shops')) ids.push(shop_id);
  expect(ids).toHaveLength(4);
}

it.each(['failed', 'corrected'])(
  'records in NDJSON are not converted again, whatever their file is called (%s)',
  async (name) => {
    put('mapping.json', JSON.stringify(mapping));
    put('shops.csv', shops, 'latin1');
    expect(await upload('shops.csv')).toMatchObject({ exitCode: 1 });
    const failed = read('shops.csv.failed.ndjson');
    const again = 'shops.csv.failed.ndjson';
    // A record with a value that the service may understand in another way is not stored as it is.
    const unchanged = JSON.parse((await upload(again)).stdout);
    expect(unchanged).toMatchObject({ failed: 3, files: [{ counts: { created: 0 } }] });

    const corrections = [
      ['"Österreich"', '"AT"'],
      ['"2025-31-31"', '"2025-12-31T00:00:00Z"'],
      ['{"unclear":"2026-03-14T09:00Z"}', '"2026-03-14T09:00:00Z"'],
    ] as const;
    const corrected = corrections.reduce((text, [from, to]) => text.replace(from, to), failed);
    const path = name === 'failed' ? again : 'shops-corrected.ndjson';
    // The name or the reason shows that the records are converted.
    put(path, name === 'failed' ? corrected.replaceAll(/,"failed_reason":"[^"]*"/g, '') : corrected);
    if (name === 'corrected')
      put('mapping.json', JSON.stringify({ shops: { ...mapping.shops, encoding: 'utf-8' } }));
    expect(await upload(path)).toMatchObject({ exitCode: 0, stderr: '' });
    await expectAllStored();
  },
);

it('rows in CSV are read like those of the original file, but as UTF-8', async () => {
  put('mapping.json', JSON.stringify(mapping));
  put('shops.csv', shops, 'latin1');
  expect(await upload('shops.csv')).toMatchObject({ exitCode: 1 });
  const corrected = read('shops.csv.failed.csv')
    .replace('Österreich', 'AT')
    .replace('2025-31-31', '2025-31-12')
    .replace('2026-03-14T09:00Z', '2026-14-03');
  // A spreadsheet program may save the file in the encoding of the original.
  for (const encoding of ['utf8', 'latin1'] as const) {
    put('shops.csv.failed.csv', corrected, encoding);
    expect(await upload('shops.csv.failed.csv')).toMatchObject({ exitCode: 0, stderr: '' });
    await expectAllStored();
  }
});

it('keys that replace wrong references are derived, in records of JSON too', async () => {
  const options = {
    shops: { id_from: ['Nr'] },
    transactions: {
      id_from: ['shop_id', 'Bon'],
      columns: { shop_id: 'shop_id', amount: 'savings', Preis: 'amount' },
      date_format: 'dd.MM.yyyy',
      decimal_comma: true,
    },
  };
  put('mapping.json', JSON.stringify(options));
  put('shops.csv', 'Nr,name,region\nK1,Eck,DE\nK2,Am Markt,DE\n');
  const sale = (fields: object) =>
    `${JSON.stringify({ Bon: 7, region: 'DE', amount: '0,5', Preis: '1,5', created: '05.03.2026', ...fields })}\n`;
  put(
    'transactions.ndjson',
    sale({ shop_id: 'K1' }) + sale({ shop_id: 'K3' }) + sale({ shop_id: 'K2', Preis: '1,5 EUR' }),
  );
  const first = await upload('shops.csv', 'transactions.ndjson');
  expect(JSON.parse(first.stdout)).toMatchObject({ failed: 2 });
  const again = 'transactions.ndjson.failed.ndjson';
  put(
    again,
    read(again)
      .replace(deriveId('shops', ['K3']), 'K2')
      .replace('"1,5 EUR"', '1.5'),
  );
  expect(await upload(again)).toMatchObject({ exitCode: 0, stderr: '' });
  for (const [shop, key] of [
    ['K1', 'K1'],
    ['K2', 'K3'],
    ['K2', 'K2'],
  ] as const)
    expect(await intake.data.get('transactions', deriveId('transactions', [key, '7']))).toMatchObject({
      shop_id: deriveId('shops', [shop]),
      amount: 1.5,
      savings: 0.5,
      created: expect.stringMatching(/^2026-03-05T/),
    });
});
