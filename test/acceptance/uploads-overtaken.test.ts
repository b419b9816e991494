// @module-tag pooler

import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { apiOf } from '../support/api.ts';
import { sharedServer } from '../support/built-server.ts';
import { newTag } from '../support/new-records.ts';
import { countWaiting } from '../support/query-database.ts';

/** Tests committing a newer version after an upload has compared its record with the stored one, but before it writes. */

it('2: an older version that has already been compared does not replace a newer one', async () => {
  const server = await sharedServer();
  const api = apiOf(server.url, await server.createKey('overtaken'));
  const tag = newTag({ updated: '2026-01-01T09:00:00Z' });
  await api.upload('tags', [tag]);
  const newer = new pg.Client({ connectionString: server.databaseUrl });
  await newer.connect();
  onTestFinished(() => newer.end());
  await newer.query('begin');
  // The upload still sees the first version, considers its own version newer, and then waits for this row.
  await newer.query(`update tags set name = 'newest', updated = '2026-01-01T11:00:00Z' where tag_id = $1`, [
    tag.tag_id,
  ]);
  const older = api.batch('tags', [{ ...tag, name: 'late', updated: '2026-01-01T10:00:00Z' }]);
  await expect.poll(() => countWaiting(server.databaseUrl)).toBeGreaterThan(0);
  await newer.query('commit');
  expect(await older).toMatchObject({ http: 200, counts: { updated: 0, stale: 1 }, stale: [0] });
  expect((await api.get(`/v1/data/tags/${tag.tag_id}`)).body).toMatchObject({
    name: 'newest',
    updated: '2026-01-01T11:00:00Z',
  });
});
