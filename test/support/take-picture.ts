import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

/**
 * Takes a picture of a page when it has loaded, into .intake/pictures/. With PICTURES=docs those that the documents show are
 * written to docs/pictures/, as high as the window.
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
