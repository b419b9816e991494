import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

/**
 * Takes a screenshot of a loaded page and saves it in .intake/pictures/. With PICTURES=docs, the pictures that the
 * documents use are saved in docs/pictures/, cropped to the window.
 */
export async function takePicture(page: Page, file: string, inDocs: ReadonlySet<string>): Promise<void> {
  await page.waitForLoadState('networkidle');
  const isForDocs = process.env.PICTURES === 'docs' && inDocs.has(file);
  const folder = fileURLToPath(
    new URL(isForDocs ? '../../docs/pictures/' : '../../.intake/pictures/', import.meta.url),
  );
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: `${folder}${file}.png`, fullPage: !isForDocs });
}
