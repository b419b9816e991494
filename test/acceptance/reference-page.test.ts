import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';

const executablePath = '/usr/bin/chromium';
const pictures = fileURLToPath(new URL('../../.intake/pictures/', import.meta.url));

let server: BuiltServer;
let browser: Browser;

describe.skipIf(!existsSync(executablePath))('the reference page (needs Debian’s chromium)', () => {
  beforeAll(async () => {
    mkdirSync(pictures, { recursive: true });
    server = await startBuiltServer();
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  it.each([
    ['desktop', { width: 1280, height: 900 }],
    ['phone', { width: 390, height: 844 }],
  ])('is readable at %s width, and loads nothing from elsewhere', async (name, viewport) => {
    const page = await browser.newPage({ viewport });
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
});
