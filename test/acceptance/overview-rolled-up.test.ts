// @module-tag full

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, type ExpectStatic, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import {
  badTag,
  danglingTransaction,
  many,
  newShop,
  newTag,
  newTransaction,
} from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests GET /v1/data before and after maintenance rolls up the counts, which happens every ten seconds. */

let server: SharedServer;
beforeAll(async () => {
  server = await sharedServer();
});

// The server rolls up counts every ten seconds, so both tests wait at the same time. Each has its own organisation.
describe('after the counts are rolled up', { concurrent: true }, () => {
  async function newOwn(expect: ExpectStatic) {
    const slug = `own-${randomUUID().slice(0, 8)}`;
    const pending = async () => {
      const text =
        'select from record_count_changes join organisations using (organisation_id) where slug = $1';
      return (await queryDatabase(server.databaseUrl, text, [server.slugOf(slug)])).length;
    };
    return {
      slug,
      api: apiOf(server.url, await server.createKey(slug)),
      rollUp: () => expect.poll(pending).toBe(0),
    };
  }

  it('returns the same as before, and adds later changes', async ({ expect }) => {
    const { api, rollUp } = await newOwn(expect);
    const shop = newShop({ updated: '2026-01-01T00:00:00.000001Z' });
    await api.upload('shops', [shop, newShop()]);
    await api.upload('transactions', [newTransaction(shop.shop_id), danglingTransaction()]);
    const before = await overviewOf(api);
    expect(before).toMatchObject({ shops: { records: 2 }, transactions: { records: 1, open_rejections: 1 } });
    await rollUp();
    expect(await overviewOf(api)).toEqual(before);

    await api.upload('shops', [newShop({ updated: '2025-01-01T00:00:00Z' }), newShop()]);
    await api.upload('transactions', [newTransaction(shop.shop_id), danglingTransaction()]);
    const after = await overviewOf(api);
    expect(after).toMatchObject({
      shops: { records: 4, newest_updated: '2026-01-01T00:00:00.000001Z' },
      transactions: { records: 2, open_rejections: 2 },
    });
    expect(after.shops!.last_upload! > before.shops!.last_upload!).toBe(true);
    await rollUp();
    expect(await overviewOf(api)).toEqual(after);
  });

  it('is correct while uploads continue, at every moment, and after each roll-up', async ({
    expect,
    onTestFinished,
  }) => {
    const { api, slug, rollUp } = await newOwn(expect);
    const [begun, answered] = [{ count: 0 }, { count: 0 }];
    let isOver = false;
    const keepUploading = async () => {
      while (!isOver) {
        begun.count++;
        const records = many(100, (at) => (at ? newTag() : badTag()));
        expect((await api.upload('tags', records)).status).toBe(207);
        answered.count++;
        // Without a pause, the test would store a third of a million records by the second roll-up.
        await sleep(50);
      }
    };
    const uploading = Promise.all(many(4, keepUploading));
    /** Returns the counts that have been rolled up. The rest are still in `record_count_changes`. */
    const rolledUp = async () => {
      const [row] = await queryDatabase<{ records: string }>(
        server.databaseUrl,
        `select records from record_counts join organisations using (organisation_id)
         where slug = $1 and type = 'tags'`,
        [server.slugOf(slug)],
      );
      return Number(row?.records ?? 0);
    };
    onTestFinished(() => {
      isOver = true;
      return uploading.then(() => {});
    });
    const seen = new Set<number>();
    const until = Date.now() + 240_000;
    // The loop covers two roll-ups, with uploads before and after each.
    while (seen.size < 3 && Date.now() < until) {
      const atLeast = answered.count;
      const tags = (await overviewOf(api)).tags ?? { records: 0, open_rejections: 0 };
      const atMost = begun.count;
      // The service reads the two counts one after the other, so they can differ.
      for (const uploads of [tags.records / 99, tags.open_rejections]) {
        expect(uploads).toBeGreaterThanOrEqual(atLeast);
        expect(uploads).toBeLessThanOrEqual(atMost);
      }
      seen.add(await rolledUp());
    }
    // At least one upload follows the last roll-up.
    const begunByThen = begun.count;
    await expect.poll(() => answered.count).toBeGreaterThan(begunByThen);
    isOver = true;
    await uploading;
    expect(seen.size).toBe(3);
    const uploads = answered.count;
    expect(Math.max(...seen)).toBeLessThan(99 * uploads);
    const everything = { records: 99 * uploads, open_rejections: uploads };
    expect((await overviewOf(api)).tags).toMatchObject(everything);
    await rollUp();
    expect((await overviewOf(api)).tags).toMatchObject(everything);
  });
});
