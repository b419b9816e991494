// @module-tag full

import { existsSync } from 'node:fs';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { chromiumPath, launchChromium, loadMs, signInAt } from '../support/console-browser.ts';
import { fillRejections } from '../support/fill-rejections.ts';
import { expectInTime } from '../support/in-time.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/**
 * With a million rejections (MANY_REJECTIONS; by default a fifth of that) and 10,000 uploads a day, every screen shows its
 * content within a second.
 */

const rejections = Number(process.env.MANY_REJECTIONS ?? 200_000);
const uploadsPerDay = 10_000;
const days = 7;
const promisedMs = 1_000;
const loads = 3;

const isHere = existsSync(chromiumPath);
describe.skipIf(!isHere)('a console with a lot of data (needs headless Chromium)', () => {
  let server: BuiltServer;
  let browser: Browser;
  let page: Page;
  let requestId: string;
  const shop = newShop();
  const transactions = many(1_000, () => newTransaction(shop.shop_id));

  beforeAll(async () => {
    server = await startBuiltServer();
    const scopes = ['data:write', 'data:read', 'interactions:write', 'interactions:read', 'data:erase'];
    const key = await server.createKey('busy', ...scopes);
    const api = apiOf(server.url, key);
    await api.upload('shops', [shop]);
    await api.upload('transactions', transactions);
    const { body } = await api.upload(
      'transactions',
      many(1_000, () => newTransaction(shop.shop_id, { amount: 'many' })),
    );
    requestId = body.request_id;
    const interaction = {
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp: Math.floor(Date.now() / 1_000),
    };
    await api.post('/user-interactions/batch', { records: many(1_000, () => interaction) });
    await fillReceipts();
    await fillRejections(server.databaseUrl, { busy: rejections });
    browser = await launchChromium();
    page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
    await signInAt(page, `${server.url}/console/`, key, 'Overview');
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  /** Adds receipts with three results and four types, spread evenly over the week. */
  async function fillReceipts(): Promise<void> {
    await queryDatabase(
      server.databaseUrl,
      `insert into receipts (organisation_id, request_id, type, operation, status, key_id, body_bytes, duration_ms,
         batch_count, batches, received, created, updated, unchanged, stale, failed)
       select o.organisation_id, uuid_floor(now() - n * interval '${86_400 / uploadsPerDay} seconds'),
         (array['shops', 'tags', 'transactions', 'offers'])[1 + n % 4], 'upload', (array[200, 200, 207, 400])[1 + n % 4],
         'key', 10000, 20, 1, array[1], 100, 70, 10, 10, 0, 10
       from organisations o cross join generate_series(1, $1::integer) n where o.slug = 'busy'`,
      [days * uploadsPerDay],
    );
  }

  const group = 'type=transactions&code=reference_not_found&field=shop_id';
  const link = (name: string | RegExp) => page.getByRole('link', { name }).first();
  const rowOf = (table: string) => page.getByRole('table', { name: table }).getByRole('row').nth(1);

  /** The screens with their expected content. */
  const screens: readonly (readonly [path: () => string, content: () => readonly Locator[]])[] = [
    [() => '', () => [link(/open rejections of transactions/), page.locator('canvas')]],
    [() => 'uploads', () => [rowOf('Requests')]],
    [() => 'uploads?status=400&type=offers', () => [rowOf('Requests')]],
    [() => `uploads/${requestId}`, () => [page.getByText('1,000 records').first()]],
    [() => 'upload-file', () => [page.getByText('Choose a file, or drop one here')]],
    [() => 'rejections', () => [link(/shop_id reference_not_found/)]],
    [() => 'rejections?type=transactions', () => [link(/shop_id reference_not_found/)]],
    [() => `rejections?request_id=${requestId}`, () => [link(/amount/)]],
    [
      () => `rejections/group?${group}`,
      () => [
        page.getByText('First seen'),
        rowOf('Missing ids'),
        page.getByRole('button', { name: /^Correct/ }).first(),
      ],
    ],
    [() => 'data', () => [rowOf('Types of records')]],
    [() => 'data/transactions', () => [rowOf('Transactions')]],
    [
      () => `data/transactions/${transactions[0]?.transaction_id}`,
      () => [page.getByText('22.49'), page.getByText('Fields')],
    ],
    [() => 'interactions', () => [rowOf('Interactions')]],
    [() => 'interactions?live=on', () => [rowOf('Interactions')]],
    [() => 'privacy', () => [page.getByText('Nobody has been erased.')]],
    [() => 'key', () => [page.getByText('Limits of the organisation')]],
  ];

  it('shows each screen within a second', async () => {
    const medians: string[] = [];
    for (const [path, content] of screens)
      await expectInTime(async () => {
        const times: number[] = [];
        for (let at = 0; at < loads; at++)
          times.push(await loadMs(page, `${server.url}/console/${path()}`, content()));
        const ms = times.toSorted((a, b) => a - b)[Math.floor(loads / 2)] as number;
        medians.push(`${ms.toFixed(0)} ms /${path()}`);
        return [{ what: `/${path()}`, ms, promisedMs }];
      });
    console.log(medians.join('\n'));
  });
});
