// @module-tag full
// @module-tag long

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectInTime } from '../support/in-time.ts';

const executablePath = '/usr/bin/chromium';
const pictures = fileURLToPath(new URL('../../.intake/pictures/', import.meta.url));

const description = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));

const uploadPaths = Object.keys(description.paths).filter(
  (path) => path.startsWith('/v1/data/') && 'post' in description.paths[path],
);

let server: SharedServer;
let browser: Browser;

/** A browser shares the machine with the other tests, and drawing the page takes it seconds of CPU. */
const timeout = 300_000;

describe.skipIf(!existsSync(executablePath))(
  'the reference page (needs Debian’s chromium)',
  { timeout },
  () => {
    beforeAll(async () => {
      mkdirSync(pictures, { recursive: true });
      server = await sharedServer();
      browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'], timeout });
    }, timeout);
    const newPage = async (options: BrowserContextOptions = {}) => {
      const page = await browser.newPage(options);
      page.setDefaultTimeout(timeout);
      return page;
    };
    afterAll(async () => {
      await browser?.close();
    });

    it.each([
      ['desktop', { width: 1280, height: 900 }],
      ['phone', { width: 390, height: 844 }],
    ])('is readable at %s width, and loads nothing from elsewhere', async (name, viewport) => {
      const page = await newPage({ viewport });
      const requested: string[] = [];
      const complaints: string[] = [];
      page.on('request', (request) => requested.push(request.url()));
      page.on('console', (message) => {
        // A browser asks for an icon by itself; there is none, and without a key it is not told so.
        const icon = message.location().url.endsWith('/favicon.ico');
        if (message.type() === 'error' && !icon) complaints.push(message.text());
      });
      await page.goto(`${server.url}/docs`);
      await page.getByRole('heading', { name: 'Intake' }).first().waitFor();
      await page.screenshot({ path: `${pictures}reference-${name}.png` });
      for (const [heading, anchor] of [
        ['Upload shops', '#tag/upload/POST/v1/data/shops'],
        ['List interactions', '#tag/interactions/GET/user-interactions'],
      ]) {
        await page.goto(`${server.url}/docs/${anchor}`);
        await page.getByRole('heading', { name: heading as string }).waitFor();
        await page.screenshot({ path: `${pictures}reference-${name}-${heading?.replaceAll(' ', '-')}.png` });
      }

      const elsewhere = requested.filter(
        (url) => !url.startsWith(`${server.url}/`) && !/^(data|blob):/.test(url),
      );
      expect(elsewhere).toEqual([]);
      expect(complaints).toEqual([]);
      const { scrollWidth, clientWidth } = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = (
          globalThis as unknown as {
            document: { documentElement: { scrollWidth: number; clientWidth: number } };
          }
        ).document.documentElement;
        return { scrollWidth, clientWidth };
      });
      expect(scrollWidth).toBeLessThanOrEqual(clientWidth);
      await page.close();
    });

    it('shows a first text within a second to whoever has been there before', async () => {
      const context = await browser.newContext();
      context.setDefaultTimeout(timeout);
      const visit = async () => {
        const page = await context.newPage();
        await page.goto(`${server.url}/docs/`);
        expect(await page.title()).toBe('Intake API reference');
        // The first thing drawn is text: there is nothing else before the script has run.
        await page.getByRole('heading', { name: 'Intake' }).first().waitFor();
        const [paint] = await page.evaluate(
          () =>
            performance
              .getEntriesByName('first-contentful-paint')
              .map(({ startTime }) => startTime) as number[],
        );
        // The script replaces the first text with the page, and its files are kept from here on.
        await page.getByRole('button', { name: 'Search' }).first().waitFor();
        expect(await page.locator('#first-text').count()).toBe(0);
        await page.close();
        return paint ?? Number.POSITIVE_INFINITY;
      };
      await visit();
      await expectInTime(async () => [{ what: 'the first text', ms: await visit(), promisedMs: 1_000 }]);
      await context.close();
    });

    it('shows the fields of a record open and in order, a real upload next to them, and offers the library and the command', async () => {
      const page = await newPage({ viewport: { width: 1280, height: 1400 } });
      await page.goto(`${server.url}/docs/#tag/upload/POST/v1/data/transactions`);
      await page.getByRole('heading', { name: 'Upload transactions' }).waitFor();
      const { properties, required } = description.components.schemas.Transaction as {
        properties: Record<string, object>;
        required: string[];
      };
      const operation = page
        .locator('section', { has: page.getByRole('heading', { name: 'Upload transactions' }) })
        .last();
      const text = async () => (await operation.innerText()).replaceAll(/\s+/g, ' ');
      await expect.poll(text, { timeout }).toContain('is_deleted');
      const [, body = ''] = /Body required(.*?)Responses/.exec(await text()) ?? [];
      // Before the array there is the choice of the media type.
      const parts = body.split(/ (?=\w+ Type: )/);
      const fields = parts.slice(parts.findIndex((part) => part.startsWith('records ')) + 1);
      expect(fields.map((field) => field.split(' ')[0])).toEqual(Object.keys(properties));
      const marked = fields.filter((field) => / required( |$)/.test(field));
      expect(marked.map((field) => field.split(' ')[0])).toEqual(required);
      await page.screenshot({ path: `${pictures}reference-fields.png` });

      const { source } = description.paths['/v1/data/transactions'].post['x-codeSamples'][0];
      expect(source).toContain('$INTAKE_URL/v1/data/transactions"');
      await expect.poll(text, { timeout }).toContain('curl -sS "$INTAKE_URL/v1/data/transactions"');
      await operation.getByRole('button', { name: 'curl' }).first().click();
      for (const label of ['intake-client', 'intake'])
        await page.getByRole('option', { name: label, exact: true }).waitFor();
      await page.screenshot({ path: `${pictures}reference-samples.png` });
      await page.close();
    });

    // A page takes eight seconds, and all are made from the same lines of the description: one stands for the rest.
    it.each(uploadPaths.slice(0, 1))('asks for a dry run of %s unless one says otherwise', async (path) => {
      const page = await newPage({ viewport: { width: 1280, height: 1400 } });
      await page.goto(`${server.url}/docs/#tag/upload/POST${path}`);
      await page
        .getByRole('button', { name: new RegExp(`Test Request.*${path}( |\\)|$)`) })
        .first()
        .click();
      const [sent] = await Promise.all([
        page.waitForRequest((request) => request.method() === 'POST'),
        page.getByRole('button', { name: /^Send/ }).first().click(),
      ]);
      expect(sent.url()).toBe(`${server.url}${path}?dry_run=true`);
      await page.close();
    });
  },
);
