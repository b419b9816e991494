// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { strToU8, zipSync } from 'fflate';
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import {
  appearances,
  barriers,
  chooseFile as choose,
  chromiumPath,
  launchChromium,
  signInAt,
} from '../support/console-browser.ts';
import { newShop } from '../support/new-records.ts';

const rows = 20_000;

describe.skipIf(!existsSync(chromiumPath))(
  'uploading a file from the console (needs headless Chromium)',
  () => {
    let server: BuiltServer;
    let browser: Browser;
    let key: string;
    const shop = newShop();

    beforeAll(async () => {
      server = await startBuiltServer();
      key = await server.createKey('console-upload');
      await post('shops', [shop]);
      browser = await launchChromium();
    });

    afterAll(async () => {
      await browser?.close();
      await server?.stop();
    });

    function api(path: string, init: RequestInit = {}): Promise<Response> {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      return fetch(server.url + path, { ...init, headers });
    }

    async function post(type: string, records: readonly object[]): Promise<void> {
      const answer = await api(`/v1/data/${type}`, { method: 'POST', body: JSON.stringify({ records }) });
      expect(answer.status).toBe(200);
    }

    async function countInteractions(): Promise<number> {
      const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson' };
      const lines = await (await fetch(`${server.url}/user-interactions`, { headers })).text();
      return lines.split('\n').filter((line) => line.includes('PAGE_VIEW')).length;
    }

    /** Signs in and opens the screen. The test fails if the page logs an error or violates its security policy. */
    async function openScreen(credential = key, options: BrowserContextOptions = {}): Promise<Page> {
      const context = await browser.newContext({ locale: 'en-GB', ...options });
      context.setDefaultTimeout(240_000);
      const page = await context.newPage();
      const errors: string[] = [];
      page.on('pageerror', (error) => errors.push(String(error)));
      page.on('console', (message) => {
        if (/content security policy/i.test(message.text())) errors.push(message.text());
      });
      onTestFinished(async () => {
        await context.close();
        expect(errors).toEqual([]);
      });
      await signInAt(page, `${server.url}/console/upload-file`, credential, 'Upload a file');
      return page;
    }

    it('a dirty CSV is checked, corrected, uploaded once although an answer is lost, and the rest is saved', async () => {
      const dirty = dirtyTransactions(shop.shop_id);
      const page = await openScreen();
      const keys: string[] = [];
      let isLost = false;
      await page.route(/\/v1\/data\/transactions\?mode=merge&run_id=/, async (route) => {
        keys.push(route.request().headers()['idempotency-key'] ?? 'none');
        if (isLost) return route.continue();
        isLost = true;
        await route.fetch();
        await route.abort();
      });
      let workers = 0;
      page.on('worker', () => workers++);
      await choose(page, 'export of 2026.csv', dirty.text);

      const type = page.getByLabel('Type of the records');
      await expect.poll(() => type.inputValue()).toBe('transactions');
      expect(await page.getByLabel('Field of Shop ID').inputValue()).toBe('shop_id');
      expect(await page.getByLabel('Field of Note').inputValue()).toBe('');
      await page.getByRole('button', { name: 'Check the file' }).click();
      await page.getByText('19,939 rows of 20,000 can be uploaded, 61 cannot.').waitFor();
      // Workers open and check the file, so the page itself does not have to.
      expect(workers).toBe(2);

      await page
        .getByRole('button', { name: /Region must be a country code of two letters, such as GB 40 rows/ })
        .click();
      for (const line of dirty.regionLines.slice(0, 2)) {
        const cell = rowOf(page, line).getByLabel('Region');
        await cell.fill('GB');
        await cell.press('Enter');
        await rowOf(page, line).getByText('Corrected').waitFor();
      }
      await page.getByRole('button', { name: 'Check references too' }).click();
      await page
        .getByText('The service would store 19,931 rows of 20,000; 69 would fail. Nothing is stored yet.')
        .waitFor();
      expect(keys).toEqual([]);

      await page.getByRole('button', { name: 'Upload 19,931 rows' }).click();
      const counts = page.getByLabel('What was stored');
      await expect.poll(() => counts.innerText()).toMatch(/Created\s+19,931\b/);
      expect(await counts.innerText()).toMatch(/Failed\s+10\s+Not sent\s+59\b/);
      expect(keys.every((each) => /^console-[0-9a-f]{32}-\d+$/.test(each))).toBe(true);
      expect(keys.filter((each) => each === keys[0])).toHaveLength(2);
      expect(new Set(keys).size).toBe(keys.length - 1);

      await page.getByRole('button', { name: /Shop ID .* 10 rows/ }).click();
      const [shopLine = 0] = dirty.shopLines;
      await rowOf(page, shopLine).getByLabel('Shop ID').fill(shop.shop_id);
      await rowOf(page, shopLine).getByLabel('Shop ID').press('Enter');
      await page.getByRole('button', { name: /Amount .* 20 rows/ }).click();
      await page.getByLabel('Amount: replace ten with').fill('10');
      await page.getByRole('button', { name: 'Replace all' }).click();
      await page.getByRole('button', { name: 'Upload 21 corrected rows' }).click();
      await expect.poll(() => counts.innerText()).toMatch(/Created\s+19,952\b/);
      expect(await counts.innerText()).toMatch(/Failed\s+10\s+Not sent\s+39\b/);

      const download = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Save the rest' }).click();
      const saved = await download;
      expect(saved.suggestedFilename()).toBe('export of 2026.failed.csv');
      const [header, ...rest] = readFileSync(await saved.path(), 'utf8')
        .trimEnd()
        .split('\n');
      expect(header).toBe('\ufeffTransaction ID,Shop ID,Region,Savings,Amount,Created,Note,failed_reason');
      expect(rest).toHaveLength(48);
      expect(
        rest.filter((line) => line.includes('Region: must be a country code of two letters, such as GB')),
      ).toHaveLength(38);
      expect(rest.filter((line) => line.includes('Shop ID: refers to a missing shop'))).toHaveLength(9);

      const [corrected = 0] = dirty.regionLines;
      for (const line of [corrected, shopLine]) {
        const answer = await api(`/v1/data/transactions/${dirty.ids[line - 2]}`);
        expect(await answer.json()).toMatchObject({ shop_id: shop.shop_id, region: 'GB' });
      }
    });

    it('an interrupted upload of interactions continues, and stores each of them once', async () => {
      const count = 5_000;
      const lines = Array.from({ length: count }, (_, at) =>
        JSON.stringify({
          interaction_type: 'PAGE_VIEW',
          item_type: at % 1_000 === 999 ? 'SHOPS' : 'SHOP',
          item_id: shop.shop_id,
          event_timestamp: 1_760_000_000 + at,
        }),
      );
      const page = await openScreen();
      let requests = 0;
      await page.route(/\/user-interactions\/batch\?run_id=/, async (route) => {
        // The second request is stored, but the page receives a response that it does not retry.
        if (++requests !== 2) return route.continue();
        await route.fetch();
        await route.fulfill({ status: 400, contentType: 'text/plain', body: 'a proxy' });
      });
      await choose(page, 'interactions.ndjson', lines.join('\n'));
      await page.getByRole('button', { name: 'Check the file' }).click();
      await page.getByRole('button', { name: 'Upload 4,995 rows' }).click();
      await page.getByText('The upload was interrupted').waitFor();
      await page.getByRole('button', { name: 'Continue the upload' }).click();
      const counts = page.getByLabel('What was stored');
      await expect.poll(() => counts.innerText()).toMatch(/Created\s+4,995\b/);
      expect(await countInteractions()).toBe(4_995);

      const cell = rowOf(page, 1_000).getByLabel('item_type');
      await cell.fill('SHOP');
      await cell.press('Enter');
      await page.getByRole('button', { name: 'Upload 1 corrected row' }).click();
      await expect.poll(() => counts.innerText()).toMatch(/Created\s+4,996\b/);
      expect(await countInteractions()).toBe(4_996);
    });

    it('an upload whose outcome is unknown says so, and links to the receipt of what is stored', async () => {
      const page = await openScreen();
      let requests = 0;
      await page.route(/\/user-interactions\/batch\?run_id=/, async (route) => {
        // The first answer is lost. Afterwards, the service has lower limits.
        if (++requests === 1) {
          await route.fetch();
          return route.abort();
        }
        const details = [
          { field: 'records', code: 'too_many_records', message: 'must have at most 1 record' },
        ];
        const body = { code: 'invalid_request', message: 'The request is invalid.', details };
        await route.fulfill({ status: 400, json: body });
      });
      const one = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id };
      const lines = [1, 2, 3].map((at) => `${JSON.stringify({ ...one, event_timestamp: at })}\n`);
      await choose(page, 'interactions.ndjson', lines.join(''));
      await page.getByRole('button', { name: 'Check the file' }).click();
      await page.getByRole('button', { name: 'Upload 3 rows' }).click();
      await page.getByText('The outcome is unknown: what was sent last may be stored.').waitFor();
      await page.getByText('must have at most 1 record').waitFor();
      expect(requests).toBe(2);
      const [receipts] = await Promise.all([
        page.waitForEvent('popup'),
        page.getByRole('alert').getByRole('link').click(),
      ]);
      await receipts.getByRole('heading', { level: 1, name: 'Uploads' }).waitFor();
      const table = receipts.getByRole('table', { name: 'Requests' });
      await table.waitFor();
      expect(await table.getByRole('row').count()).toBe(1 + 1);
      expect(await table.innerText()).toMatch(/Complete\s+3\b/);
    });

    it.each([
      ['tags.xlsx', 'Row 3', xlsxOf],
      ['tags.parquet', 'Record 2', parquetOf],
    ])('%s is read under the content security policy, corrected and uploaded', async (name, place, make) => {
      // A library might decompress a file of this size in a worker, and the security policy forbids that worker's script.
      const tags = Array.from({ length: 12_000 }, (_, at) => [randomUUID(), at === 1 ? '' : `tag ${at}`]);
      const page = await openScreen();
      await choose(page, name, make(['Tag ID', 'name'], tags));
      await expect.poll(() => page.getByLabel('Field of Tag ID').inputValue()).toBe('tag_id');
      await page.getByRole('button', { name: 'Check the file' }).click();
      await page.getByText('11,999 rows of 12,000 can be uploaded, 1 cannot.').waitFor();
      await page.getByRole('heading', { name: place, exact: true }).waitFor();
      await page.getByLabel('name', { exact: true }).fill('vegan');
      await page.getByLabel('name', { exact: true }).press('Enter');
      await page.getByRole('button', { name: 'Upload 12,000 rows' }).click();
      await page.getByText('The whole file is stored.').waitFor();
      expect(await (await api(`/v1/data/tags/${tags[1]?.[0]}`)).json()).toMatchObject({ name: 'vegan' });
    });

    it.each(appearances)('is accessible in each of its states, on %s', async (_, options) => {
      const page = await openScreen(key, { ...options, reducedMotion: 'reduce' });
      const expectUsable = async (state: string) =>
        expect([state, await barriers(page)]).toEqual([state, []]);
      await expectUsable('empty');
      await choose(page, 'transactions.csv', fewTransactions(shop.shop_id));
      await page.getByRole('button', { name: 'Check the file' }).waitFor();
      await expectUsable('mapped');
      await page.getByRole('button', { name: 'Check the file' }).click();
      await page.getByText('2 rows of 5 can be uploaded, 3 cannot.').waitFor();
      await page.getByText('The last line, line 6, has no line break at its end.').waitFor();
      await expectUsable('checked, with all problems');
      await page.getByRole('button', { name: /^Region .* 2 rows/ }).click();
      await page.getByRole('button', { name: 'Replace all' }).waitFor();
      await expectUsable('checked, with one problem');
      await page.getByRole('button', { name: 'Upload 2 rows' }).click();
      await page.getByLabel('What was stored').waitFor();
      await expectUsable('uploaded');
    });

    it('the worker that reads files may not send requests', async () => {
      const page = await (await browser.newContext()).newPage();
      page.setDefaultTimeout(240_000);
      await signInAt(page, `${server.url}/console/upload-file`, key, 'Upload a file');
      const [first] = await Promise.all([page.waitForEvent('worker'), choose(page, 'a.csv', 'shop_id\n1\n')]);
      // Start the same script again, because the first worker exits as soon as it has answered.
      const script = JSON.stringify(first.url());
      const [worker] = await Promise.all([
        page.waitForEvent('worker'),
        page.evaluate(`{ globalThis.kept = new Worker(${script}, { type: 'module' }); }`),
      ]);
      const session = `fetch('${server.url}/console/api/session').then(() => 'answered', () => 'refused')`;
      expect(await page.evaluate(session)).toBe('answered');
      expect(await worker.evaluate(session)).toBe('refused');
      await page.context().close();
    });

    it('a file in another encoding can be read once its encoding is chosen', async () => {
      const page = await openScreen();
      // The header is 店舗ID,名前,国 in Shift JIS.
      const header = Buffer.from('935895dc49442c96bc914f2c8d91', 'hex');
      await choose(page, 'export.csv', Buffer.concat([header, Buffer.from('\n1,a,GBR\n')]));
      await page.getByText('save the file as UTF-8, or choose its encoding').waitFor();
      expect(await barriers(page)).toEqual([]);
      await page.getByLabel('Encoding').selectOption('utf-16le');
      await page.getByLabel('Encoding').selectOption('shift_jis');
      await page.getByLabel('Type of the records').selectOption('shops');
      // The chosen encoding is kept when the type changes, although each type has its own suggestions.
      expect(await page.getByLabel('Encoding').inputValue()).toBe('shift_jis');
      await page.getByLabel('Field of 店舗ID').selectOption('shop_id');
      await page.getByLabel('Field of 名前').selectOption('name');
      await page.getByLabel('Field of 国').selectOption('region');
      await page.getByRole('button', { name: 'Check the file' }).click();
      await page.getByText('0 rows of 1 can be uploaded, 1 cannot.').waitFor();
      await page.getByText('Correct the rows below, or change how the file is read.').waitFor();
    });

    it('a key for one type uploads that type, and a key without the permission sees the reason', async () => {
      const ofTags = await server.createKey('console-upload', 'data:write:tags', 'data:read');
      const page = await openScreen(ofTags);
      await drop(page, 'shops.csv', `shop_id,name,region\n${randomUUID()},Bakery,GB\n`);
      await page.getByText('This key may not upload shops. It may upload: tags.').waitFor();
      expect(await page.getByRole('button', { name: 'Check the file' }).isDisabled()).toBe(true);

      const readOnly = await openScreen(await server.createKey('console-upload', 'data:read'));
      await readOnly.getByText('Uploading records needs the permission data:write').waitFor();
    });
  },
);

/** Drops a file onto the screen, as if dragged from another window. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  // The script is a string, because the compiler does not know the browser's types here.
  const file = `new File([${JSON.stringify(text)}], ${JSON.stringify(name)})`;
  const dataTransfer = await page.evaluateHandle(
    `{ const dropped = new DataTransfer(); dropped.items.add(${file}); dropped }`,
  );
  await page.dispatchEvent('.drop-zone', 'drop', { dataTransfer });
}

function rowOf(page: Page, line: number) {
  return page.getByRole('listitem').filter({
    has: page.getByRole('heading', { name: `Line ${line.toLocaleString('en-GB')}`, exact: true }),
  });
}

type Make = (header: readonly string[], rows: readonly (readonly string[])[]) => Uint8Array;

/** Makes a spreadsheet with inline strings. */
const xlsxOf: Make = (header, rows) => {
  const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
  const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
  const cells = (row: readonly string[], line: number) =>
    row.map((text, at) => `<c r="${'AB'[at]}${line}" t="inlineStr"><is><t>${text}</t></is></c>`).join('');
  const lines = [header, ...rows].map((row, at) => `<row r="${at + 1}">${cells(row, at + 1)}</row>`);
  const parts = {
    'xl/workbook.xml': `<workbook xmlns="${main}" xmlns:r="${relations}"><sheets><sheet name="Tags" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="${relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
    'xl/worksheets/sheet1.xml': `<worksheet xmlns="${main}"><sheetData>${lines.join('')}</sheetData></worksheet>`,
  };
  const zipped = Object.entries(parts).map(
    ([path, xml]) => [path, strToU8(`<?xml version="1.0" encoding="UTF-8"?>${xml}`)] as const,
  );
  return zipSync(Object.fromEntries(zipped));
};

const parquetOf: Make = (header, rows) => {
  const columnData = header.map((name, at) => ({
    name,
    data: rows.map((row) => row[at] ?? ''),
    type: 'STRING' as const,
  }));
  return new Uint8Array(parquetWriteBuffer({ columnData, codec: 'SNAPPY' }));
};

/**
 * Returns five transactions: one is valid, two have the same mistake, one has an extra cell, and one has a missing
 * shop.
 */
function fewTransactions(shopId: string): string {
  const line = (region: string, more = '', shop = shopId) => `${randomUUID()},${shop},${region},1,2,a${more}`;
  const header = 'Transaction ID,Shop ID,Region,Savings,Amount,Note';
  return [header, line('GB'), line('GBR'), line('GBR'), line('GB', ',b'), line('GB', '', randomUUID())].join(
    '\n',
  );
}

/** Returns transactions, including 61 invalid ones and 10 with a missing shop. */
function dirtyTransactions(shopId: string) {
  const ids = Array.from({ length: rows }, () => randomUUID());
  const regionLines: number[] = [];
  const shopLines: number[] = [];
  const lines = ids.map((id, at) => {
    const line = at + 2;
    if (at === 777) return `${id},${shopId},GB,1,2,2026-01-02,a,b`;
    if (at % 500 === 10) regionLines.push(line);
    if (at % 2_000 === 20) shopLines.push(line);
    const region = at % 500 === 10 ? 'GBR' : 'GB';
    const amount = at % 1_000 === 5 ? 'ten' : '22.49';
    return `${id},${at % 2_000 === 20 ? randomUUID() : shopId},${region},2.5,${amount},2026-01-02 10:00:00,"note, ${at}"`;
  });
  const header = 'Transaction ID,Shop ID,Region,Savings,Amount,Created,Note';
  return { text: `${header}\n${lines.join('\n')}\n`, ids, regionLines, shopLines };
}
