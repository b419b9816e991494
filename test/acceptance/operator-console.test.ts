// @module-tag full

import { existsSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { adminToken } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { barriers, chromiumPath } from '../support/console-browser.ts';
import { newShop, newTransaction } from '../support/new-records.ts';
import { heading, OperatorPages, press, rowOf, signInWith } from '../support/operator-pages.ts';
import { queryDatabase } from '../support/query-database.ts';

const markup = '<img src=x onerror="document.title=`owned`">';

interface Field {
  readonly type: string;
  readonly options?: readonly { readonly value: string }[];
  click(): void;
  dispatchEvent(event: Event): void;
}

/** Runs in the browser. Changes fields before it shows anything. React ignores values that are set with its own setter. */
function changeAll(fields: readonly Field[]): void {
  for (const field of fields) {
    const { type, options } = field;
    if (type === 'checkbox') field.click();
    else {
      const value = options?.[1]?.value ?? '2030-01-01T10:00';
      Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value')?.set?.call(field, value);
      field.dispatchEvent(new Event(options ? 'change' : 'input', { bubbles: true }));
    }
  }
}

describe.skipIf(!existsSync(chromiumPath))('the operator’s console (needs headless Chromium)', () => {
  let pages: OperatorPages;
  const secrets: string[] = [adminToken];

  beforeAll(async () => {
    pages = await OperatorPages.start();
    await pages.server.admin.post('/admin/v1/organisations', { slug: 'globex', name: markup });
  });
  afterAll(() => pages?.stop());

  const statusOf = async (key: string) => (await apiOf(pages.server.url, key).get('/v1/data')).status;

  /** Returns the key, which the screen shows only once. */
  async function shownSecret(page: Page, title: RegExp): Promise<string> {
    const secret = await page.getByRole('region', { name: title }).locator('pre').innerText();
    secrets.push(secret.trim().split('#').at(-1)!);
    return secret.trim();
  }

  async function issueKey(slug: string, page: Page): Promise<string> {
    await page.goto(pages.at(`organisations/${slug}/keys`));
    await press(page, 'Issue a key');
    await press(page, 'Issue the key');
    const key = await shownSecret(page, /The new key/);
    await press(page, 'I have copied it');
    return key;
  }

  it('accepts an admin token to sign in, and explains what is wrong with another', async () => {
    const page = await pages.open();
    await page.goto(pages.at('keys?unused=true'));
    await signInWith(page, `${adminToken.slice(0, -1)}x`);
    await page.getByText('Signing in failed').waitFor();
    await signInWith(page);
    // After signing in, the console opens the requested screen.
    await heading(page, 'Keys').waitFor();
    expect(page.url()).toBe(pages.at('keys?unused=true'));
    expect(await page.getByLabel('Never used').isChecked()).toBe(true);
    const kept = await page.evaluate<string>('document.cookie + JSON.stringify(localStorage)');
    expect(kept).not.toContain('intake_admin');
    await press(page, 'Sign out');
    await page.getByLabel('Admin token').waitFor();
  });

  it('creates an organisation and issues a key that works, shown once', async () => {
    const page = await pages.signedIn('organisations');
    await press(page, 'Create an organisation');
    await page.getByRole('textbox', { name: 'Slug' }).fill('acme');
    await page.getByRole('textbox', { name: 'Name' }).fill('Acme Student Discounts');
    await press(page, /^Create$/);
    await heading(page, 'Acme Student Discounts').waitFor();
    await page.getByRole('link', { name: 'Keys and links' }).click();
    await page.getByText('No key has been issued for this organisation.').waitFor();
    await press(page, 'Issue a key');
    await page.getByLabel('Label').fill('nightly export');
    await page.getByLabel(/^interactions:write/).uncheck();
    await press(page, 'Issue the key');
    const key = await shownSecret(page, /The new key/);
    expect(await statusOf(key)).toBe(200);
    expect((await apiOf(pages.server.url, key).post('/user-interactions', {})).status).toBe(403);
    await rowOf(page, 'nightly export').waitFor();
    await page.reload();
    await rowOf(page, 'nightly export').waitFor();
    expect(await page.locator('body').innerText()).not.toContain(key);
  });

  it('issues a browser key for the pages of an origin', async () => {
    const page = await pages.signedIn('organisations/globex/keys');
    await press(page, 'Issue a key');
    await page.getByLabel(/^Browser key/).check();
    await page.getByLabel('Origins of the pages').fill('https://shop.example\n');
    await press(page, 'Issue the key');
    const key = await shownSecret(page, /The new key/);
    const { body } = await pages.server.admin.get('/admin/v1/keys?organisation=globex');
    expect(body.keys).toContainEqual(
      expect.objectContaining({
        key_id: key.split('_')[1],
        browser: true,
        origins: ['https://shop.example'],
      }),
    );
  });

  it('sets a limit, and returns to the default', async () => {
    const page = await pages.signedIn('organisations/globex');
    await press(page, 'Change limits');
    await page.getByLabel('Records per second').fill('100000');
    await press(page, 'Save');
    await page.getByText('100,000 (own limit)').waitFor();
    const limits = async () => (await pages.server.admin.get('/admin/v1/organisations/globex')).body;
    expect(await limits()).toMatchObject({
      records_per_second_max: 100_000,
      requests_per_second_max: null,
    });
    await press(page, 'Change limits');
    await page.getByLabel('Records per second').fill('');
    await press(page, 'Save');
    await page.getByText('100,000 (own limit)').waitFor({ state: 'detached' });
    expect(await limits()).toMatchObject({ records_per_second_max: null });
  });

  it('suspends after a question, and resumes', async () => {
    const page = await pages.signedIn();
    const key = await issueKey('globex', page);
    await page.goto(pages.at('organisations/globex'));
    await press(page, 'Suspend');
    await press(page, 'Cancel');
    expect(await statusOf(key)).toBe(200);
    await press(page, 'Suspend');
    await press(page, 'Suspend globex');
    await page.getByText('This organisation is suspended.').waitFor();
    await expect.poll(() => statusOf(key)).toBe(403);
    await page.goto(pages.at('organisations'));
    await rowOf(page, 'globex').getByText('Suspended').waitFor();
    await page.goto(pages.at('organisations/globex'));
    await press(page, 'Resume');
    await press(page, 'Resume globex');
    await page.getByText('This organisation is suspended.').waitFor({ state: 'detached' });
    await expect.poll(() => statusOf(key)).toBe(200);
  });

  it('switches the lake on, shows how far it is, and switches it off', async () => {
    const page = await pages.signedIn('organisations/globex');
    const lake = page.locator('section.card').filter({ has: page.getByRole('heading', { name: 'Lake' }) });
    await lake.getByText('off', { exact: true }).waitFor();
    await press(page, 'Switch the lake on');
    expect(await barriers(page)).toEqual([]);
    await press(page, 'Switch the lake on for globex');
    await lake.getByText('no process is writing it yet').waitFor();
    const { body } = await pages.server.admin.get('/admin/v1/organisations/globex');
    expect(body.lake).toBe(true);
    const progress = async (copiedAfter: string | null) => {
      await queryDatabase(
        pages.server.databaseUrl,
        `insert into lake_progress (organisation_id, number, epoch, copied_type, copied_after, as_of)
           values ($1, 9000000000000, '', 'interactions', $2, '2026-03-14T09:26:53Z')
           on conflict (organisation_id) do update set copied_after = excluded.copied_after`,
        [body.organisation_id, copiedAfter],
      );
      await page.reload();
    };
    await progress('00000000-0000-0000-0000-000000000000');
    await lake.getByText('copying the stored data').waitFor();
    await progress(null);
    await lake.getByText('nothing waits').waitFor();
    expect(await lake.locator('time').getAttribute('datetime')).toBe('2026-03-14T09:26:53.000Z');
    expect(await barriers(page)).toEqual([]);
    await page.getByText('From a terminal').click();
    await page.getByText('intake-server organisations set-lake globex off').waitFor();
    await press(page, 'Switch the lake off');
    await press(page, 'Switch the lake off for globex');
    await lake.getByText('off', { exact: true }).waitFor();
  });

  it('rotates a key with a grace period and revokes the old one', async () => {
    const page = await pages.signedIn();
    const old = await issueKey('globex', page);
    const [, oldId = ''] = old.split('_');
    await press(page, `Rotate the key ${oldId}`);
    await page.getByLabel('The old key keeps working for').selectOption('7 days');
    await press(page, 'Issue the new key');
    const successor = await shownSecret(page, /The new key/);
    expect([await statusOf(old), await statusOf(successor)]).toEqual([200, 200]);
    await press(page, `Revoke the key ${oldId}`);
    await press(page, `Revoke ${oldId}`);
    // The successor's row also mentions the id.
    await page.getByRole('row').filter({ hasText: oldId }).getByText('Revoked').waitFor();
    await expect.poll(() => statusOf(old)).toBe(401);
    expect(await statusOf(successor)).toBe(200);
  });

  it('makes a link that signs somebody in to the console of the organisation', async () => {
    const page = await pages.signedIn('organisations/globex/keys');
    await press(page, 'Make a console link');
    await page.getByLabel('Address of the service').fill(`${pages.server.url}/ignored`);
    await press(page, 'Make the link');
    const link = await shownSecret(page, /A link to the console of globex/);
    expect(link.startsWith(`${pages.server.url}/console/sign-in#`)).toBe(true);
    const context = await pages.browser.newContext();
    onTestFinished(() => context.close());
    const opened = await context.newPage();
    await opened.goto(link);
    await heading(opened, 'Overview').waitFor();
    // The form for the next link suggests the same URL.
    await press(page, 'Make a console link');
    expect(await page.getByLabel('Address of the service').inputValue()).toBe(pages.server.url);
  });

  it('shows what an organisation uploaded and what failed, without its records', async () => {
    const page = await pages.signedIn();
    const api = apiOf(pages.server.url, await issueKey('globex', page));
    const shop = newShop({ name: markup });
    await api.upload('shops', [shop]);
    const amount = '12,90';
    await api.upload('transactions', [
      newTransaction(shop.shop_id),
      { ...newTransaction(shop.shop_id), amount },
    ]);
    await page.goto(pages.at('organisations/globex/uploads'));
    await rowOf(page, 'Shops').getByText('Complete').waitFor();
    await page.getByLabel('Outcome').selectOption('Partial');
    await rowOf(page, 'Transactions').getByText('Partial').waitFor();
    expect(page.url()).toContain('?status=207');
    await page.getByRole('link', { name: 'Rejections' }).click();
    await rowOf(page, 'amount wrong_type').waitFor();
    const shown = await page.locator('body').innerText();
    expect(shown).not.toContain(amount);
  });

  it('searches while the user types, and the address shows the same again', async () => {
    // One after another: the admin API has two connections, and refuses requests that wait for them too long.
    for (let at = 0; at < 120; at++) {
      const sent = { slug: `campus-${at}`, name: `Uni ${at}` };
      expect((await pages.server.admin.post('/admin/v1/organisations', sent)).status).toBe(201);
    }
    const page = await pages.signedIn('organisations');
    await page.getByText('50 organisations').waitFor();
    await press(page, 'Load more');
    await page.getByText('100 organisations').waitFor();
    await page.getByLabel('Search by slug or name').pressSequentially('UNI 11');
    await page.getByText('11 organisations in total').waitFor();
    expect(page.url()).toBe(pages.at('organisations?search=UNI+11'));
    await page.reload();
    await page.getByText('11 organisations in total').waitFor();
    await page.getByLabel('Search by slug or name').fill('nobody');
    await page.getByText('No organisation has “nobody” in its slug or name.').waitFor();
    await page.getByRole('link', { name: 'Show all organisations' }).click();
    await page.getByText('50 organisations').waitFor();
    expect(await page.getByLabel('Search by slug or name').inputValue()).toBe('');
  });

  it('shows the busiest organisations, in the chosen order', async () => {
    await queryDatabase(
      pages.server.databaseUrl,
      `insert into organisation_activity
         (ended_at, process_id, organisation_id, requests, records, interactions, bytes, rejections, limits_hit)
       select now(), gen_random_uuid(), organisation_id, requests, records, 30, 4000, 5, 6
       from organisations join (values ('campus-1', 90000, 10), ('campus-2', 80000, 20)) as sent (slug, requests, records)
         using (slug)`,
    );
    const page = await pages.signedIn();
    await heading(page, 'Now').waitFor();
    const first = page.locator('tbody tr').first();
    await first.getByText('campus-1').waitFor();
    await first.getByText('90,000').waitFor();
    await page.getByLabel('Order by').selectOption('Records');
    // A choice is added to those that the screen shows, so the next one has to wait until it shows this one.
    await first.getByText('campus-2').waitFor();
    await page.getByLabel('In the last').selectOption('15 minutes');
    await expect.poll(() => page.url()).toBe(pages.at('?by=records&minutes=15'));
    await first.getByText('campus-2').waitFor();
    await page.getByRole('link', { name: 'Uni 2', exact: true }).click();
    await heading(page, 'Uni 2').waitFor();
    await page.getByText('80,000').waitFor();
  });

  it('lists the keys that expire soon or were never used', async () => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
    const till = { organisation: 'acme', label: 'till', expires_at: inDays(30) };
    await pages.server.admin.post('/admin/v1/keys', till);
    const page = await pages.signedIn('keys');
    await rowOf(page, 'globex').waitFor();
    await page.getByLabel('Organisation (slug)').fill('acme');
    await page.getByLabel('Organisation (slug)').press('Enter');
    await rowOf(page, 'globex').waitFor({ state: 'detached' });
    await rowOf(page, 'nightly export').waitFor();
    await page.getByLabel('Expires before').fill(inDays(60).slice(0, 16));
    await rowOf(page, 'nightly export').waitFor({ state: 'detached' });
    // `check` would fail if the screen did not show the filter at once.
    await page.getByLabel('Never used').click();
    await expect.poll(() => page.getByLabel('Never used').isChecked()).toBe(true);
    await rowOf(page, 'till').waitFor();
    await page.getByLabel('Expires before').fill(inDays(2).slice(0, 16));
    await page.getByText('No active key matches these filters.').waitFor();
    expect(page.url()).toContain('/console/keys?organisation=acme&expires_before=');
    await page.getByRole('link', { name: 'Show all keys' }).click();
    await rowOf(page, 'globex').waitFor();
  });

  it.each([
    ['keys?organisation=acme', 'Expires before', 'Never used', ['expires_before', 'organisation', 'unused']],
    ['audit?actor=somebody', 'From', 'Until', ['actor', 'since', 'until']],
    ['', 'Order by', 'In the last', ['by', 'minutes']],
  ])('keeps both of two filters that change before %j is shown again', async (path, first, second, names) => {
    const page = await pages.signedIn(path);
    const fields = [page.getByLabel(first), page.getByLabel(second)];
    const shown = await Promise.all(fields.map((field) => field.elementHandle()));
    await page.evaluate<void, unknown>(changeAll as (fields: unknown) => void, shown);
    const namesOf = () => [...new URL(page.url()).searchParams.keys()].toSorted();
    await expect.poll(namesOf).toEqual(names);
  });

  it('shows the state of the processes', async () => {
    const page = await pages.signedIn('service');
    await page.getByText('The database is a single PostgreSQL server').waitFor();
    await rowOf(page, 'changes').waitFor();
    await expect.poll(() => rowOf(page, 'Running').count()).toBe(1);
    await queryDatabase(
      pages.server.databaseUrl,
      `insert into processes values (gen_random_uuid(), 'gone.example', '0.1.0', now() - interval '1 day',
         now() - interval '3 minutes', false)`,
    );
    await rowOf(page, 'gone.example').getByText('Not reporting').waitFor();
  });

  it('shows every act in the audit log', async () => {
    const page = await pages.signedIn('organisations/globex/audit');
    for (const act of [
      'organisation.create',
      'organisation.limit',
      'organisation.suspend',
      'organisation.resume',
      'key.issue',
      'key.rotate',
      'key.revoke',
    ])
      await rowOf(page, act).getByText('token:operator').waitFor();
    await page.goto(pages.at('audit?organisation=acme'));
    await rowOf(page, 'nightly export').getByText('key.issue').waitFor();
    expect(await page.getByRole('row').filter({ hasText: 'globex' }).count()).toBe(0);
    // A filter is added to those that the screen shows, so the next one has to wait until it shows this one.
    await page.getByLabel('Action').fill('organisation');
    await page.getByLabel('Action').blur();
    await rowOf(page, 'key.issue').waitFor({ state: 'detached' });
    await page.getByLabel('Actor').fill('token:operator');
    await page.getByLabel('Actor').press('Enter');
    await page.getByText('--actor token:operator').waitFor({ state: 'attached' });
    await rowOf(page, 'organisation.create').waitFor();
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 16);
    for (const [label, matching, other] of [
      ['From', inDays(-2), inDays(2)],
      ['Until', inDays(2), inDays(-2)],
    ] as const) {
      await page.getByLabel(label).fill(other);
      await page.getByText('No entry matches these filters.').waitFor();
      await page.getByLabel(label).fill(matching);
      await rowOf(page, 'organisation.create').getByText('token:operator').waitFor();
    }
    expect([...new URL(page.url()).searchParams.keys()].toSorted()).toEqual([
      'action',
      'actor',
      'organisation',
      'since',
      'until',
    ]);
    await page.getByLabel('Actor').fill('token:nobody');
    await page.getByLabel('Actor').press('Enter');
    await page.getByText('No entry matches these filters.').waitFor();
  });

  it('reports no error, ran nothing stored as a script, and has no secret in any address', () => {
    expect(pages.complaints).toEqual([]);
    expect(pages.addresses.length).toBeGreaterThan(100);
    expect(secrets.length).toBeGreaterThan(5);
    expect(pages.addresses.filter((address) => secrets.some((secret) => address.includes(secret)))).toEqual(
      [],
    );
  });
});
