import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';

/** Opens the console in Debian's Chromium. */

export const chromiumPath = '/usr/bin/chromium-headless-shell';

/** Launches Chromium with a long timeout, because other tests use the CPU at the same time. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-gpu'],
    timeout: 240_000,
  });
}

export const headingOf = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });

/** Opens a console screen and signs in with a key. */
export async function signInAt(page: Page, url: string, key: string, heading: string): Promise<void> {
  await page.goto(url);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await headingOf(page, heading).waitFor();
}

/** Opens a page, and returns the time until all of its content is visible. `waitFor` would poll too rarely for that. */
export async function loadMs(page: Page, url: string, content: readonly Locator[]): Promise<number> {
  const beganMs = performance.now();
  await page.goto(url, { waitUntil: 'commit' });
  for (const locator of content) while (!(await locator.isVisible())) await sleep(10);
  return performance.now() - beganMs;
}

/** Chooses a file on the upload screen. */
export async function chooseFile(page: Page, name: string, content: string | Uint8Array): Promise<void> {
  const file = { name, mimeType: 'text/plain', buffer: Buffer.from(content as string) };
  await page.getByLabel('File to upload').setInputFiles(file);
}

export function csvOf(records: readonly Readonly<Record<string, unknown>>[]): string {
  const header = Object.keys(records[0] ?? {});
  return [header, ...records.map((record) => header.map((field) => record[field]))]
    .map((cells) => cells.join(','))
    .join('\n');
}

/** Each screen must work in two widths and two colour schemes. The two are independent, so two combinations are enough. */
export const appearances = [
  ['a desk, light', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
  ['a phone, dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
] as const;

const axe = readFileSync(
  fileURLToPath(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url)),
  'utf8',
);

/** Returns accessibility problems, and whether the page scrolls sideways. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(
    `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html))
      .concat(document.documentElement.scrollWidth > innerWidth ? ['wider than the window'] : []))`,
  );
}
