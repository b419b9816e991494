// @module-tag full
// @module-tag pooler

import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { FeedCopy, readFeed } from '../support/change-feed.ts';
import { KilledProcesses, kills } from '../support/killed-processes.ts';
import { addInteractions, addOldDay } from '../support/old-interactions.ts';

/**
 * Tests expiring interactions while the process that deletes them is killed three times (or KILLS times), after a step
 * or in the middle of one.
 */

const perDay = Math.max(30_000, 6_000 * kills);
const daysAgo = [8, 7, 6, 5];

let processes: KilledProcesses;
let admin: pg.Client;
beforeAll(async () => {
  processes = await KilledProcesses.create();
  admin = processes.admin;
});
afterAll(() => processes.end());

/** Returns the id below which everything is deleted, or undefined when all that has expired is deleted. */
async function place(): Promise<string | undefined> {
  const { rows } = await admin.query<{ at: string; is_done: boolean }>(
    `select deleted_below as at, deleted_below >= expired_below as is_done from retention_progress
     where type = 'interactions'`,
  );
  const [progress] = rows;
  return progress?.is_done ? undefined : (progress?.at ?? '');
}

it('deletes everything that has expired and nothing else, and counts and the feed agree', async () => {
  const first = await processes.start();
  const key = await first.createKey('acme');
  await first.createKey('keeper');
  const { rows } = await admin.query<{ organisation_id: string; slug: string }>(
    'select organisation_id, slug from organisations',
  );
  const idOf = (slug: string) => rows.find((one) => one.slug === slug)?.organisation_id as string;
  await processes.kill();
  for (const ago of daysAgo) {
    const day = await addOldDay(admin, ago);
    await addInteractions(admin, idOf('acme'), day, perDay);
    // The other organisation's rows prevent the whole day from being dropped.
    await addInteractions(admin, idOf('keeper'), day, 3);
  }
  const today = await addInteractions(admin, idOf('acme'), { startMs: Date.now() }, 10, () => 0);
  await admin.query('update interaction_partitions set is_indexed = true');
  await admin.query(`update organisations set interactions_kept_days = 2 where slug = 'acme'`);

  await processes.killOften(50, place);
  const last = await processes.start();
  await expect.poll(place).toBeUndefined();

  const stored = await admin.query<{ slug: string; count: number }>(
    `select slug, count(*)::integer as count from interactions join organisations using (organisation_id) group by 1 order by 1`,
  );
  expect(stored.rows).toEqual([
    { slug: 'acme', count: today.length },
    { slug: 'keeper', count: 3 * daysAgo.length },
  ]);
  const api = apiOf(last.url, key);
  const { body } = await api.get('/v1/data');
  expect(body.types).toMatchObject([{ type: 'interactions', records: today.length }]);
  const copy = new FeedCopy();
  const { changes } = await readFeed(api, { query: 'types=interactions&limit=1000' });
  for (const change of changes) copy.apply(change);
  const kept = [...copy.records].filter(([, record]) => record !== 'null');
  expect(kept.map(([key]) => key.split(' ')[1]).toSorted()).toEqual(today.toSorted());
  const steps = changes.filter(({ expired_before }) => expired_before !== undefined).length;
  // A step ends at a millisecond boundary, so it can be smaller than the maximum.
  expect(steps).toBeGreaterThanOrEqual((daysAgo.length * perDay) / 10_000);
  expect(steps).toBeLessThan(2 * ((daysAgo.length * perDay) / 10_000));
});
