// @module-tag full

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { expectInTime } from '../support/in-time.ts';

const executablePath = '/usr/bin/chromium-headless-shell';

const description = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));

const desktop = { width: 1280, height: 1400 };
const phone = { width: 390, height: 844 };

/** If PICTURES is set, saves a screenshot of each step in .intake/pictures/. */
async function picture(page: Page, name: string): Promise<void> {
  if (!process.env.PICTURES) return;
  const folder = fileURLToPath(new URL('../../.intake/pictures/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: `${folder}reference-${name}.png` });
}

describe.skipIf(!existsSync(executablePath))('the reference page (needs headless Chromium)', () => {
  let server: SharedServer;
  let browser: Browser;
  let context: BrowserContext;
  /** All tests share this page, because rendering it takes seconds. */
  let page: Page;
  const requested: string[] = [];
  const complaints: string[] = [];
  beforeAll(async () => {
    server = await sharedServer();
    browser = await chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-gpu'],
      timeout: 240_000,
    });
    context = await browser.newContext({ viewport: desktop, reducedMotion: 'reduce' });
    context.setDefaultTimeout(240_000);
    page = await context.newPage();
    page.on('request', (request) => requested.push(request.url()));
    page.on('console', (message) => {
      // Browsers request an icon on their own. The service has no icon, and a request without a key gets 401.
      const icon = message.location().url.endsWith('/favicon.ico');
      if (message.type() === 'error' && !icon) complaints.push(message.text());
    });
    await page.goto(`${server.url}/docs`);
    expect(await page.title()).toBe('Intake API reference');
    await page.getByRole('button', { name: 'Search' }).first().waitFor();
  });
  afterAll(() => browser?.close());

  const heading = (name: string) => page.getByRole('heading', { name });
  const show = async (name: string, anchor: string) => {
    await page.goto(`${server.url}/docs/#${anchor}`);
    await heading(name).waitFor();
  };

  it('replaces its first text once the script has run', async () => {
    await heading('Intake').first().waitFor();
    expect(await page.locator('#first-text').count()).toBe(0);
  });

  it('shows the fields of a record expanded and in order, a real upload next to them, and offers the library and the command', async () => {
    await show('Upload transactions', 'tag/upload/POST/v1/data/transactions');
    const { properties, required } = description.components.schemas.Transaction as {
      properties: Record<string, object>;
      required: string[];
    };
    const operation = page.locator('section', { has: heading('Upload transactions') }).last();
    const text = async () => (await operation.innerText()).replaceAll(/\s+/g, ' ');
    await expect.poll(text, { interval: 250 }).toContain('is_deleted');
    const [, body = ''] = /Body required(.*?)Responses/.exec(await text()) ?? [];
    // On the page, the choice of media type comes before the array.
    const parts = body.split(/ (?=\w+ Type: )/);
    const fields = parts.slice(parts.findIndex((part) => part.startsWith('records ')) + 1);
    expect(fields.map((field) => field.split(' ')[0])).toEqual(Object.keys(properties));
    const marked = fields.filter((field) => / required( |$)/.test(field));
    expect(marked.map((field) => field.split(' ')[0])).toEqual(required);
    await picture(page, 'fields');

    const { source } = description.paths['/v1/data/transactions'].post['x-codeSamples'][0];
    expect(source).toContain('$INTAKE_URL/v1/data/transactions"');
    await expect.poll(text, { interval: 250 }).toContain('curl -sS "$INTAKE_URL/v1/data/transactions"');
    await operation.getByRole('button', { name: 'curl' }).first().click();
    for (const label of ['intake-client', 'intake'])
      await page.getByRole('option', { name: label, exact: true }).waitFor();
    await picture(page, 'samples');
    await page.keyboard.press('Escape');
  });

  it('is readable at the width of a desktop and of a phone', async () => {
    for (const [name, viewport] of Object.entries({ desktop, phone })) {
      await page.setViewportSize(viewport);
      for (const [operation, anchor] of [
        ['Upload shops', 'tag/upload/POST/v1/data/shops'],
        ['List interactions', 'tag/interactions/GET/user-interactions'],
      ] as const) {
        await show(operation, anchor);
        await picture(page, `${name}-${operation.replaceAll(' ', '-')}`);
      }
      const { scrollWidth, clientWidth } = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = (
          globalThis as unknown as {
            document: { documentElement: { scrollWidth: number; clientWidth: number } };
          }
        ).document.documentElement;
        return { scrollWidth, clientWidth };
      });
      expect(clientWidth).toBeLessThanOrEqual(viewport.width);
      expect(scrollWidth).toBeLessThanOrEqual(clientWidth);
    }
    await page.setViewportSize(desktop);
  });

  it('has loaded nothing from elsewhere, and the browser found no error', async () => {
    const elsewhere = requested.filter(
      (url) => !url.startsWith(`${server.url}/`) && !/^(data|blob):/.test(url),
    );
    expect(requested).toContain(`${server.url}/openapi.json`);
    expect(elsewhere).toEqual([]);
    expect(complaints).toEqual([]);
  });

  // The test above checks that no errors were logged, so this one must run later: the browser logs the 401 for a
  // missing key. All uploads are described alike, so testing one of them is enough.
  it('sends a dry run of an upload by default', async () => {
    await show('Upload transactions', 'tag/upload/POST/v1/data/transactions');
    await page
      .locator('button', { hasText: /Test Request.*\/v1\/data\/transactions( |\)|$)/ })
      .first()
      .click();
    const [sent] = await Promise.all([
      page.waitForRequest((request) => request.method() === 'POST'),
      page
        .locator('button', { hasText: /^\s*Send/ })
        .first()
        .click(),
    ]);
    expect(sent.url()).toBe(`${server.url}/v1/data/transactions?dry_run=true&mode=replace`);
    await page.close();
  });

  it('shows a first text within a second on a repeated visit', async () => {
    const visit = async () => {
      const again = await context.newPage();
      await again.goto(`${server.url}/docs/`, { waitUntil: 'commit' });
      // The browser draws only text until the script has run, so the first paint shows text.
      const paint = await again.evaluate(
        () =>
          new Promise<number>((resolve) => {
            new PerformanceObserver((list) => {
              for (const { name, startTime } of list.getEntries())
                if (name === 'first-contentful-paint') resolve(startTime);
            }).observe({ type: 'paint', buffered: true } as never);
          }),
      );
      await again.close();
      return paint;
    };
    await expectInTime(async () => [{ what: 'the first text', ms: await visit(), promisedMs: 1_000 }]);
  });
});
