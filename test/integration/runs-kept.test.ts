// @module-tag postgres-15

import { hash, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { changeOrganisation } from '../../src/operator/audited-actions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { openRun } from '../../src/runs/open-run.ts';
import { purgeFileClaims, purgeRuns } from '../../src/runs/purge-runs.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { expireAll } from '../support/jobs.ts';
import { many, newTag } from '../support/new-records.ts';
import { countWaiting } from '../support/query-database.ts';

/** Runs expire with receipts, and nothing is stored in a run that has ended. */

let test: TestApp;
/** A pool with the serving role's privileges. */
let serving: OwnPool;
let url: string;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
  url = await test.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

async function newOrganisation(): Promise<{ slug: string; organisationId: string; api: Api }> {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const { organisationId, key } = await test.organisation(slug);
  return { slug, organisationId, api: apiOf(url, key) };
}

/** Opens a run with a file of interactions, as it would have been opened so many days ago. */
async function openRunAgo(organisationId: string, days: number): Promise<void> {
  const file = {
    name: 'visits.csv',
    bytes: 1,
    sha256: hash('sha256', randomUUID()),
    type: 'interactions',
  } as const;
  const opening = {
    organisationId,
    keyId: 'key',
    idempotencyKey: undefined,
    clientVersion: null,
    again: false,
  };
  const { runId } = await openRun(serving, { ...opening, name: `${days} days`, files: [file] });
  const values = [runId, `${days} days`];
  await test.pool.query(
    `update runs set run_id = uuid_floor(now() - $2::interval) where run_id = $1`,
    values,
  );
  await test.pool.query(
    `update run_file_claims set claimed_at = now() - $2::interval where run_id = $1`,
    values,
  );
}

async function keptOf(organisationId: string) {
  const runs = await test.pool.query<{ name: string }>(
    'select name from runs where organisation_id = $1 order by run_id desc',
    [organisationId],
  );
  const claims = await test.pool.query('select from run_file_claims where organisation_id = $1', [
    organisationId,
  ]);
  return { runs: runs.rows.map(({ name }) => name), claims: claims.rows.length };
}

it('477: runs are deleted when receipts of the same age are, and claims on files after 400 days', async () => {
  const { organisationId } = await newOrganisation();
  for (const days of [1, 30, 38, 399, 401]) await openRunAgo(organisationId, days);
  await purgeRuns(serving, 30);
  await purgeFileClaims(serving);
  expect(await keptOf(organisationId)).toEqual({ runs: ['1 days', '30 days'], claims: 4 });
});

it('477: runs expire with the receipts of an organisation that keeps them for fewer days', async () => {
  const { slug, organisationId } = await newOrganisation();
  const other = await newOrganisation();
  for (const days of [1, 5]) {
    await openRunAgo(organisationId, days);
    await openRunAgo(other.organisationId, days);
  }
  await changeOrganisation(test.pool, { actor: 'test' }, slug, { receipts_kept_days: 3 });
  await expireAll(serving);
  expect(await keptOf(organisationId)).toEqual({ runs: ['1 days'], claims: 2 });
  expect(await keptOf(other.organisationId)).toEqual({ runs: ['1 days', '5 days'], claims: 2 });
});

/** Opens a run, and ends it while its first upload waits for a record that it changes. */
async function endDuringUpload(
  api: Api,
  upload: (runId: string, name: string) => Promise<Answer>,
  tagId: string,
) {
  const file = { name: 'tags.csv', bytes: 1, sha256: hash('sha256', 'x'), type: 'tags' };
  const { body: run } = await api.post('/v1/runs', { name: 'nightly', files: [file] });
  await api.upload('tags', [{ tag_id: tagId, name: 'before' }]);
  const blocker = new pg.Client({ connectionString: test.databaseUrl });
  await blocker.connect();
  try {
    await blocker.query('begin');
    await blocker.query('select from tags where tag_id = $1 for update', [tagId]);
    const uploading = upload(run.run_id, 'after');
    await expect.poll(() => countWaiting(test.databaseUrl), { timeout: 20_000 }).toBe(1);
    const ending = api.post(`/v1/runs/${run.run_id}/end`, { status: 'finished' });
    await expect.poll(() => countWaiting(test.databaseUrl), { timeout: 20_000 }).toBe(2);
    await blocker.query('commit');
    return { runId: run.run_id, uploaded: await uploading, ended: await ending };
  } finally {
    await blocker.end();
  }
}

it('475: the end of a run waits for a batch that is being stored, and counts it', async () => {
  const { api } = await newOrganisation();
  const { tag_id } = newTag();
  const upload = (runId: string, name: string) =>
    api.post(`/v1/data/tags?run_id=${runId}&file=0`, { records: [{ tag_id, name }] });
  const { runId, uploaded, ended } = await endDuringUpload(api, upload, tag_id);
  expect(uploaded.status).toBe(200);
  expect(ended).toMatchObject({ status: 200, body: { requests: 1, counts: { updated: 1 } } });
  expect((await upload(runId, 'later')).body.code).toBe('run_ended');
});

it('475: batches after the end of a run are refused, also those of a request that began before it, and its retries', async () => {
  const { api } = await newOrganisation();
  const { tag_id } = newTag();
  const others = many(1_001, (n) => newTag(n === 1_000 ? { name: 7 } : {}));
  const headers = { 'idempotency-key': randomUUID() };
  const upload = (runId: string, name: string) =>
    api.post(`/v1/data/tags?run_id=${runId}&file=0`, { records: [{ tag_id, name }, ...others] }, headers);
  const { runId, uploaded, ended } = await endDuringUpload(api, upload, tag_id);
  for (const { status, headers, body } of [uploaded, await upload(runId, 'after')]) {
    expect([status, headers.get('retry-after')]).toEqual([207, null]);
    const [first, second] = body.batches;
    expect(first).toMatchObject({ status: 200, data: { counts: { created: 999, updated: 1 } } });
    expect(second).toMatchObject({ status: 400, data: { counts: { received: 2, failed: 2 } } });
    expect(second.data.errors).toMatchObject([
      { index: 1_000, code: 'run_ended' },
      { index: 1_001, code: 'wrong_type' },
    ]);
  }
  expect(ended).toMatchObject({ status: 200, body: { counts: { received: 1_000 } } });
  expect((await api.get('/v1/rejections')).body.rejections).toEqual([]);
});
