import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';

/** The console in Debian's Chromium. */

export const chromiumPath = '/usr/bin/chromium';

/** A browser shares the machine with the other tests, so it may take long to start. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-gpu'],
    timeout: 120_000,
  });
}

export const headingOf = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });

/** Opens a screen of the console and signs in with a key on the way. */
export async function signInAt(page: Page, url: string, key: string, heading: string): Promise<void> {
  await page.goto(url);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await headingOf(page, heading).waitFor();
}

/** Opens a page; returns after how many milliseconds all of its content was visible. `waitFor` looks only every half a second. */
export async function loadMs(page: Page, url: string, content: readonly Locator[]): Promise<number> {
  const beganMs = performance.now();
  await page.goto(url, { waitUntil: 'commit' });
  for (const locator of content) while (!(await locator.isVisible())) await sleep(10);
  return performance.now() - beganMs;
}

/** Chooses a file on the screen that uploads files. */
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

/** Every screen has to work in two widths and two colours. The colours are the same in both widths, so two pairs are enough. */
export const appearances = [
  ['a desk, light', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
  ['a phone, dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
] as const;

const axe = readFileSync(
  fileURLToPath(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url)),
  'utf8',
);

/** What a screen reader or a person with weak eyes would stumble over, and whether the page scrolls sideways. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(
    `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html))
      .concat(document.documentElement.scrollWidth > innerWidth ? ['wider than the window'] : []))`,
  );
}
