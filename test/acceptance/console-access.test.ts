// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import pg from 'pg';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { accessPerson, downloadAccess, linesOf } from '../support/access-person.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import {
  appearances,
  barriers,
  chromiumPath,
  headingOf,
  launchChromium,
  signInAt,
} from '../support/console-browser.ts';
import { newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

const isHere = existsSync(chromiumPath);

describe.skipIf(!isHere)('access requests in the console (needs headless Chromium)', () => {
  let server: BuiltServer;
  let browser: Browser;
  let api: Api;
  /** The key of an employee who may only answer access requests. */
  let deskKey: string;
  const shop = newShop();
  const customer = { customer_id: randomUUID(), user_id: randomUUID(), region: 'GB', gender: 'female' };
  const visitor = `visitor ${randomUUID()}`;
  const bought = newTransaction(shop.shop_id, { student_id: customer.customer_id });
  const people = [customer.customer_id, customer.user_id, visitor, encodeURIComponent(visitor)];
  /** Every URL that a page visited or requested. */
  const addresses: string[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    server = await startBuiltServer();
    const scopes = ['data:write', 'data:read', 'interactions:write', 'data:access'];
    api = apiOf(server.url, await server.createKey('acme', ...scopes));
    deskKey = await server.createKey('acme', 'data:access');
    await api.upload('shops', [shop]);
    await api.upload('customers', [customer]);
    await api.upload('transactions', [bought, newTransaction(shop.shop_id, { student_id: randomUUID() })]);
    const seen = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
    await api.post('/user-interactions', { ...seen, user_id: visitor });
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  async function open(
    key: string,
    screen = 'access-requests',
    options: BrowserContextOptions = appearances[0][1],
  ): Promise<Page> {
    const context = await browser.newContext({ ...options, reducedMotion: 'reduce' });
    onTestFinished(() => context.close());
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    page.on('request', (request) => addresses.push(request.url()));
    page.on('framenavigated', (frame) => addresses.push(frame.url()));
    page.on('download', (download) => addresses.push(download.url(), download.suggestedFilename()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      // Browsers log every error status, including the 401 before signing in.
      if (message.type() === 'error' && !message.text().includes('status of 401'))
        complaints.push(message.text());
    });
    const title = screen === '' ? 'Overview' : 'Access requests';
    await signInAt(page, `${server.url}/console/${screen}`, key, title);
    return page;
  }

  const customerIds = (page: Page) => page.getByLabel('Customer ids');
  const userIds = (page: Page) => page.getByLabel('User ids');
  const request = (page: Page) => page.getByRole('button', { name: 'Request the records' });
  const rowOf = (page: Page, id: string) => page.getByRole('row').filter({ hasText: id });

  async function savedBy(page: Page, link: Locator): Promise<{ name: string; text: string }> {
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
  }

  it('a person’s records are requested, collected and downloaded, as in the API', async () => {
    const page = await open(deskKey);
    await page.getByText('Nothing has been requested.').waitFor();
    await customerIds(page).fill(customer.customer_id);
    await userIds(page).fill(visitor);
    // The service cannot collect the data until this lock is released.
    const held = new pg.Client({ connectionString: server.databaseUrl });
    await held.connect();
    // Otherwise the collection would begin only after the lock is released, because user ids are rewritten first.
    await held.query('update tenants set user_ids_rewritten_from = null');
    try {
      await held.query('begin; lock table access_request_records in share mode');
      await request(page).click();
      await page.getByText('The records are being collected.').waitFor();
      await page.getByRole('row').filter({ hasText: 'Collecting' }).waitFor();
      expect(await page.getByRole('link', { name: 'Download' }).count()).toBe(0);
    } finally {
      await held.end();
    }
    await page.getByText('3 records are collected.').waitFor();
    expect(await customerIds(page).inputValue()).toBe('');

    const [found] = (await api.get('/v1/access-requests')).body.access_requests;
    const id: string = found.access_request_id;
    const inNotice = await savedBy(page, page.getByRole('status').getByRole('link', { name: 'Download' }));
    expect(inNotice.name).toBe(`access-request-${id}.ndjson`);
    const lines = linesOf(inNotice.text);
    expect(lines).toEqual(await downloadAccess(api, id));
    expect(lines).toMatchObject([
      { type: 'customers', id: customer.customer_id, record: { gender: 'female' } },
      { type: 'interactions', record: { user_id: visitor } },
      { type: 'transactions', id: bought.transaction_id, record: { student_id: customer.customer_id } },
    ]);
    const row = rowOf(page, id);
    expect(await row.innerText()).toContain('Collected');
    await row.getByText('3 records').click();
    for (const [type, count] of Object.entries({ customers: 1, interactions: 1, transactions: 1 }))
      await row.getByText(`${type}: ${count}`).waitFor();
    const days = Date.parse(found.expires) - Date.parse(found.done);
    expect(days).toBe(7 * 24 * 3_600_000);
    expect(await row.locator('time').nth(1).getAttribute('datetime')).toBe(found.expires);
    expect(await savedBy(page, row.getByRole('link', { name: 'Download' }))).toEqual(inNotice);
  });

  it('a person who is not stored is reported as such, without a file', async () => {
    const page = await open(deskKey);
    await customerIds(page).fill(randomUUID());
    await request(page).click();
    await page.getByText('Nothing is stored about this person.').waitFor();
    const newest = page.getByRole('row').nth(1);
    expect(await newest.innerText()).toContain('Nothing found');
    expect(await newest.getByRole('link').count()).toBe(0);
  });

  it('an invalid id is not sent', async () => {
    const page = await open(deskKey);
    const sent: string[] = [];
    page.on('request', (one) => sent.push(one.method()));
    await userIds(page).fill(visitor);
    await customerIds(page).fill('42');
    await page.getByText('1 entry is not a valid id').waitFor();
    await request(page).click({ force: true });
    await customerIds(page).fill('');
    await request(page).click();
    await page.getByText('1 record is collected.').waitFor();
    expect(sent.filter((method) => method === 'POST')).toHaveLength(1);
  });

  it('an expired request stays in the list, without its file', async () => {
    const id = await accessPerson(api, { customer_ids: [customer.customer_id] });
    await queryDatabase(
      server.databaseUrl,
      `update access_requests set done_at = done_at - interval '7 days' where access_request_id = '${id}'`,
    );
    const row = rowOf(await open(deskKey), id);
    await row.getByText('File deleted').waitFor();
    expect(await row.getByRole('link').count()).toBe(0);
  });

  it('a request that waits is cancelled with a click', async () => {
    const key = await server.createKey('waiting', 'data:access');
    const id = await accessPerson(apiOf(server.url, key));
    // No request is started while too many records are kept.
    await queryDatabase(
      server.databaseUrl,
      `update access_requests set records = '{"interactions": 5000000}' where access_request_id = '${id}'`,
    );
    const waiting = `${id.slice(0, -12)}${randomUUID().slice(-12)}`;
    await queryDatabase(
      server.databaseUrl,
      `insert into access_requests (organisation_id, access_request_id, key_id, people)
       select organisation_id, '${waiting}', key_id, 1 from access_requests where access_request_id = '${id}'`,
    );
    const row = rowOf(await open(key), waiting);
    await row.getByText('Waiting').waitFor();
    await row.getByRole('button', { name: `Cancel access request ${waiting}` }).click();
    await row.getByText('Cancelled').waitFor();
    expect(await row.getByRole('button').count()).toBe(0);
    expect((await apiOf(server.url, key).get(`/v1/access-requests/${waiting}`)).body.state).toBe('cancelled');
  });

  it('without the permission the screen sends no request, and explains what to ask for', async () => {
    const key = await server.createKey('acme', 'data:read', 'data:erase');
    const page = await open(key, '');
    const asked: string[] = [];
    page.on('request', (sent) => asked.push(sent.url()));
    await page.getByRole('link', { name: /^Access requests.*no access/ }).click();
    await headingOf(page, 'Access requests').waitFor();
    const notice = await page.locator('#main .notice').innerText();
    expect(notice).toContain('needs the permission data:access');
    expect(notice).toContain('The operator can issue a key that has it.');
    expect(await page.getByRole('textbox').count()).toBe(0);
    await page.waitForLoadState('networkidle');
    expect(asked.filter((url) => url.includes('/api/v1/access-requests'))).toEqual([]);
  });

  it('the session of another organisation sees nothing of a request', async () => {
    const id = await accessPerson(api, { customer_ids: [customer.customer_id] });
    const page = await open(await server.createKey('other', 'data:access'));
    await page.getByText('Nothing has been requested.').waitFor();
    for (const path of [`/${id}`, `/${id}/records`]) {
      const answer = await page.request.get(`${server.url}/console/api/v1/access-requests${path}`);
      expect([answer.status(), (await answer.json()).code]).toEqual([404, 'access_request_not_found']);
    }
    const list = await page.request.get(`${server.url}/console/api/v1/access-requests`);
    expect([list.status(), (await list.json()).access_requests]).toEqual([200, []]);
  });

  it.each(appearances)('is accessible, on %s', async (_, options) => {
    const page = await open(deskKey, 'access-requests', options);
    await customerIds(page).fill(customer.customer_id);
    await request(page).click();
    await page.getByText('2 records are collected.').waitFor();
    await userIds(page).fill('x'.repeat(256));
    await page.getByText('1 entry is not a valid id').waitFor();
    await page.locator('.terminal summary').click();
    expect(await barriers(page)).toEqual([]);
  });

  it('has no id of a person in any address or file name', () => {
    expect(addresses.filter((address) => address.endsWith('.ndjson'))).toHaveLength(2);
    expect(addresses.filter((address) => people.some((id) => address.includes(id)))).toEqual([]);
  });

  it('reports no error', () => {
    expect(complaints).toEqual([]);
  });
});
