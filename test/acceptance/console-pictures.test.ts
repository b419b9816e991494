// @module-tag full

import { hash } from 'node:crypto';
import pg from 'pg';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { Chance } from '../../demo/chance.ts';
import { makePlatform, withMistakes } from '../../demo/platform.ts';
import { accessPerson } from '../support/access-person.ts';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { chooseFile, launchChromium, signInAt } from '../support/console-browser.ts';
import { takePicture } from '../support/take-picture.ts';

/**
 * Takes screenshots of every screen with and without the demo's records, in two widths and in light and dark mode, and
 * saves them in .intake/pictures/. With PICTURES=docs, the same code takes the pictures for docs/uploading/console.md.
 */

const screens = [
  '',
  'uploads',
  'upload-file',
  'rejections',
  'data',
  'data/shops',
  'interactions',
  'access-requests',
  'privacy',
  'key',
];
const inDocs = new Set([
  'console-overview-1280-light',
  'console-rejections-1280-light',
  'console-group-1280-light',
  'console-overview-390-dark',
]);

describe.skipIf(!process.env.PICTURES)('pictures of the console (need PICTURES)', () => {
  let server: BuiltServer;
  let browser: Browser;
  let key: string;
  let emptyKey: string;
  beforeAll(async () => {
    server = await startBuiltServer();
    key = await server.createKey('acme', ...everyPermission);
    emptyKey = await server.createKey('empty', ...everyPermission);
    await fill(apiOf(server.url, key));
    await spreadOverDays(server.databaseUrl);
    await fillRuns(apiOf(server.url, key));
    browser = await launchChromium();
  });
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
    const take = (name: string) => takePicture(page, `console-${name}-${width}-${colorScheme}`, inDocs);
    await page.goto(`${server.url}/console/sign-in`);
    await page.getByLabel('API key').waitFor();
    await take('sign-in');
    await signInAt(page, `${server.url}/console/`, key, 'Overview');
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
    await page.goto(`${server.url}/console/upload-file`);
    await chooseFile(page, 'till export.csv', file);
    await page.getByRole('button', { name: 'Check the file' }).waitFor();
    await take('upload-file-mapped');
    await page.getByRole('button', { name: 'Check the file' }).click();
    await page.getByText('cannot.').waitFor();
    await take('upload-file-checked');
    await page.getByRole('button', { name: /^Upload \d/ }).click();
    await page.getByLabel('What was stored').waitFor();
    await take('upload-file-uploaded');
    await page.getByRole('link', { name: 'Show this upload' }).click();
    await page.getByRole('table', { name: 'Files' }).waitFor();
    await take('run');
    await page.goto(`${server.url}/console/upload-file`);
    for (const name of ['visits.ndjson', 'visits of May.ndjson']) {
      await chooseFile(page, name, visits);
      await page.getByRole('button', { name: 'Check the file' }).click();
      await page.getByRole('button', { name: /^Upload \d/ }).click();
      await page.getByLabel('What was stored').or(page.getByRole('alert')).first().waitFor();
    }
    await take('upload-file-again');
    const { erasures } = (await apiOf(server.url, key).get('/v1/erasures')).body;
    await page.goto(`${server.url}/console/api/v1/erasures/${erasures[0].erasure_id}/certificate`);
    await take('certificate');
    await context.clearCookies();
    await signInAt(page, `${server.url}/console/sign-in`, emptyKey, 'Overview');
    for (const screen of screens) {
      await page.goto(`${server.url}/console/${screen}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await take(`empty-${screen.replace('/', '-') || 'overview'}`);
    }
    const said = await server.run('console', 'link', '--organisation', 'acme', '--json');
    await page.goto(server.url + JSON.parse(said).path);
    await page.getByRole('dialog').waitFor();
    await take('link');
    await context.close();
  });
});

const shopId = '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01';

/** A file with a valid row, two rows with the same mistake, one with an extra cell, and one with a missing shop. */
const file = `Transaction ID,Shop ID,Region,Savings,Amount,Note
7d0f4f0e-94a2-4e0c-8a67-0f6f2a1c9a01,5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01,GB,2.50,22.49,card
7d0f4f0e-94a2-4e0c-8a67-0f6f2a1c9a02,5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01,GBR,1.00,9.99,card
7d0f4f0e-94a2-4e0c-8a67-0f6f2a1c9a03,5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01,GBR,0.00,ten,cash
7d0f4f0e-94a2-4e0c-8a67-0f6f2a1c9a04,5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01,GB,0.00,3.20,cash,twice
`;

const visits = [1, 2, 3]
  .map((at) => ({ interaction_type: 'SHARE', item_type: 'SHOP', item_id: shopId, event_timestamp: at }))
  .map((visit) => `${JSON.stringify(visit)}\n`)
  .join('');

async function fill(api: Api): Promise<void> {
  const size = { shops: 60, customers: 1_000, transactions: 6_000, interactions: 2_000 };
  const { interactions = [], ...types } = makePlatform(new Chance(1, Date.now()), size);
  for (const [type, records] of Object.entries(types)) {
    const sent = ['customers', 'transactions'].includes(type) ? withMistakes(type, records) : records;
    for (let at = 0; at < sent.length; at += 200)
      await api.post(`/v1/data/${type}`, { records: sent.slice(at, at + 200) });
  }
  await api.post('/user-interactions/batch', { records: interactions });
  const [{ customer_id }] = (await api.get('/v1/data/customers?limit=1')).body.records;
  await accessPerson(api, { customer_ids: [customer_id] });
  await api.post('/v1/erasures', { customer_ids: ['c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11'] });
}

/** A run that is running, one that failed, and one that finished. */
async function fillRuns(api: Api): Promise<void> {
  const types = ['shops', 'customers', 'tags', 'offers'];
  const files = types.map((type) => ({
    name: `export_${type}.csv.gz`,
    bytes: 1_234_567,
    sha256: hash('sha256', type),
    type,
  }));
  const open = (name: string) => api.post('/v1/runs', { name, client_version: '0.2.0', files });
  const stored = (await api.get('/v1/data/shops?limit=40')).body.records;
  for (const status of ['finished', 'failed', undefined]) {
    const { run_id } = (await open(status === 'failed' ? 'partner-migration' : 'nightly export')).body;
    const records = [...stored, { ...stored[0], region: 'GBR' }];
    await api.post(`/v1/data/shops?run_id=${run_id}&file=0&first_record=1`, { records });
    const unseen = status === 'failed' ? [{ file: 0, not_sent: 12, not_kept: 0 }] : [];
    if (status) await api.post(`/v1/runs/${run_id}/end`, { status, files: unseen });
  }
}

/** Changes the upload times, as if the uploads had arrived over a week. */
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
