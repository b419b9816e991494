// @module-tag full

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { FeedCopy, readFeed } from '../support/change-feed.ts';
import { createTestDatabase } from '../support/database.ts';
import { addInteractions, addOldDay } from '../support/old-interactions.ts';

/**
 * Tests expiring interactions while the process that deletes them is killed three times (or KILLS times), after a step
 * or in the middle of one.
 */

const kills = Number(process.env.KILLS ?? 3);
const perDay = Math.max(30_000, 6_000 * kills);
const daysAgo = [8, 7, 6, 5];

let DATABASE_URL: string;
let admin: pg.Client;
let server: BuiltServer | undefined;
beforeAll(async () => {
  DATABASE_URL = await createTestDatabase();
  admin = new pg.Client({ connectionString: DATABASE_URL });
  await admin.connect();
});
afterAll(async () => {
  await server?.stop();
  await admin.end();
});

async function start(): Promise<BuiltServer> {
  // Delete the killed process's lease, which would last another 15 s.
  await admin.query('delete from leases');
  server = await startBuiltServer({ DATABASE_URL });
  return server;
}

async function progress(): Promise<{ at: string | null; isDone: boolean }> {
  const { rows } = await admin.query(
    `select deleted_below as at, deleted_below >= expired_below as is_done from retention_progress
     where type = 'interactions'`,
  );
  return { at: rows[0]?.at ?? null, isDone: rows[0]?.is_done ?? false };
}

/** Kills the process after at least one step. Returns false if the deletion had already finished. */
async function killWhileDeleting(): Promise<boolean> {
  const { at: before } = await progress();
  const { process: running } = await start();
  for (;;) {
    const { at, isDone } = await progress();
    if (isDone) return false;
    if (at !== null && at !== before) break;
    await sleep(1);
  }
  await sleep(Math.random() * 50);
  running.kill('SIGKILL');
  await new Promise((resolve) => running.once('close', resolve));
  return !(await progress()).isDone;
}

it('deletes everything that has expired and nothing else, and counts and the feed agree', {
  timeout: 600_000,
}, async () => {
  const first = await start();
  const key = await first.createKey('acme');
  await first.createKey('keeper');
  const { rows } = await admin.query<{ organisation_id: string; slug: string }>(
    'select organisation_id, slug from organisations',
  );
  const idOf = (slug: string) => rows.find((one) => one.slug === slug)?.organisation_id as string;
  first.process.kill('SIGKILL');
  await new Promise((resolve) => first.process.once('close', resolve));
  for (const ago of daysAgo) {
    const day = await addOldDay(admin, ago);
    await addInteractions(admin, idOf('acme'), day, perDay);
    // The other organisation's rows prevent the whole day from being dropped.
    await addInteractions(admin, idOf('keeper'), day, 3);
  }
  const today = await addInteractions(admin, idOf('acme'), { startMs: Date.now() }, 10, () => 0);
  await admin.query('update interaction_partitions set is_indexed = true');
  await admin.query(`update organisations set interactions_kept_days = 2 where slug = 'acme'`);

  let killed = 0;
  while (killed < kills && (await killWhileDeleting())) killed++;
  expect(killed).toBe(kills);
  const last = await start();
  await expect.poll(async () => (await progress()).isDone, { timeout: 60_000 }).toBe(true);

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
