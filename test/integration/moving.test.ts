import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { exportOrganisation } from '../../src/moving/export-organisation.ts';
import { importOrganisation } from '../../src/moving/import-organisation.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { linesIn, rowsOf } from '../support/move-organisation.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';

/** Tests exports with several files, and exports during uploads. test/acceptance/moving.test.ts tests the commands. */

const by = { actor: 'test' };
const folder = mkdtempSync(join(tmpdir(), 'intake-moving-'));
let source: TestApp;
let target: TestApp;
beforeAll(async () => {
  [source, target] = [await createTestApp(), await createTestApp()];
});
afterAll(async () => {
  await Promise.all([source.close(), target.close()]);
  rmSync(folder, { recursive: true });
});

const poolsOf = ({ pool }: TestApp) => ({ serving: pool, admin: pool });
const silent = { onRows: () => {}, onFile: () => {} };

async function upload(key: string, type: string, records: readonly object[]): Promise<void> {
  const answer = await source.app.inject({
    method: 'POST',
    url: type === 'interactions' ? '/user-interactions/batch' : `/v1/data/${type}`,
    headers: { authorization: `Bearer ${key}` },
    payload: { records },
  });
  expect(answer.statusCode).toBe(200);
}

const interactionWith = (item_id: string, event_timestamp: number) => ({
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id,
  event_timestamp,
});

async function moved(slug: string) {
  const { failed } = await importOrganisation(
    poolsOf(target),
    by,
    { slug, folder: join(folder, slug), erasureKeys: [] },
    silent,
  );
  return failed;
}

it('an interrupted export of several files is split at the same rows, and moves completely', async () => {
  const { key } = await source.organisation('parts');
  const shop = newShop();
  await upload(key, 'shops', [shop]);
  for (let at = 0; at < 2; at++)
    await upload(
      key,
      'transactions',
      many(3_500, () => newTransaction(shop.shop_id)),
    );
  await upload(
    key,
    'interactions',
    many(4_100, (at) => interactionWith(shop.shop_id, 1_700_000_000 + at)),
  );
  const asked = { slug: 'parts', folder: join(folder, 'parts'), partRows: 2_000 };
  // Interrupt the export in the third file of each type.
  for (const type of ['interactions', 'transactions'])
    await expect(
      exportOrganisation(poolsOf(source), by, asked, (reported, rows) => {
        if (reported === type && rows > 4_000) throw new Error('interrupted');
      }),
    ).rejects.toThrow('interrupted');
  const { files, counts } = await exportOrganisation(poolsOf(source), by, asked, () => {});
  const cut = (type: string) => files.filter((part) => part.type === type).map(({ rows }) => rows);
  expect(cut('transactions')).toEqual([2_000, 2_000, 2_000, 1_000]);
  expect(cut('interactions')).toEqual([2_000, 2_000, 100]);
  const lines = await linesIn(asked.folder);
  expect(new Set(lines.transactions).size).toBe(counts.transactions);
  expect(new Set(lines.interactions).size).toBe(counts.interactions);
  expect(await moved('parts')).toBe(0);
  const tables = ['shops', 'transactions', 'interactions'];
  const sorted = async ({ databaseUrl }: TestApp) => {
    const rows = await rowsOf(databaseUrl, 'parts', tables);
    return { ...rows, interactions: rows.interactions!.toSorted() };
  };
  expect(await sorted(target)).toEqual(await sorted(source));
});

it.each(['requested', 'sweeping'])('refuses an export while an erasure is %s', async (state) => {
  const { organisationId } = await source.organisation(state);
  await source.pool.query(
    `insert into erasures (organisation_id, erasure_id, mode, key_id, people, known, state)
     values ($1, gen_random_uuid(), 'delete', 'key', 1, 1, $2)`,
    [organisationId, state],
  );
  const asked = { slug: state, folder: join(folder, state) };
  await expect(exportOrganisation(poolsOf(source), by, asked, () => {})).rejects.toThrow(
    'people are being erased from this organisation',
  );
  await source.pool.query('delete from erasures where organisation_id = $1', [organisationId]);
  await exportOrganisation(poolsOf(source), by, asked, () => {});
});

it('an export during uploads has everything that its rows refer to', async () => {
  const { key } = await source.organisation('busy');
  let isExported = false;
  let rounds = 0;
  const uploads = (async () => {
    for (; !isExported || rounds < 3; rounds++) {
      const shops = many(50, () => newShop());
      await upload(key, 'shops', shops);
      await Promise.all([
        upload(
          key,
          'transactions',
          many(500, (at) => newTransaction(shops[at % 50]!.shop_id)),
        ),
        upload(
          key,
          'interactions',
          many(500, (at) => interactionWith(shops[at % 50]!.shop_id, 1_700_000_000 + at)),
        ),
      ]);
    }
  })();
  await expect.poll(() => rounds).toBeGreaterThan(5);
  const asked = { slug: 'busy', folder: join(folder, 'busy'), partRows: 1_000 };
  const before = rounds;
  const { counts } = await exportOrganisation(poolsOf(source), by, asked, () => {});
  isExported = true;
  await uploads;
  expect(rounds).toBeGreaterThan(before);
  expect(counts.shops).toBeGreaterThanOrEqual(before * 50);
  expect(await moved('busy')).toBe(0);
});
