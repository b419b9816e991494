// @module-tag full

import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { appearances, barriers, chromiumPath } from '../support/console-browser.ts';
import { newShop, newTransaction } from '../support/new-records.ts';
import { heading, OperatorPages, press, rowOf, signInWith } from '../support/operator-pages.ts';
import { queryDatabase } from '../support/query-database.ts';

const built = fileURLToPath(new URL('../../dist/', import.meta.url));

describe.skipIf(!existsSync(chromiumPath))(
  'the screens of the operator’s console (need headless Chromium)',
  () => {
    let pages: OperatorPages;

    beforeAll(async () => {
      pages = await OperatorPages.start();
      const { admin, url, databaseUrl } = pages.server;
      for (const slug of ['acme', 'globex']) await admin.post('/admin/v1/organisations', { slug });
      const { body: issued } = await admin.post('/admin/v1/keys', { organisation: 'globex', label: 'till' });
      const api = apiOf(url, issued.key);
      const shop = newShop();
      await api.upload('shops', [shop]);
      await api.upload('transactions', [
        newTransaction(shop.shop_id),
        { ...newTransaction(shop.shop_id), amount: 'x' },
      ]);
      await queryDatabase(
        databaseUrl,
        `insert into organisation_activity
           (ended_at, process_id, organisation_id, requests, records, interactions, bytes, rejections, limits_hit)
         select now() + interval '1 hour', gen_random_uuid(), organisation_id, 60000, 500, 30, 4000, 5, 6
         from organisations where slug = 'globex'`,
      );
    });
    afterAll(() => pages?.stop());

    it('with a read-only token show everything, offer no change and say why', async () => {
      const issued = await pages.server.run('tokens', 'issue', 'look', '--read-only', '--json');
      const page = await pages.signedIn('organisations/globex', JSON.parse(issued).token);
      await page.getByText('needs a full token').first().waitFor();
      await page.getByText('Switching the lake on or off needs a full token').waitFor();
      for (const name of ['Rename', 'Suspend', 'Change limits', /^Switch the lake/])
        expect(await page.getByRole('button', { name }).count()).toBe(0);
      await page.goto(pages.at('organisations/globex/keys'));
      await rowOf(page, 'Active').waitFor();
      for (const name of ['Issue a key', 'Make a console link', 'Rotate', 'Revoke'])
        expect(await page.getByRole('button', { name }).count()).toBe(0);
      await page.goto(pages.at('organisations'));
      await page.getByText('Creating an organisation needs a full token').waitFor();
      expect(await page.getByRole('button', { name: 'Create an organisation' }).count()).toBe(0);
    });

    it('show a failed query as failed, with its request id', async () => {
      const page = await pages.signedIn();
      const requestId = '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f';
      const path = '**/console/api/**/admin/v1/audit*';
      await page.route(path, (route) =>
        route.fulfill({
          status: 500,
          headers: { 'x-request-id': requestId },
          json: { error: 'Internal Server Error', code: 'internal', message: 'Something went wrong.' },
        }),
      );
      await page.getByRole('link', { name: 'Audit log' }).first().click();
      await page.getByText('The audit log could not be read').waitFor();
      await page.getByText(requestId).waitFor();
      await page.unroute(path);
      await press(page, 'Try again');
      await rowOf(page, 'key.issue').waitFor();
      expect(pages.complaints.splice(0)).toEqual([expect.stringContaining('status of 500')]);
    });

    it.each(appearances)('are accessible, on %s', async (_, appearance) => {
      const page = await pages.open(appearance);
      await page.goto(pages.at());
      await page.getByLabel('Admin token').waitFor();
      expect(await barriers(page)).toEqual([]);
      await signInWith(page);
      await heading(page, 'Now').waitFor();
      const ofOne = ['', '/keys', '/uploads', '/rejections', '/audit'].map(
        (tab) => `organisations/globex${tab}`,
      );
      for (const screen of ['', 'organisations', ...ofOne, 'keys', 'audit', 'service', 'nowhere']) {
        await page.goto(pages.at(screen));
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.waitForLoadState('networkidle');
        await page.evaluate('document.querySelector(".terminal")?.setAttribute("open", "")');
        expect([screen, await barriers(page)]).toEqual([screen, []]);
        const tooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
        expect([screen, tooWide]).toEqual([screen, false]);
      }
      await page.goto(pages.at('organisations/globex/keys'));
      for (const dialog of ['Issue a key', 'Make a console link', /^Rotate/, /^Revoke/]) {
        await press(page, dialog);
        expect([dialog, await barriers(page)]).toEqual([dialog, []]);
        await press(page, 'Cancel');
      }
    });

    it('load little at first', async () => {
      const page = await pages.signedIn();
      const scripts = new Set<string>();
      page.on('response', (response) => {
        const { pathname } = new URL(response.url());
        if (pathname.endsWith('.js')) scripts.add(pathname.replace('/console/', 'console/'));
      });
      await page.goto(pages.at());
      await rowOf(page, 'globex').waitFor();
      await page.waitForLoadState('networkidle');
      const bytes = [...scripts].reduce((sum, file) => sum + statSync(`${built}${file}.br`).size, 0);
      expect(scripts.size).toBeGreaterThan(3);
      expect(bytes).toBeLessThan(150_000);
    });

    it('report no error', () => {
      expect(pages.complaints).toEqual([]);
    });
  },
);
