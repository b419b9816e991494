// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { appearances, barriers, chromiumPath, launchChromium, signInAt } from '../support/console-browser.ts';
import { newShop, newTransaction } from '../support/new-records.ts';

const isHere = existsSync(chromiumPath);

describe.skipIf(!isHere)('the erase dialog of the console (needs headless Chromium)', () => {
  let server: BuiltServer;
  let browser: Browser;
  let api: Api;
  let key: string;
  const shop = newShop();
  beforeAll(async () => {
    server = await startBuiltServer({ ERASURE_KEYS: 'a key of 32 characters or more for tests' });
    key = await server.createKey('acme', 'data:write', 'data:read', 'interactions:write', 'data:erase');
    api = apiOf(server.url, key);
    await api.upload('shops', [shop]);
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  /** Stores a customer with a transaction, whose device another student has used. */
  async function newPerson(): Promise<string> {
    const [customer, other] = [0, 1].map(() => ({
      customer_id: randomUUID(),
      user_id: randomUUID(),
      region: 'GB',
    }));
    if (!customer || !other) throw new Error('there are no customers');
    await api.upload('customers', [customer, other]);
    const { customer_id: student_id, user_id } = customer;
    await api.upload('transactions', [newTransaction(shop.shop_id, { student_id })]);
    const seen = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
    await api.post('/user-interactions', { ...seen, student_id: other.customer_id, user_id });
    return student_id;
  }

  async function ask(
    id: string,
    options: BrowserContextOptions,
    before: (page: Page) => Promise<unknown>,
  ): Promise<Page> {
    const context = await browser.newContext({ ...options, reducedMotion: 'reduce' });
    onTestFinished(() => context.close());
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    await signInAt(page, `${server.url}/console/privacy`, key, 'Erasures');
    await before(page);
    await page.getByLabel('Ids', { exact: true }).fill(id);
    await page.getByRole('button', { name: 'Erase 1 person' }).click();
    return page;
  }

  const yes = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Erase 1 person' });
  const consequences =
    'This erases 1 customer and 1 transaction, and removes the user id from 1 interaction of other students. ' +
    'Transactions and interactions are kept without the person.';

  it.each(appearances)('shows what will be erased before it can be confirmed, on %s', async (_, options) => {
    const id = await newPerson();
    const answer = Promise.withResolvers<void>();
    const page = await ask(id, options, (opened) =>
      opened.route('**/v1/erasures?dry_run=true', async (route) => {
        await answer.promise;
        await route.continue();
      }),
    );
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Counting what will be erased…').waitFor();
    await yes(page).click({ force: true });
    expect(await dialog.isVisible()).toBe(true);
    answer.resolve();
    await dialog.getByText(consequences).waitFor();
    expect(await barriers(page)).toEqual([]);
    expect((await api.get(`/v1/data/customers/${id}`)).status).toBe(200);
    await yes(page).click();
    await page.getByText('1 person is erased').waitFor();
    expect((await api.get(`/v1/data/customers/${id}`)).status).toBe(404);
  });

  it('lets people be erased if that cannot be counted', async () => {
    const id = await newPerson();
    const page = await ask(id, appearances[0][1], (opened) =>
      opened.route('**/v1/erasures?dry_run=true', (route) => route.abort()),
    );
    await page.getByText('What will be erased could not be counted').waitFor();
    await yes(page).click();
    await page.getByText('1 person is erased').waitFor();
  });

  it.each(appearances)('has a certificate that shows nothing but its own page, on %s', async (_, options) => {
    const { body } = await api.post('/v1/erasures', { customer_ids: [await newPerson()] });
    const path = `/v1/erasures/${body.erasure_id}`;
    await expect.poll(async () => (await api.get(path)).body.state).toMatch(/swept|done/);
    const context = await browser.newContext(options);
    onTestFinished(() => context.close());
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    await signInAt(page, `${server.url}/console/privacy`, key, 'Erasures');
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    const answer = await page.goto(`${server.url}/console/api${path}/certificate`);
    expect(answer?.headers()['content-security-policy']).not.toContain('unsafe');
    await page.getByRole('heading', { level: 1, name: 'Certificate of erasure' }).waitFor();
    // The signature is one long word, so it is only as wide as the page if the page's style is applied.
    expect([await barriers(page), complaints]).toEqual([[], []]);
  });
});
