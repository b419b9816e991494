// @module-tag full

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { type Place, runIntake } from './support/run-intake.ts';

let server: SharedServer;
let key: string;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  key = await server.createKey(`unconverted-${++made}`);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-unconverted-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, text: string) => writeFileSync(join(place.cwd, name), text);
const linesOf = (name: string) => readFileSync(join(place.cwd, name), 'utf8').trimEnd().split('\n');

interface Kept {
  readonly rejections: readonly { readonly record: Readonly<Record<string, unknown>> }[];
  readonly requests: readonly { readonly counts: object }[];
}

async function received(path: string): Promise<Kept> {
  const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${key}` } });
  return (await response.json()) as Kept;
}

it('a record with cells that cannot be converted is kept as a rejection, and what is not sent is counted apart', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const ids = Array.from({ length: 6 }, () => randomUUID());
  const row = (at: number, amount: string, created: string) =>
    `${ids[at]},${shop.shop_id},GB,1,${amount},maybe,${created}\n`.replace(
      'maybe',
      at === 2 ? 'maybe' : 'no',
    );
  put(
    'transactions.csv',
    'transaction_id,shop_id,region,savings,Paid,is_deleted,created\n' +
      row(0, '5', '') +
      row(1, '"12,5 EUR"', '') +
      row(2, '7', 'yesterday') +
      'too,few\n' +
      row(3, '12345678901234567.891', '') +
      // The service would accept this date, although it is not in the file's format and may mean another day.
      row(4, '9', '2026-03-14T09:00Z') +
      row(5, '9', '2026-14-03'),
  );
  const options = ['--map', 'Paid=amount', '--date-format', 'yyyy-dd-MM'];
  const check = await runIntake(place, 'check', 'transactions.csv', ...options);
  expect(check.stdout).toMatch(
    / 1 +transactions +Paid +must be a number such as 1234\.5, without a currency.*\(in transactions\.csv:3\)\n/,
  );
  const dry = await runIntake(place, 'upload', 'transactions.csv', '--dry-run', '--json', ...options);
  const expected = { unsent: 2, counts: { received: 5, created: 2, failed: 3 } };
  expect(JSON.parse(dry.stdout)).toMatchObject({ failed: 5, files: [expected] });

  const { exitCode, stdout } = await runIntake(place, 'upload', 'transactions.csv', ...options);
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/Records +Created +Failed +Not sent\n.* +7 +2 +3 +2\n/);
  expect(stdout).toContain('2 records were not sent');
  expect(stdout).toMatch(
    / 1 +transactions +Paid +must be a number such as.*--decimal-comma.*\(first in line 3\)\n/,
  );
  const { requests } = await received('/v1/requests?limit=1');
  expect(requests[0]?.counts).toMatchObject({ received: 5, created: 2, failed: 3 });

  const { rejections } = await received('/v1/rejections?type=transactions');
  const kept = rejections.map(({ record }) => [record.transaction_id, record.amount, record.created]);
  expect(kept).toHaveLength(3);
  expect(kept).toEqual(
    expect.arrayContaining([
      [ids[1], '12,5 EUR', null],
      [ids[2], 7, 'yesterday'],
      [ids[3], '12345678901234567.891', null],
    ]),
  );
  const failed = linesOf('transactions.csv.failed.csv').slice(1);
  expect(failed.map((line) => /"?line \d+: (\w+:)?/.exec(line)?.[0].replace('"', ''))).toEqual([
    'line 3: Paid:',
    'line 4: created:',
    'line 5: ',
    'line 6: Paid:',
    'line 7: created:',
  ]);
  expect(linesOf('transactions.csv.failed.ndjson').map((line) => JSON.parse(line).failed_reason)).toEqual(
    [3, 4, 5, 6, 7].map((line) => expect.stringMatching(`^line ${line}: `)),
  );
});

it('objects with values that cannot be converted are sent in the same way', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const sale = (fields: object) =>
    `${JSON.stringify({ transaction_id: randomUUID(), shop_id: shop.shop_id, region: 'GB', savings: 1, ...fields })}\n`;
  put('transactions.ndjson', `${sale({ Paid: '1,5' })}${sale({ Paid: '1,5 EUR' })}{"cut"\n`);
  const options = ['--map', 'Paid=amount', '--decimal-comma'];
  const { exitCode, stdout } = await runIntake(place, 'upload', 'transactions.ndjson', '--json', ...options);
  expect(exitCode).toBe(1);
  expect(JSON.parse(stdout).files).toMatchObject([
    { unsent: 1, counts: { received: 2, created: 1, failed: 1 } },
  ]);
  const { rejections } = await received('/v1/rejections?type=transactions');
  expect(rejections.map(({ record }) => record.amount)).toEqual(['1,5 EUR']);
});
