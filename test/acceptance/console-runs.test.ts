// @module-tag full

import { hash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import {
  appearances,
  barriers,
  chooseFile,
  chromiumPath,
  csvOf,
  headingOf,
  launchChromium,
  signInAt,
} from '../support/console-browser.ts';
import { newShop } from '../support/new-records.ts';

describe.skipIf(!existsSync(chromiumPath))('runs of the console (need headless Chromium)', () => {
  let server: SharedServer;
  let browser: Browser;
  let organisations = 0;

  beforeAll(async () => {
    server = await sharedServer();
    browser = await launchChromium();
  });

  afterAll(() => browser?.close());

  /** A new organisation with a shop, and the screen for uploads. The test fails if the page logs an error. */
  async function openScreen(options: BrowserContextOptions = {}) {
    const key = await server.createKey(`console-runs-${++organisations}`);
    const api = apiOf(server.url, key);
    const shop = newShop();
    await api.post('/v1/data/shops', { records: [shop] });
    const context = await browser.newContext({ locale: 'en-GB', reducedMotion: 'reduce', ...options });
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('dialog', (dialog) => dialog.accept());
    onTestFinished(async () => {
      await context.close();
      expect(errors).toEqual([]);
    });
    await signInAt(page, `${server.url}/console/upload-file`, key, 'Upload a file');
    return { api, page, shop };
  }

  async function runsOf(api: Api) {
    const { runs } = (await api.get('/v1/runs')).body;
    return Promise.all(
      // biome-ignore lint/suspicious/noExplicitAny: the body of an answer.
      runs.map(async ({ run_id }: any) => (await api.get(`/v1/runs/${run_id}`)).body),
    );
  }

  it('an upload names a run whose counts are those on the screen, until it ends', async () => {
    const { api, page, shop } = await openScreen();
    await page.clock.install();
    await page.reload();
    const text = transactions(shop.shop_id, ['GB', 'GB', 'GBR', 'missing', 'GB']);
    await upload(page, 'till export.csv', text, 'Upload 4 rows');
    const counts = page.getByLabel('What was stored');
    await expect.poll(() => counts.innerText()).toMatch(/Created\s+3\s.*Failed\s+1\s+Not sent\s+1\b/s);

    const [open] = await runsOf(api);
    expect(open).toMatchObject({
      name: 'till export',
      client_version: 'console',
      status: 'running',
      ended: null,
      requests: 1,
      counts: { received: 4, created: 3, failed: 1 },
      files: [
        {
          name: 'till export.csv',
          bytes: Buffer.byteLength(text),
          sha256: hash('sha256', text),
          type: 'transactions',
        },
      ],
    });
    const { requests } = (await api.get(`/v1/requests?run_id=${open.run_id}`)).body;
    expect(requests).toMatchObject([{ run_id: open.run_id, file: 0, first_record: 1 }]);

    // Correcting takes longer than a run may be silent.
    const beats = page.waitForResponse(/\/v1\/runs\/[0-9a-f-]+\/heartbeat$/);
    await page.clock.fastForward('02:00');
    expect((await beats).status()).toBe(200);

    const wrong = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'Line 4' }) });
    await wrong.getByLabel('region').fill('GB');
    await wrong.getByLabel('region').press('Enter');
    await page.getByRole('button', { name: 'Upload 1 corrected row' }).click();
    await expect.poll(() => counts.innerText()).toMatch(/Created\s+4\s.*Failed\s+1\s+Not sent\s+0\b/s);
    await page.getByRole('button', { name: 'End the upload' }).click();
    await page.getByText('The upload has ended.').waitFor();
    expect(await runsOf(api)).toMatchObject([
      {
        status: 'finished',
        requests: 2,
        counts: { received: 5, created: 4, failed: 1 },
        not_sent: 0,
        not_kept: 0,
        reasons: [{ code: 'reference_not_found', count: 1 }],
      },
    ]);
    const corrected = (await api.get(`/v1/requests?run_id=${open.run_id}`)).body.requests;
    // A corrected row is not the first record of the file.
    expect(corrected).toMatchObject([{ first_record: null }, { first_record: 1 }]);
    expect(await page.getByLabel('shop_id', { exact: true }).isDisabled()).toBe(true);
  });

  it('a run without failures ends on its own, and one that is left ends with the rows that were not sent', async () => {
    const { api, page, shop } = await openScreen();
    await upload(page, 'good.csv', transactions(shop.shop_id, ['GB']), 'Upload 1 row');
    await page.getByText('The whole file is stored.').waitFor();
    expect(await runsOf(api)).toMatchObject([{ name: 'good', status: 'finished', not_sent: 0 }]);

    await upload(page, 'bad.csv', transactions(shop.shop_id, ['GB', 'GBR', 'x']), 'Upload 1 row');
    await page.getByRole('link', { name: 'Show this upload' }).click();
    await headingOf(page, 'Upload of files').waitFor();
    await expect
      .poll(() => runsOf(api))
      .toMatchObject([{ name: 'bad', status: 'failed', not_sent: 2, counts: { created: 1 } }, {}]);
  });

  it('interactions that were uploaded before are sent again only if the user says so', async () => {
    const { api, page, shop } = await openScreen();
    const text = interactions(shop.shop_id, 3);
    await upload(page, 'visits.ndjson', text, 'Upload 3 rows');
    await page.getByText('The whole file is stored.').waitFor();
    const [earlier] = await runsOf(api);

    await upload(page, 'the same visits.ndjson', text, 'Upload 3 rows');
    const question = page.getByRole('alert').filter({ hasText: 'This file was uploaded before' });
    await question.waitFor();
    const link = question.getByRole('link', { name: earlier.run_id });
    expect(await link.getAttribute('href')).toBe(`/console/uploads/runs/${earlier.run_id}`);
    expect(await question.locator('time').getAttribute('datetime')).toBe(earlier.opened);
    expect(await barriers(page)).toEqual([]);
    expect(await countInteractions(api)).toBe(3);
    expect(await runsOf(api)).toHaveLength(1);

    await question.getByRole('button', { name: 'Upload again' }).click();
    await page.getByText('The whole file is stored.').waitFor();
    expect(await countInteractions(api)).toBe(6);
    expect(await runsOf(api)).toMatchObject([{ name: 'the same visits', status: 'finished' }, {}]);
  });

  it('a page that is reloaded leaves its run open', async () => {
    const { api, page, shop } = await openScreen();
    let held = 0;
    await page.route(/&first_record=(?!1$)/, () => void held++);
    await upload(page, 'visits.ndjson', interactions(shop.shop_id, 4_001), 'Upload 4,001 rows');
    await expect.poll(() => held).toBe(2);
    await expect.poll(() => runsOf(api)).toMatchObject([{ counts: { created: 2_000 } }]);
    await page.reload();
    await headingOf(page, 'Upload a file').waitFor();
    expect(await runsOf(api)).toMatchObject([{ status: 'running', ended: null }]);
  });

  it('an upload whose run was ended elsewhere continues in another one, and stores nothing twice', async () => {
    const { api, page, shop } = await openScreen();
    const first = Promise.withResolvers<void>();
    await page.route(/&first_record=/, async (route) => {
      if (!route.request().url().endsWith('&first_record=1')) {
        await first.promise;
        return route.continue();
      }
      await route.fulfill({ response: await route.fetch() });
      const [{ run_id }] = await runsOf(api);
      await api.post(`/v1/runs/${run_id}/end`, { status: 'failed' });
      first.resolve();
    });
    await upload(page, 'visits.ndjson', interactions(shop.shop_id, 5_000), 'Upload 5,000 rows');
    await page.getByText('The run has ended, and nothing was stored').waitFor();
    await page.unroute(/&first_record=/);
    await page.getByRole('button', { name: 'Continue the upload' }).click();
    await page.getByRole('button', { name: 'Upload again' }).click();
    await page.getByText('The whole file is stored.').waitFor();
    expect(await countInteractions(api)).toBe(5_000);
    expect(await runsOf(api)).toMatchObject([
      { status: 'finished', counts: { created: 3_000 } },
      { status: 'failed', counts: { created: 2_000 } },
    ]);
  });

  it.each([
    [403, 'missing_permission'],
    [404, 'not_found'],
  ])('if the service answers a new run with %i, the file is uploaded without one', async (status, code) => {
    const { api, page, shop } = await openScreen();
    const json = { error: 'Not Found', code, message: 'There are no runs here.' };
    await page.route('**/v1/runs', (route) => route.fulfill({ status, json }));
    await upload(page, 'good.csv', transactions(shop.shop_id, ['GB', 'x']), 'Upload 1 row');
    await expect.poll(() => page.getByLabel('What was stored').innerText()).toMatch(/Created\s+1\b/);
    await page.getByRole('link', { name: 'Show the receipts' }).click();
    await page.getByRole('table', { name: 'Requests' }).waitFor();
    expect(await runsOf(api)).toEqual([]);
    expect((await api.get('/v1/requests?type=transactions')).body.requests).toMatchObject([{ run_id: null }]);
  });

  const hostile = [
    '<img src=x onerror="document.title=`owned`"><script>document.title=`owned`</script>.csv',
    `${'a'.repeat(400)}.csv`,
    '\u202egnp.\u0007\u0000\n\u001b[31m\ud800.csv',
    '../..\\secret/.csv',
  ];

  it.each(appearances)('hostile names of files do no harm, on %s', async (_, options) => {
    const { api, page, shop } = await openScreen(options);
    for (const name of hostile) {
      await page.goto(`${server.url}/console/upload-file`);
      await drop(page, name, transactions(shop.shop_id, ['GB']));
      await page.getByLabel('Type of the records').selectOption('transactions');
      await page.getByRole('button', { name: 'Check the file' }).click();
      await page.getByRole('button', { name: 'Upload 1 row' }).click();
      await page.getByText('The whole file is stored.').waitFor();
    }
    const runs = await runsOf(api);
    expect(runs.map(({ files }) => files[0].name)).toEqual([
      '.csv',
      '\u202egnp.\u0007\ufffd\n\u001b[31m\ufffd.csv',
      'a'.repeat(255),
      'script>.csv',
    ]);
    for (const { run_id } of runs) {
      await page.goto(`${server.url}/console/uploads/runs/${run_id}`);
      await page.getByRole('table', { name: 'Files' }).waitFor();
      expect([run_id, await barriers(page)]).toEqual([run_id, []]);
    }
    await page.goto(`${server.url}/console/uploads`);
    await page.getByRole('table', { name: 'Uploads of files' }).waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(await page.title()).toBe('Uploads · Intake');
  });

  it.each(appearances)('runs lead to their files, reasons and requests, on %s', async (_, options) => {
    const { api, page, shop } = await openScreen(options);
    await page.goto(`${server.url}/console/uploads`);
    await page.getByText('No files have been uploaded yet.').waitFor();
    expect(await barriers(page)).toEqual([]);
    const files = ['shops', 'interactions'].map((type, file) => ({
      name: `<b>${type}.csv`,
      bytes: 10_000,
      sha256: hash('sha256', `${randomUUID()} ${file}`),
      type,
    }));
    const opened = (name: string) => api.post('/v1/runs', { name, client_version: '0.2.0', files });
    const { run_id } = (await opened('nightly export')).body;
    await api.post('/v1/runs', { name: 'one that fails', files: files.slice(0, 1) }).then(({ body }) =>
      api.post(`/v1/runs/${body.run_id}/end`, {
        status: 'failed',
        files: [{ file: 0, not_sent: 7, not_kept: 1 }],
      }),
    );
    const [line = ''] = interactions(shop.shop_id, 1).split('\n');
    const records = [JSON.parse(line), { ...JSON.parse(line), item_id: randomUUID() }];
    await api.post(`/v1/data/shops?run_id=${run_id}&file=0&first_record=1`, { records: [newShop()] });
    await api.post(`/user-interactions/batch?run_id=${run_id}&file=1&first_record=1`, { records });

    await page.reload();
    const table = page.getByRole('table', { name: 'Uploads of files' });
    await table.waitFor();
    expect(await table.innerText()).toMatch(/one that fails.*Failed.*8.*nightly export.*Running/s);
    expect(await barriers(page)).toEqual([]);
    await table.getByRole('link', { name: 'nightly export' }).click();
    await page.getByRole('heading', { name: 'nightly export' }).waitFor();
    await page.getByRole('table', { name: 'Files' }).getByText('<b>interactions.csv').waitFor();
    expect(await page.getByLabel('Records').innerText()).toMatch(/^Received\s+3\s+Created\s+2\b/);
    await expect.poll(() => page.getByRole('table', { name: 'Requests' }).getByRole('link').count()).toBe(2);
    expect(await barriers(page)).toEqual([]);

    await page.getByRole('link', { name: 'Interactions: item_id reference_not_found' }).click();
    await headingOf(page, 'Interactions: item_id reference_not_found').waitFor();
    await page.getByText('1 rejection in total').waitFor();
    await page.getByText('its upload').click();
    await page.getByRole('link', { name: run_id }).click();
    await page.getByRole('link', { name: 'Correct, replay or discard what is still open' }).click();
    await headingOf(page, 'Rejections').waitFor();
    expect(await page.getByLabel('Upload (run id)').inputValue()).toBe(run_id);
    await page.getByText('From a terminal').click();
    expect(await page.locator('.terminal').innerText()).toContain(
      `intake rejections summary --run ${run_id}`,
    );
  });
});

async function upload(page: Page, name: string, text: string, button: string): Promise<void> {
  await chooseFile(page, name, text);
  await page.getByRole('button', { name: 'Check the file' }).click();
  await page.getByRole('button', { name: button }).click();
}

/** Drops a file onto the screen, whose name no disk would allow. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  const file = `new File([${JSON.stringify(text)}], ${JSON.stringify(name)})`;
  const dataTransfer = await page.evaluateHandle(
    `{ const dropped = new DataTransfer(); dropped.items.add(${file}); dropped }`,
  );
  await page.dispatchEvent('.drop-zone', 'drop', { dataTransfer });
}

/** A file with a transaction for each region. With the region `missing`, its shop is missing instead. */
function transactions(shopId: string, regions: readonly string[]): string {
  const records = regions.map((region) => ({
    transaction_id: randomUUID(),
    shop_id: region === 'missing' ? randomUUID() : shopId,
    region: region === 'missing' ? 'GB' : region,
    savings: 1,
    amount: 2,
  }));
  return `${csvOf(records)}\n`;
}

function interactions(shopId: string, count: number): string {
  const one = { interaction_type: 'PAGE_VIEW', item_type: 'SHOP', item_id: shopId };
  return Array.from(
    { length: count },
    (_, at) => `${JSON.stringify({ ...one, event_timestamp: 1_760_000_000 + at })}\n`,
  ).join('');
}

async function countInteractions(api: Api): Promise<number> {
  let count = 0;
  for (let cursor = ''; ; ) {
    const { interactions: page, next_cursor } = (await api.get(`/user-interactions?limit=1000${cursor}`))
      .body;
    count += page.length;
    if (next_cursor === null) return count;
    cursor = `&cursor=${next_cursor}`;
  }
}
