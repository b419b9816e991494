import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { exportOrganisation, type MovePools } from '../../src/moving/export-organisation.ts';
import { importOrganisation } from '../../src/moving/import-organisation.ts';

/**
 * Exports an organisation and imports it twice into the same database under another slug. The second import has nothing
 * left to do.
 */
export async function moveThere(
  pools: MovePools,
  slug: string,
  erasureKeys: readonly string[],
): Promise<void> {
  const by = { actor: 'test' };
  const folder = mkdtempSync(join(tmpdir(), 'intake-moving-'));
  try {
    await exportOrganisation(pools, by, { slug, folder }, () => {});
    for (const wasDone of [false, true]) {
      const asked = { slug: `${slug}-moved`, folder, erasureKeys };
      const imported = await importOrganisation(pools, by, asked, { onRows: () => {}, onFile: () => {} });
      expect(imported).toMatchObject({ wasDone });
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
