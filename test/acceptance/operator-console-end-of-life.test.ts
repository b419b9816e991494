// @module-tag full

import { existsSync } from 'node:fs';
import pg from 'pg';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { adminToken, patch } from '../support/admin-server.ts';
import { type Api, apiOf } from '../support/api.ts';
import { appearances, barriers, chromiumPath } from '../support/console-browser.ts';
import { many, newTag } from '../support/new-records.ts';
import { OperatorPages, press, rowOf } from '../support/operator-pages.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests deleting organisations, retention and quotas in the operator console. */

const keptDays = 14;
const path = '/admin/v1/organisations';
const quotas = { records_stored_max: 10, bytes_stored_max: 20_000_000_000 };

describe.skipIf(!existsSync(chromiumPath))(
  'the end of life in the operator’s console (needs headless Chromium)',
  () => {
    let pages: OperatorPages;
    let admin: Api;

    beforeAll(async () => {
      pages = await OperatorPages.start({
        DELETED_ORGANISATIONS_KEPT_DAYS: String(keptDays),
        RECEIPTS_KEPT_DAYS: '60',
      });
      admin = pages.server.admin;
      for (const slug of ['acme', 'full', 'globex', 'hooli', 'initech'])
        await admin.post(path, { slug, name: `${slug} of the North` });
      await admin.post('/admin/v1/keys', { organisation: 'hooli' });
      const api = await apiOfNew('acme');
      const { status } = await api.upload(
        'tags',
        many(9, () => newTag()),
      );
      expect(status).toBe(200);
      await patch(admin, `${path}/acme`, quotas);
      await admin.send(`${path}/hooli`, { method: 'DELETE' });
    });
    afterAll(() => pages?.stop());

    const read = async (slug: string) => (await admin.get(`${path}/${slug}`)).body;
    const dialog = (page: Page) => page.getByRole('dialog');
    const isBlocked = (page: Page, name: string | RegExp) =>
      page.getByRole('button', { name }).first().getAttribute('aria-disabled');
    async function terminal(page: Page): Promise<string> {
      await dialog(page).getByText('From a terminal').click();
      return dialog(page).locator('.terminal').innerText();
    }
    /** Checks every size and colour scheme on one page, because this state cannot be created again for each combination. */
    async function expectNoBarriers(page: Page): Promise<void> {
      for (const [name, { viewport, colorScheme }] of appearances) {
        await page.setViewportSize(viewport);
        await page.emulateMedia({ colorScheme });
        expect([name, await barriers(page)]).toEqual([name, []]);
      }
    }
    async function apiOfNew(organisation: string): Promise<Api> {
      return apiOf(pages.server.url, (await admin.post('/admin/v1/keys', { organisation })).body.key);
    }

    it('deletes an organisation when its slug is typed, and restores it', async () => {
      const api = await apiOfNew('globex');
      const status = async () => (await api.get('/v1/data')).status;
      const page = await pages.signedIn('organisations/globex');
      await press(page, 'Delete');
      await dialog(page).getByText('for 14 days').waitFor();
      await dialog(page).getByText('answered with 410').waitFor();
      expect(await terminal(page)).toContain('intake-server organisations delete globex --confirm globex');
      for (const typed of ['', 'glob', 'globex2', 'Globex']) {
        await page.getByLabel('Type the slug to confirm').fill(typed);
        await press(page, 'Delete globex');
        await page.getByLabel('Type the slug to confirm').press('Enter');
      }
      expect(await dialog(page).count()).toBe(1);
      await press(page, 'Cancel');
      expect(await read('globex')).toMatchObject({ deleted_at: null });
      expect(await status()).toBe(200);

      await press(page, 'Delete');
      await page.getByLabel('Type the slug to confirm').fill('globex');
      await press(page, 'Delete globex');
      await page.getByText('This organisation is deleted.').waitFor();
      await dialog(page).waitFor({ state: 'detached' });
      await expect.poll(status).toBe(410);
      const { deleted_at } = await read('globex');
      const times = page.locator('.notice time');
      expect(await times.first().getAttribute('datetime')).toBe(deleted_at);
      const until = new Date(Date.parse(deleted_at) + keptDays * 86_400_000).toISOString();
      expect(await times.last().getAttribute('datetime')).toBe(until);
      await page.goto(pages.at('organisations'));
      await rowOf(page, 'globex').getByText('Deleted').waitFor();

      await page.goto(pages.at('organisations/globex'));
      await press(page, 'Restore');
      expect(await terminal(page)).toContain('intake-server organisations restore globex');
      await press(page, 'Restore globex');
      await page.getByText('This organisation is deleted.').waitFor({ state: 'detached' });
      await dialog(page).waitFor({ state: 'detached' });
      await expect.poll(status).toBe(200);
      // The button that opened the dialog still has the focus.
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Delete');
    });

    it('offers nothing that a deleted organisation refuses', async () => {
      const page = await pages.signedIn('organisations/hooli');
      await page.getByText('This organisation is deleted.').waitFor();
      for (const name of ['Rename', 'Suspend', 'Change limits', 'Change retention']) {
        expect([name, await isBlocked(page, name)]).toEqual([name, 'true']);
        await page.getByRole('button', { name }).click({ force: true });
        expect([name, await dialog(page).count()]).toEqual([name, 0]);
      }
      expect(await isBlocked(page, 'Restore')).toBe('false');
      await page.getByRole('link', { name: 'Keys and links' }).click();
      await rowOf(page, 'Active').waitFor();
      for (const name of ['Issue a key', 'Make a console link', /^Rotate/])
        expect([name, await isBlocked(page, name)]).toEqual([name, 'true']);
      // Revoking a key is never refused.
      await press(page, /^Revoke/);
      await press(page, /^Revoke \w+$/);
      await rowOf(page, 'Revoked').waitFor();
    });

    it('restores a suspended organisation as suspended', async () => {
      await patch(admin, `${path}/initech`, { suspended: true });
      await admin.send(`${path}/initech`, { method: 'DELETE' });
      const page = await pages.signedIn('organisations/initech');
      await press(page, 'Restore');
      await dialog(page).getByText('It is suspended, as before').waitFor();
      await press(page, 'Restore initech');
      await page.getByText('This organisation is suspended.').waitFor();
    });

    it('shows the progress of a removal, until the organisation is gone', async () => {
      await admin.post(path, { slug: 'tyrell', name: 'Tyrell Card' });
      const api = await apiOfNew('tyrell');
      const tags = many(3, () => newTag());
      expect((await api.upload('tags', tags)).status).toBe(200);
      await admin.send(`${path}/tyrell`, { method: 'DELETE' });
      const { databaseUrl } = pages.server;
      // A removal deletes nothing while an older transaction is running.
      const older = new pg.Client({ connectionString: databaseUrl });
      await older.connect();
      onTestFinished(() => older.end());
      await older.query('begin');
      await older.query('select');
      const { organisation_id } = await read('tyrell');
      await queryDatabase(
        databaseUrl,
        `update organisations set deleted_at = now() - interval '${keptDays} days 1 hour' where slug = 'tyrell'`,
      );
      await expect.poll(async () => (await read('tyrell')).removal).not.toBeNull();
      const page = await pages.signedIn('organisations/tyrell');
      await page.getByText('This organisation is being removed.').waitFor();
      await page.getByText('0 rows removed so far').waitFor();
      expect(await isBlocked(page, 'Restore')).toBe('true');
      await queryDatabase(databaseUrl, `select remove_rows($1, 0, 'tags', 2000)`, [organisation_id]);
      await page.getByText('3 rows removed so far, now from the table tags').waitFor();
      await expectNoBarriers(page);
      await older.query('commit');
      await page.getByText('This organisation was removed.').waitFor();
      await expectNoBarriers(page);
      expect(await page.getByRole('link', { name: 'Keys and links' }).count()).toBe(0);
      await page.getByRole('link', { name: 'audit log', exact: true }).click();
      await rowOf(page, 'organisation.remove').getByText('tyrell').waitFor();
      // The page keeps requesting the organisation and its lake, but both are gone.
      for (const complaint of pages.complaints.splice(0)) expect(complaint).toContain('status of 404');
    });

    it('asks before a shorter retention, but not before a longer one', async () => {
      const page = await pages.signedIn('organisations/acme');
      const retention = page
        .locator('section')
        .filter({ has: page.getByRole('heading', { name: 'Retention' }) });
      await retention.getByText('kept forever').waitFor();
      await expect.poll(() => retention.getByText('60 days (service default)').count()).toBe(2);
      await press(page, 'Change retention');
      await dialog(page).getByText('permanently deletes older data').waitFor();
      await page.getByLabel('Interactions').fill('90');
      await page.getByLabel('Receipts').fill('61');
      await press(page, 'Save');
      // The service keeps receipts for at most 60 days.
      expect(await dialog(page).getByRole('heading').innerText()).toBe('Change retention');
      await page.getByLabel('Receipts').fill('14');
      expect(await terminal(page)).toContain(
        'intake-server organisations set-retention acme --interactions 90d --receipts 14d',
      );
      await press(page, 'Save');
      await dialog(page).getByText('interactions older than 90 days').waitFor();
      await dialog(page).getByText('receipts older than 14 days').waitFor();
      expect(await dialog(page).getByText('rejections').count()).toBe(0);
      await press(page, 'Cancel');
      expect(await page.getByLabel('Interactions').inputValue()).toBe('90');
      expect(await read('acme')).toMatchObject({ interactions_kept_days: null, receipts_kept_days: null });
      await press(page, 'Save');
      await press(page, 'Save and delete');
      await retention.getByText('90 days (own setting)').waitFor();
      await dialog(page).waitFor({ state: 'detached' });
      expect(await read('acme')).toMatchObject({
        interactions_kept_days: 90,
        receipts_kept_days: 14,
        rejections_kept_days: null,
      });
      await press(page, 'Change retention');
      await page.getByLabel('Interactions').fill('');
      await page.getByLabel('Receipts').fill('30');
      await press(page, 'Save');
      await retention.getByText('30 days (own setting)').waitFor();
      expect(await read('acme')).toMatchObject({ interactions_kept_days: null, receipts_kept_days: 30 });
    });

    it('sets quotas, shows their usage, and warns from 80 % on', async () => {
      const api = await apiOfNew('full');
      expect(
        (
          await api.upload(
            'tags',
            many(9, () => newTag()),
          )
        ).status,
      ).toBe(200);
      const page = await pages.signedIn('organisations/full');
      await press(page, 'Change limits');
      await page.getByLabel('Records stored').fill('10');
      await page.getByLabel('Bytes stored').fill('20000000000');
      expect(await terminal(page)).toContain(
        'intake-server organisations limit full --records-stored 10 --bytes-stored 20000000000',
      );
      await press(page, 'Save');
      await page.getByText('9 of 10').waitFor();
      await page.getByText('90 %', { exact: true }).waitFor();
      await page.getByText('A quota is almost used up.').waitFor();
      await page.getByText(/^\d\S* k?B of 20 GB/).waitFor();
      await press(page, 'Change limits');
      await page.getByLabel('Records stored').fill('9');
      await press(page, 'Save');
      await page.getByText('A quota is used up.').waitFor();
      await page.getByText('100 %', { exact: true }).waitFor();
      await press(page, 'Change limits');
      await page.getByLabel('Records stored').fill('');
      await press(page, 'Save');
      await page.getByText('no quota', { exact: true }).waitFor();
      expect(await page.getByText('used up').count()).toBe(0);
      expect(await read('full')).toMatchObject({
        records_stored_max: null,
        bytes_stored_max: 20_000_000_000,
      });
    });

    it('with a read-only token show everything, and offer no change', async () => {
      const issued = await pages.server.run('tokens', 'issue', 'look', '--read-only', '--json');
      const page = await pages.signedIn('organisations/hooli', JSON.parse(issued).token);
      await page.getByText('This organisation is deleted.').waitFor();
      await page.getByText('Changing the retention needs a full token').waitFor();
      await page.getByText('deleting or restoring the organisation needs a full token').waitFor();
      for (const name of ['Delete', 'Restore', 'Change retention', 'Change limits'])
        expect([name, await page.getByRole('button', { name }).count()]).toEqual([name, 0]);
    });

    it.each(appearances)('is accessible, on %s', async (_, appearance) => {
      await patch(admin, `${path}/acme`, quotas);
      const page = await pages.signedIn('organisations', adminToken, appearance);
      await rowOf(page, 'hooli').getByText('Deleted').waitFor();
      expect(await barriers(page)).toEqual([]);
      await page.goto(pages.at('organisations/acme'));
      await page.getByText('A quota is almost used up.').waitFor();
      expect(await barriers(page)).toEqual([]);
      await patch(admin, `${path}/acme`, { bytes_stored_max: 100 });
      await page.reload();
      await page.getByText('A quota is used up.').waitFor();
      expect(await barriers(page)).toEqual([]);
      for (const [opening, closing] of [
        ['Delete', 'Cancel'],
        ['Change limits', 'Cancel'],
        ['Change retention', undefined],
      ] as const) {
        await press(page, opening);
        expect([opening, await barriers(page)]).toEqual([opening, []]);
        if (closing) await press(page, closing);
      }
      await page.getByLabel('Rejections').fill('1');
      await press(page, 'Save');
      await page.getByText('rejections older than 1 day').waitFor();
      expect(await barriers(page)).toEqual([]);
      for (const screen of ['organisations/hooli', 'organisations/hooli/keys']) {
        await page.goto(pages.at(screen));
        await page.getByText('This organisation is deleted.').waitFor();
        await page.waitForLoadState('networkidle');
        expect([screen, await barriers(page)]).toEqual([screen, []]);
      }
      await page.goto(pages.at('organisations/hooli'));
      await press(page, 'Restore');
      expect(await barriers(page)).toEqual([]);
    });

    it('report no error', () => {
      expect(pages.complaints).toEqual([]);
      expect(pages.addresses.length).toBeGreaterThan(50);
    });
  },
);
