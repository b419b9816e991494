// @module-tag full

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { beforeAll, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { newShop, newTransaction } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { readAll } from './files/support.ts';
import { peakMegabytesOf } from './support/peak-memory.ts';
import { type Place, runIntake, startIntake } from './support/run-intake.ts';

/**
 * The number of rows. To see that memory use is bounded, run: ROWS=1000000 npx vitest run client/test/export-parquet.test.ts
 */
const rows = Number(process.env.ROWS ?? 11_000);

let server: SharedServer;

beforeAll(async () => {
  server = await sharedServer();
});

it('an export as Parquet, uploaded again, changes nothing', async () => {
  const key = await server.createKey('parquet');
  const intake = new Intake({ url: server.url, key });
  const shop = newShop({ is_public: true, created: '2026-03-14T09:26:53.589793Z' });
  const bare = newShop({ name: 'Fish & Chips, "fresh"' });
  await intake.upload('shops', [shop, bare]).finish();
  function* sales() {
    for (let at = 0; at < rows; at++)
      yield {
        transaction_id: randomUUID(),
        shop_id: shop.shop_id,
        region: 'GB',
        savings: at / 100,
        amount: 22.49,
        ...(at % 3 === 0 && { student_id: randomUUID(), created: '2026-03-14T09:26:53.000001Z' }),
      };
  }
  await intake.upload('transactions', sales()).finish();
  const cwd = mkdtempSync(join(tmpdir(), 'intake-export-'));
  const place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  for (const type of ['shops', 'transactions']) {
    const running = startIntake(place, 'export', type, '--format', 'parquet');
    const file = createWriteStream(join(cwd, `${type}.parquet`));
    running.stdout?.pipe(file);
    const [peakMegabytes] = await Promise.all([peakMegabytesOf(running), once(file, 'close')]);
    expect(running.exitCode).toBe(0);
    if (rows > 11_000) console.info(`${type}: ${Math.round(peakMegabytes)} MB`);
    expect(peakMegabytes).toBeLessThan(250);
  }
  const { sent } = await readAll(join(cwd, 'shops.parquet'));
  expect(sent).toHaveLength(2);
  expect(sent.find(({ shop_id }) => shop_id === shop.shop_id)).toMatchObject({ ...shop });
  const again = await runIntake(place, 'upload', 'shops.parquet', 'transactions.parquet', '--json');
  expect(JSON.parse(again.stdout).files.map((each: { counts: object }) => each.counts)).toMatchObject([
    { received: 2, unchanged: 2 },
    { received: rows, unchanged: rows },
  ]);
  const none = startIntake(place, 'export', 'tags', '--format', 'parquet');
  const empty = createWriteStream(join(cwd, 'tags.parquet'));
  none.stdout?.pipe(empty);
  await once(empty, 'close');
  expect((await readAll(join(cwd, 'tags.parquet'))).records).toEqual([]);
  rmSync(cwd, { recursive: true });
});

async function exportTo(place: Place, type: string, ...options: string[]) {
  const running = startIntake(place, 'export', type, '--format', 'parquet', ...options);
  const path = join(place.cwd, `${type}.parquet`);
  const file = createWriteStream(path);
  running.stdout?.pipe(file);
  const [{ exitCode, stderr }] = await Promise.all([running.ended, once(file, 'close')]);
  return { exitCode, stderr, path };
}

it('an export as Parquet has times as timestamps and amounts as decimals, and ends with an error if they do not fit', async () => {
  const key = await server.createKey('parquet-types');
  const intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-export-'));
  const place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const sale = (fields: object) => ({ ...newTransaction(shop.shop_id), ...fields });
  // 12345678901.123457 has more digits than double arithmetic preserves, but it must not change.
  const sales = [
    sale({ amount: 12_345_678_901.123457, discount_value: -0.000000001 }),
    sale({ amount: 1e20 }),
  ];
  await intake.upload('transactions', sales).finish();
  const { exitCode, path } = await exportTo(place, 'transactions');
  expect(exitCode).toBe(0);
  const { elements, count } = await describe(path);
  expect(count).toBe(2);
  expect(elements.amount).toMatchObject({ converted_type: 'DECIMAL', precision: 38, scale: 9 });
  expect(elements.created).toMatchObject({
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  });
  const again = await runIntake(place, 'upload', 'transactions.parquet', '--json');
  expect(JSON.parse(again.stdout).files[0].counts).toMatchObject({ received: 2, unchanged: 2 });

  const third = sale({ savings: 10 / 3 });
  await intake.upload('transactions', [third]).finish();
  const broken = await exportTo(place, 'transactions');
  expect(broken.exitCode).toBe(2);
  expect(broken.stderr).toContain(
    `savings of transactions ${third.transaction_id} is 3.3333333333333335, which DECIMAL(38,9) cannot hold. Add --doubles`,
  );
  expect(await exportTo(place, 'transactions', '--doubles')).toMatchObject({ exitCode: 0 });
  expect((await describe(path)).elements.amount).toMatchObject({ type: 'DOUBLE' });
  const doubles = await runIntake(place, 'upload', 'transactions.parquet', '--json');
  expect(JSON.parse(doubles.stdout).files[0].counts).toMatchObject({ received: 3, unchanged: 3 });
  rmSync(cwd, { recursive: true });
});

it('an export of interactions as Parquet has the instant of each, however it was written', async () => {
  const key = await server.createKey('parquet-interactions');
  const intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-export-'));
  const place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  for (const event_timestamp of [
    981_173_106,
    981_173_106_001,
    '2001-02-03T05:05:06.000007+01:00',
    '0001-01-01T00:00Z',
  ])
    await intake.record({
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp,
    });
  const { exitCode, path } = await exportTo(place, 'interactions');
  expect(exitCode).toBe(0);
  const { sent } = await readAll(path);
  const times = [
    '2001-02-03T04:05:06.000000Z',
    '2001-02-03T04:05:06.001000Z',
    '2001-02-03T04:05:06.000007Z',
    '0001-01-01T00:00:00.000000Z',
  ];
  expect(sent.map(({ event_timestamp }) => event_timestamp).toReversed()).toEqual(times);
  const rows = await parquetReadObjects({ file: new Uint8Array(readFileSync(path)).buffer });
  // JavaScript dates have only milliseconds, so the microseconds are lost.
  expect(rows.map(({ event_time }) => event_time).toReversed()).toEqual(times.map((time) => new Date(time)));
  const again = await runIntake(place, 'upload', 'interactions.parquet');
  expect(again).toMatchObject({ exitCode: 0 });
  expect(again.stderr).toContain('not sent: interaction_id, event_time, created');
  rmSync(cwd, { recursive: true });
});

async function describe(path: string) {
  const { buffer } = new Uint8Array(readFileSync(path));
  const { schema, num_rows } = await parquetMetadataAsync(buffer);
  return { elements: Object.fromEntries(schema.map((one) => [one.name, one])), count: Number(num_rows) };
}
