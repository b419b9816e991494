// @module-tag full

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { readAll } from './files/support.ts';
import { peakMegabytesOf } from './support/peak-memory.ts';
import { runIntake, startIntake } from './support/run-intake.ts';

/** More of them show that memory is bounded: ROWS=1000000 npx vitest run client/test/export-parquet.test.ts */
const rows = Number(process.env.ROWS ?? 25_000);

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
    if (rows > 25_000) console.info(`${type}: ${Math.round(peakMegabytes)} MB`);
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
}, 600_000);
