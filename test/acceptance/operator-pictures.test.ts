// @module-tag full

import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type AdminServer, adminToken, patch, startAdminServer } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { launchChromium } from '../support/console-browser.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { takePicture } from '../support/take-picture.ts';

/** Takes screenshots of the operator's screens in the same way as console-pictures.test.ts. */

const ofOne = ['', '/keys', '/uploads', '/rejections', '/audit'].map((tab) => `organisations/acme${tab}`);
const screens = [
  '',
  'organisations',
  'organisations?search=hooli',
  ...ofOne,
  'organisations/tyrell',
  'organisations/tyrell/keys',
  'keys',
  'audit',
  'service',
];
const inDocs = new Set(['operator-now-1280-light', 'operator-organisations-acme-1280-light']);

const organisations: readonly (readonly [slug: string, name: string, share: number])[] = [
  ['acme', 'Acme Student Discounts', 1],
  ['globex', 'Globex Campus', 0.55],
  ['initech', 'Initech Benefits', 0.42],
  ['umbrella', 'Umbrella Perks', 0.2],
  ['hooli', 'Hooli Rewards', 0.12],
  ['stark', 'Stark Alumni Network of Northern Europe', 0.07],
  ['wayne', 'Wayne Foundation', 0.03],
  ['tyrell', 'Tyrell Card', 0.01],
];

describe.skipIf(!process.env.PICTURES)('pictures of the operator’s console (need PICTURES)', () => {
  let server: AdminServer;
  let browser: Browser;
  beforeAll(async () => {
    server = await startAdminServer();
    await fill(server);
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
    const take = (name: string) => takePicture(page, `operator-${name}-${width}-${colorScheme}`, inDocs);
    await page.goto(`${server.adminUrl}/console/`);
    await page.getByLabel('Admin token').waitFor();
    await take('sign-in');
    await page.getByLabel('Admin token').fill(adminToken);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
    for (const screen of screens) {
      await page.goto(`${server.adminUrl}/console/${screen}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await take(screen.replaceAll(/\W+/g, '-') || 'now');
    }
    await page.goto(`${server.adminUrl}/console/organisations/acme`);
    for (const [dialog, name] of [
      ['Delete', 'delete'],
      ['Change limits', 'limits'],
      ['Change retention', 'retention'],
    ] as const) {
      await page.getByRole('button', { name: dialog }).click();
      await take(name);
      if (name !== 'retention') await page.getByRole('button', { name: 'Cancel' }).click();
    }
    await page.getByLabel('Interactions').fill('30');
    await page.getByRole('button', { name: 'Save' }).click();
    await take('retention-question');
    await page.goto(`${server.adminUrl}/console/organisations/acme/keys`);
    for (const [dialog, name] of [
      ['Issue a key', 'issue'],
      ['Make a console link', 'link'],
      [/^Rotate/, 'rotate'],
      [/^Revoke/, 'revoke'],
    ] as const) {
      await page.getByRole('button', { name: dialog }).first().click();
      await take(name);
      await page.getByRole('button', { name: 'Cancel' }).click();
    }
    await page.getByRole('button', { name: 'Issue a key' }).click();
    await page.getByRole('button', { name: 'Issue the key' }).click();
    await page.getByRole('region', { name: /The new key/ }).waitFor();
    await take('issued');
    await context.close();
  });
});

async function fill({ admin, url, databaseUrl }: AdminServer): Promise<void> {
  for (const [slug, name] of organisations) await admin.post('/admin/v1/organisations', { slug, name });
  await patch(admin, '/admin/v1/organisations/acme', { records_per_second_max: 100_000 });
  await patch(admin, '/admin/v1/organisations/hooli', { suspended: true });
  await fillKeys({ admin, url });
  await fillQuotas({ admin });
  await admin.send('/admin/v1/organisations/tyrell', { method: 'DELETE' });
  await fillState(databaseUrl);
  const weights = organisations.map(([slug, , share]) => `('${slug}', ${share})`).join(', ');
  await queryDatabase(
    databaseUrl,
    `insert into organisation_activity
       (ended_at, process_id, organisation_id, requests, records, interactions, bytes, rejections, limits_hit)
     select now() + interval '1 day', gen_random_uuid(), organisation_id, 18400 * share, 2310400 * share * share,
       91200 * (1 - share), 512000000 * share, 4100 * share * (1 - share), case when slug = 'initech' then 312 else 0 end
     from organisations join (values ${weights}) as weighed (slug, share) using (slug)`,
  );
}

/** Sets quotas whose usage has not been measured yet. */
async function fillQuotas({ admin }: Pick<AdminServer, 'admin'>): Promise<void> {
  const path = '/admin/v1/organisations/acme';
  await patch(admin, path, {
    records_stored_max: 210,
    bytes_stored_max: 20_000_000_000,
    interactions_kept_days: 365,
    receipts_kept_days: 14,
  });
  while ((await admin.get(path)).body.bytes_stored === null) await sleep(1_000);
}

/** Adds a process that has died, and maintenance chores, one of which fails. */
async function fillState(databaseUrl: string): Promise<void> {
  await queryDatabase(
    databaseUrl,
    `insert into processes values
       (gen_random_uuid(), 'intake-2', '0.1.0', now() - interval '1 day', now() - interval '3 minutes', false)`,
  );
  await queryDatabase(
    databaseUrl,
    `insert into chore_runs values ('rejections', now(), null), ('receipts', now() - interval '1 hour', now())
     on conflict (chore) do nothing`,
  );
}

async function fillKeys({ admin, url }: Pick<AdminServer, 'admin' | 'url'>): Promise<void> {
  const keys = [
    { label: 'nightly export' },
    { label: 'till', permissions: ['data:write:transactions'], expires_at: inDays(3) },
    { label: 'web shop', browser: true, origins: ['https://shop.example', 'https://m.shop.example'] },
    { label: 'old laptop', permissions: ['data:read'] },
  ];
  const issued = [];
  for (const key of keys)
    issued.push((await admin.post('/admin/v1/keys', { organisation: 'acme', ...key })).body);
  await admin.post(`/admin/v1/keys/${issued[3].key_id}/revoke`, {});
  await admin.post('/admin/v1/keys', { organisation: 'globex', label: 'import' });
  const api = apiOf(url, issued[0].key);
  const shop = newShop();
  await api.upload('shops', [shop]);
  await api.upload('transactions', [
    ...many(180, () => newTransaction(shop.shop_id)),
    ...many(12, () => ({ ...newTransaction(shop.shop_id), amount: '12,90' })),
    ...many(8, () => newTransaction('70a1b2c3-d4e5-4f60-8a7b-9c0d1e2f3a4b')),
  ]);
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
