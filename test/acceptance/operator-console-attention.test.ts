// @module-tag full

import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { patch } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { appearances, barriers, chromiumPath } from '../support/console-browser.ts';
import { newShop } from '../support/new-records.ts';
import { heading, OperatorPages, press, rowOf } from '../support/operator-pages.ts';
import { queryDatabase } from '../support/query-database.ts';

const phone = appearances[1][1];

describe.skipIf(!existsSync(chromiumPath))('what the operator has to know (needs headless Chromium)', () => {
  let pages: OperatorPages;

  beforeAll(async () => {
    pages = await OperatorPages.start();
    const { admin, url } = pages.server;
    for (const slug of ['acme', 'globex']) await admin.post('/admin/v1/organisations', { slug });
    const { body } = await admin.post('/admin/v1/keys', { organisation: 'acme', label: 'till' });
    await apiOf(url, body.key).upload('shops', [newShop(), newShop(), newShop()]);
  });
  afterAll(() => pages?.stop());

  const setState = (...statements: string[]) => queryDatabase(pages.server.databaseUrl, statements.join(';'));

  it('that everything is in order, or what is not, before everything else', async () => {
    const page = await pages.signedIn('service');
    await page.getByText('Everything is in order.').waitFor();
    await page.getByText('Nothing is waiting.').waitFor();
    await page.getByText(/^\d+ chores are in order$/).waitFor();
    await setState(
      `insert into chore_runs values ('water the plants', now() - interval '2 hours', now())`,
      `insert into jobs select organisation_id, 'purging', 'purge', null, 1, now() + interval '1 day', 0,
           now() - interval '2 days' from organisations where slug = 'globex'`,
    );
    await page.reload();
    await page.getByText('2 things are not in order.').waitFor();
    await rowOf(page, 'water the plants').getByText('Failing').waitFor();
    await rowOf(page, 'purging').getByText('Late').waitFor();
    expect(await page.getByRole('row').filter({ hasText: 'roll up counts' }).isVisible()).toBe(false);
    await page.getByText(/^\d+ chores are in order$/).click();
    expect(await rowOf(page, 'roll up counts').isVisible()).toBe(true);
    expect(await barriers(page)).toEqual([]);
    await page.goto(pages.at());
    await page.getByText('The chore “water the plants” fails.').waitFor();
    await page.getByText('Waiting for more than a day: purging.').waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole('link', { name: 'See the state of the service' }).click();
    await heading(page, 'Service').waitFor();
    await setState(`delete from chore_runs where chore = 'water the plants'`, 'delete from jobs');
  });

  it('how much each organisation has stored, and how much of its quota that is', async () => {
    const { admin } = pages.server;
    await patch(admin, '/admin/v1/organisations/globex', { records_stored_max: 100 });
    const usage = async () => (await admin.get('/admin/v1/organisations?search=acme')).body.organisations[0];
    await expect.poll(async () => (await usage()).records).toBe(3);
    const page = await pages.signedIn('organisations');
    await rowOf(page, 'acme').getByText('3', { exact: true }).waitFor();
    await rowOf(page, 'globex')
      .getByText(/of 100|100, not measured yet/)
      .waitFor();
    expect(await rowOf(page, 'acme').locator('time').count()).toBe(1);
  });

  it('and can switch the report on recommendations', async () => {
    const isOn = async () =>
      (await pages.server.admin.get('/admin/v1/organisations/globex')).body.recommendations_report;
    const page = await pages.signedIn('organisations/globex');
    // Cards above the button move it while they load, and a click on a button that moves is lost.
    await page.waitForLoadState('networkidle');
    for (const state of ['on', 'off']) {
      await press(page, `Switch the report ${state}`);
      await press(page, `Switch the report ${state} for globex`);
      await expect.poll(isOn).toBe(state === 'on');
    }
    await page.getByText('From a terminal').click();
    await page.getByText('intake-server organisations set-report globex on').waitFor();
  });

  it('and can revoke the key of a link, but not rotate it', async () => {
    const { body } = await pages.server.admin.post('/admin/v1/console-links', { organisation: 'acme' });
    const page = await pages.signedIn('organisations/acme/keys');
    const row = rowOf(page, body.key_id);
    await row.getByRole('button', { name: 'Revoke' }).waitFor();
    expect(await row.getByRole('button', { name: 'Rotate' }).count()).toBe(0);
    await rowOf(page, 'till').getByRole('button', { name: 'Rotate' }).waitFor();
  });

  it('in an audit log that is short on a phone', async () => {
    for (let at = 0; at < 30; at++)
      await pages.server.admin.post('/admin/v1/keys', { organisation: 'acme', label: `till ${at}` });
    const page = await pages.signedIn('audit', undefined, phone);
    await page.getByText('20 entries').waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(await page.evaluate<number>('document.documentElement.scrollHeight')).toBeLessThan(4_000);
  });

  it('and reports no error', () => {
    expect(pages.complaints).toEqual([]);
  });
});
