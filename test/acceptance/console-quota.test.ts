// @module-tag full

import { existsSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import {
  appearances,
  barriers,
  chooseFile,
  chromiumPath,
  csvOf,
  launchChromium,
  signInAt,
} from '../support/console-browser.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { untilPasses } from '../support/until-passes.ts';

const isHere = existsSync(chromiumPath);

describe.skipIf(!isHere)('quotas in the console (needs headless Chromium)', () => {
  let server: SharedServer;
  let browser: Browser;
  let key: string;
  let api: Api;

  beforeAll(async () => {
    server = await sharedServer();
    key = await server.createKey('full');
    api = apiOf(server.url, key);
    await api.upload(
      'tags',
      many(9, () => newTag()),
    );
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());

  /** Sets the quota and a usage of nine records, and waits until the service has loaded them. */
  async function allow(records: number, header: string | null): Promise<void> {
    const organisation = `(select organisation_id from organisations where slug = '${server.slugOf('full')}')`;
    await queryDatabase(
      server.databaseUrl,
      `insert into quota_usage (organisation_id, records, row_sizes) values (${organisation}, 9, '{}') on conflict do nothing;
       update organisations set records_stored_max = ${records} where organisation_id = ${organisation}`,
    );
    const isKnown = async () => {
      const { headers } = await api.post('/v1/data/tags?dry_run=true', { records: [newTag()] });
      expect(headers.get('intake-quota')).toBe(header);
    };
    await untilPasses(isKnown);
  }

  async function open(options: (typeof appearances)[number][1] = appearances[0][1]): Promise<Page> {
    const context = await browser.newContext({ ...options, locale: 'en-GB', reducedMotion: 'reduce' });
    onTestFinished(() => context.close());
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    await signInAt(page, `${server.url}/console/`, key, 'Overview');
    await page.getByRole('link', { name: 'Tags', exact: true }).waitFor();
    return page;
  }

  const notice = (page: Page) => page.locator('#main > .notice');

  it('nothing is shown as long as much is left', async () => {
    await allow(100, null);
    expect(await notice(await open()).count()).toBe(0);
  });

  it('the overview shows the usage from 80 % on, and whom to ask', async () => {
    await allow(10, '"records";used=9;max=10');
    const said = await notice(await open()).innerText();
    expect(said).toContain('9 of 10 records (90 %)');
    expect(said).toContain('ask the operator of the service for a larger quota');
    expect(said).not.toContain('used up');
  });

  it('when it is used up, the upload screen reports it before and after', async () => {
    await allow(9, '"records";used=9;max=9');
    const page = await open();
    expect(await notice(page).innerText()).toContain('used up: nothing more can be stored');
    await page.getByRole('link', { name: 'Upload a file' }).first().click();
    await chooseFile(page, 'tags.csv', csvOf([newTag()]));
    await page.getByText('9 of 9 records (100 %)').waitFor();
    await page.getByRole('button', { name: 'Check the file' }).click();
    await page.getByRole('button', { name: 'Upload 1 row' }).click();
    const alert = page.getByRole('alert');
    await alert.getByText('The organisation may store 9 records and has 9').waitFor();
    await alert.getByText('ask the operator of the service for a larger quota').waitFor();
    await alert.getByText('quota_exceeded').waitFor();
  });

  it.each(appearances)('is accessible, on %s', async (_, options) => {
    const page = await open(options);
    await notice(page).waitFor();
    await page.waitForLoadState('networkidle');
    expect(await barriers(page)).toEqual([]);
  });
});
