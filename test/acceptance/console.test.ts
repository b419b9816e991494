// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import {
  appearances,
  barriers,
  chooseFile,
  chromiumPath,
  csvOf,
  headingOf as heading,
  launchChromium,
  loadMs,
  signInAt,
} from '../support/console-browser.ts';
import { expectInTime } from '../support/in-time.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const markup = '<img src=x onerror="document.title=`owned`"><script>document.title=`owned`</script>';

describe.skipIf(!existsSync(chromiumPath))('the console (needs headless Chromium)', () => {
  let server: SharedServer;
  let browser: Browser;
  let key: string;
  let api: Api;
  const complaints: string[] = [];
  const shop = newShop({ name: markup });
  const late = [newShop({ name: 'Late Bakery' }), newShop({ name: 'Later Bakery' })];
  const customer = { customer_id: randomUUID(), user_id: randomUUID(), region: 'GB', gender: markup };

  beforeAll(async () => {
    server = await sharedServer();
    key = await server.createKey('console', ...everyPermission);
    api = apiOf(server.url, key);
    await api.post('/v1/data/shops', { records: [shop] });
    await api.post('/v1/data/customers', { records: [customer] });
    const transactions = many(30, () => newTransaction(shop.shop_id, { student_id: customer.customer_id }));
    // One transaction has a mistake.
    await api.post('/v1/data/transactions', {
      records: [...transactions, { ...newTransaction(shop.shop_id), amount: '12,90' }],
    });
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());

  async function open(options: BrowserContextOptions = appearances[0][1]): Promise<Page> {
    const context = await browser.newContext({ ...options, reducedMotion: 'reduce' });
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      // Browsers log every error status, including the 401 before signing in.
      if (message.type() === 'error' && !message.text().includes('status of 401'))
        complaints.push(message.text());
    });
    return page;
  }

  async function signedIn(options?: BrowserContextOptions): Promise<Page> {
    const page = await open(options);
    await signInAt(page, `${server.url}/console`, key, 'Overview');
    return page;
  }

  const show = async (page: Page, screen: string) => {
    await page.getByRole('link', { name: screen, exact: true }).first().click();
    await heading(page, screen).waitFor();
  };

  it('accepts a key to sign in, and explains what is wrong with another', async () => {
    const page = await open();
    await page.goto(`${server.url}/console/rejections?type=transactions`);
    await page.getByLabel('API key').fill('intake_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Signing in failed').waitFor();
    await page
      .getByText('This key does not work. Check it, or ask your operator for a new one.', { exact: true })
      .waitFor();
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    // After signing in, the console opens the requested screen.
    await heading(page, 'Rejections').waitFor();
    expect(page.url()).toBe(`${server.url}/console/rejections?type=transactions`);
    expect(await page.evaluate<string>('document.cookie + JSON.stringify(localStorage)')).not.toContain(
      'intake_',
    );
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    await page.context().close();
  });

  it('is opened by a link, once, and the link does not stay in the address', async () => {
    const made = await server.run(
      'console',
      'link',
      '--organisation',
      server.slugOf('console'),
      '--read-only',
    );
    const page = await open();
    await page.goto(server.url + made.trim());
    await heading(page, 'Overview').waitFor();
    expect(page.url()).not.toContain('#');
    await show(page, 'Rejections');
    await page.getByText('data:write').first().waitFor();
    const second = await open();
    await second.goto(server.url + made.trim());
    await second.getByText('The link could not be used').waitFor();
    await page.context().close();
    await second.context().close();
  });

  /** Uploads a CSV file on the upload screen, and returns the counts that the screen shows at the end. */
  async function uploadCsv(page: Page, name: string, records: readonly Record<string, unknown>[]) {
    await chooseFile(page, name, csvOf(records));
    await page.getByRole('button', { name: 'Check the file' }).click();
    await page.getByRole('button', { name: /^Upload \d+ rows?$/ }).click();
    return page.getByLabel('What was stored').innerText();
  }

  it('fixes an accident with clicks: uploaded too early, seen, its shops uploaded, replayed, gone', async () => {
    const page = await signedIn();
    await show(page, 'Upload a file');
    const early = many(15, (at) => newTransaction((late[at % 3] ?? shop).shop_id));
    const counts = await uploadCsv(page, 'transactions.csv', early);
    expect(counts).toMatch(/Created\s+5\b/);
    expect(counts).toMatch(/Failed\s+10\b/);

    await page.getByRole('link', { name: 'rejections', exact: true }).click();
    await heading(page, 'Rejections').waitFor();
    await page.getByRole('link', { name: /shop_id reference_not_found/ }).click();
    // The table lists the two missing shops.
    const missing = page.getByRole('table', { name: 'Missing ids' });
    for (const { shop_id } of late) await missing.getByText(shop_id).waitFor();
    await page.getByRole('link', { name: 'Upload the missing shops' }).click();
    await heading(page, 'Upload a file').waitFor();
    expect(await uploadCsv(page, 'shops.csv', late)).toMatch(/Created\s+2\b/);

    await show(page, 'Rejections');
    await page.getByRole('link', { name: /shop_id reference_not_found/ }).click();
    await page.getByRole('button', { name: 'Replay this group' }).click();
    await page.getByText('10 records stored, 0 failed again').waitFor();
    await page.getByText('This group has no open rejections.').waitFor();
    await show(page, 'Rejections');
    await page.getByRole('link', { name: /amount wrong_type/ }).waitFor();
    const left = () => page.getByRole('link', { name: /reference_not_found/ }).count();
    await expect.poll(left).toBe(0);
    await page.context().close();
  });

  it('corrects a rejected record in a form', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: '1 open rejection of transactions' }).click();
    await heading(page, 'Rejections').waitFor();
    await page.getByRole('link', { name: /amount wrong_type/ }).click();
    await page.getByRole('button', { name: /^Correct/ }).click();
    await page.getByLabel(/^amount/).fill('12.90');
    // Something in between answers first. That is not a result.
    const foreign = { json: { batches: [] } };
    await page.route(/\/v1\/data\/transactions$/, (route) => route.fulfill(foreign), { times: 1 });
    await page.getByRole('button', { name: 'Store the record' }).click();
    await page.getByText('Something between this page and the service answered with status 200.').waitFor();
    await page.getByRole('button', { name: 'Store the record' }).click();
    await page.getByText('The record is stored.').waitFor();
    const { body } = await api.get('/v1/rejections');
    expect(body.rejections).toEqual([]);
    expect((await api.get('/v1/data/transactions?limit=1000')).body.records).toHaveLength(46);
    await page.context().close();
  });

  it('shows an upload with its errors, and records with their references', async () => {
    const page = await signedIn();
    await show(page, 'Uploads');
    await page.getByLabel('Outcome').selectOption('Partial');
    await page.locator('table a').first().click();
    await page.getByText('shop_id').first().waitFor();
    await show(page, 'Data');
    await page.getByRole('link', { name: 'Shops', exact: true }).click();
    // The content is shown as text, not as markup.
    await page.getByText(markup).first().waitFor();
    for (const { name } of late) await page.getByText(name).first().waitFor();
    expect(await page.title()).not.toBe('owned');
    await page.context().close();
  });

  it('has no id of a person in any address', async () => {
    const page = await signedIn();
    const visited: string[] = [];
    page.on('framenavigated', (frame) => visited.push(frame.url()));
    await show(page, 'Data');
    await page.getByRole('link', { name: 'Customers', exact: true }).click();
    await page.getByText(customer.customer_id).first().click();
    await page.getByText(markup).first().waitFor();
    expect(visited.length).toBeGreaterThan(1);
    expect(
      visited.filter((url) => [customer.customer_id, customer.user_id].some((id) => url.includes(id))),
    ).toEqual([]);
    await page.context().close();
  });

  it.each(appearances)('is accessible, on %s', async (_, options) => {
    const page = await signedIn(options);
    for (const screen of [
      '',
      'uploads',
      'rejections',
      'data',
      'data/shops',
      'interactions',
      'access-requests',
      'privacy',
      'key',
    ]) {
      await page.goto(`${server.url}/console/${screen}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.waitForLoadState('networkidle');
      expect([screen, await barriers(page)]).toEqual([screen, []]);
    }
    await page.context().close();
  });

  it('shows a failed query as failed, with what to report', async () => {
    const page = await signedIn();
    await page.route('**/console/api/**/v1/rejections/summary*', (route) => route.abort());
    await show(page, 'Rejections');
    await page
      .getByRole('button', { name: /try again/i })
      .first()
      .waitFor();
    await page.unroute('**/console/api/**/v1/rejections/summary*');
    await page
      .getByRole('button', { name: /try again/i })
      .first()
      .click();
    await page
      .getByText(/No .*rejections|Nothing/i)
      .first()
      .waitFor();
    complaints.splice(0);
    await page.context().close();
  });

  it('reports no error, and ran nothing stored as a script', () => {
    expect(complaints).toEqual([]);
  });

  it('is small, and shows its first screen within a second', async () => {
    const page = await signedIn();
    const content = [page.getByRole('link', { name: 'Transactions', exact: true }), page.locator('canvas')];
    await expectInTime(async () => {
      const ms = await loadMs(page, `${server.url}/console/`, content);
      return [{ what: 'the first screen', ms, promisedMs: 1_000 }];
    });
    const loaded = await page.evaluate(() =>
      performance.getEntriesByType('resource').map(({ name }) => name),
    );
    const scripts = loaded.flatMap((url) => /assets\/.+\.js$/.exec(url) ?? []);
    const bytes = scripts.reduce((sum, file) => sum + statSync(`${root}dist/console/${file}.br`).size, 0);
    expect(scripts.length).toBeGreaterThan(3);
    expect(bytes).toBeLessThan(200_000);
    await page.context().close();
  });
});
