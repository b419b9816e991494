// @module-tag full

import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { Chance } from '../../demo/chance.ts';
import { makePlatform, withMistakes } from '../../demo/platform.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';

/**
 * Pictures of every screen with the demo's records, at two widths, light and dark, in .intake/pictures/. Those of docs/console.md
 * are made with PICTURES=docs, and come from the same code.
 */

const screens = ['', 'uploads', 'rejections', 'data', 'data/shops', 'interactions', 'privacy', 'key'];
const inDocs = new Set([
  'overview-1280-light',
  'rejections-1280-light',
  'group-1280-light',
  'overview-390-dark',
]);
const timeout = 300_000;

describe.skipIf(!process.env.PICTURES)('pictures of the console (need PICTURES)', { timeout }, () => {
  let server: BuiltServer;
  let browser: Browser;
  let key: string;
  beforeAll(async () => {
    server = await startBuiltServer();
    key = await server.createKey(
      'acme',
      'data:write',
      'data:read',
      'interactions:write',
      'interactions:read',
      'data:erase',
    );
    await fill(apiOf(server.url, key));
    await spreadOverDays(server.databaseUrl);
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  }, timeout);
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  it.each([
    [1280, 'light'],
    [1280, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)('%i pixels wide, %s', async (width, colorScheme) => {
    const context = await browser.newContext({
      viewport: { width, height: 844 },
      colorScheme,
      reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    const take = async (name: string) => {
      await page.waitForLoadState('networkidle');
      const file = `${name}-${width}-${colorScheme}`;
      const isForDocs = process.env.PICTURES === 'docs' && inDocs.has(file);
      const folder = fileURLToPath(
        new URL(isForDocs ? '../../docs/pictures/' : '../../.intake/pictures/', import.meta.url),
      );
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: `${folder}console-${file}.png`, fullPage: !isForDocs });
    };
    await page.goto(`${server.url}/console/sign-in`);
    await page.getByLabel('API key').waitFor();
    await take('sign-in');
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    for (const screen of screens) {
      await page.goto(`${server.url}/console/${screen}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await take(screen.replace('/', '-') || 'overview');
    }
    await page.goto(
      `${server.url}/console/rejections/group?type=transactions&code=reference_not_found&field=shop_id`,
    );
    await take('group');
    await page
      .getByRole('button', { name: /^Correct/ })
      .first()
      .click();
    await take('correct');
    await page.goto(`${server.url}/console/uploads?status=207`);
    await page.locator('table a').first().click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    await take('upload');
    await context.close();
  });
});

async function fill(api: Api): Promise<void> {
  const size = { shops: 60, customers: 1_000, transactions: 6_000, interactions: 2_000 };
  const { interactions = [], ...types } = makePlatform(new Chance(1, Date.now()), size);
  for (const [type, records] of Object.entries(types)) {
    const sent = ['customers', 'transactions'].includes(type) ? withMistakes(type, records) : records;
    for (let at = 0; at < sent.length; at += 200)
      await api.post(`/v1/data/${type}`, { records: sent.slice(at, at + 200) });
  }
  await api.post('/user-interactions/batch', { records: interactions });
  await api.post('/v1/erasures', { customer_ids: ['c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11'] });
}

/** As if the uploads had come over a week. */
async function spreadOverDays(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  for (const table of ['receipt_batches', 'receipts'])
    await client.query(`
      update ${table} t set request_id = overlay(t.request_id::text placing
          left(h, 8) || '-' || right(h, 4) from 1 for 13)::uuid
      from (
        select request_id, lpad(to_hex(('x' || translate(left(request_id::text, 13), '-', ''))::bit(48)::bigint
          - 86400000::bigint * (row_number() over (order by request_id desc) % 7)), 12, '0') as h
        from receipts) as moved
      where t.request_id = moved.request_id`);
  await client.end();
}
