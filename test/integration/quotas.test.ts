// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changeOrganisation, issueKey, type OrganisationChange } from '../../src/operator/audited-actions.ts';
import { findOrganisation } from '../../src/operator/organisations.ts';
import { quotaLimits } from '../../src/quotas/limits.ts';
import { countNearQuota, UsageKeeper } from '../../src/quotas/measure-usage.ts';
import { sampleRowBytes } from '../../src/quotas/row-bytes.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { many, newTag } from '../support/new-records.ts';

/**
 * Tests an organisation's quota. In these tests, each request looks up its key, and the test itself starts the leader's
 * chore. test/acceptance/quotas.test.ts uses processes that poll on their own.
 */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const by = { actor: 'test' };
let slug: string;
let organisationId: string;
let key: string;
beforeEach(async () => {
  slug = `o-${randomUUID()}`;
  ({ organisationId, key } = await test.organisation(slug));
});

const measure = () => new UsageKeeper(test.pool).run();
const change = (fields: OrganisationChange, of = slug) => changeOrganisation(test.pool, by, of, fields);

async function send(url: string, payload?: object, headers: Record<string, string> = {}) {
  const answer = await test.app.inject({
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...(payload && { payload }),
  });
  return { status: answer.statusCode, quota: answer.headers['intake-quota'], body: answer.json(), answer };
}

const upload = (count: number, headers?: Record<string, string>) =>
  send('/v1/data/tags', { records: many(count, () => newTag()) }, headers);
const read = (url: string) =>
  test.app.inject({ url, headers: { authorization: `Bearer ${key}` } }).then(({ statusCode }) => statusCode);

async function storedIn(id = organisationId): Promise<number> {
  const { rows } = await test.pool.query<{ count: number }>(
    `select (select count(*) from tags where organisation_id = $1)::integer
       + (select count(*) from interactions where organisation_id = $1)::integer as count`,
    [id],
  );
  return rows[0]?.count ?? 0;
}

const used = { error: 'Forbidden', code: 'quota_exceeded' };

describe('a quota of records', () => {
  it('is reported in every answer to an upload from 80 % on, and refuses uploads when it is used up', async () => {
    await change({ records_stored_max: 100 });
    expect(await upload(79)).toMatchObject({ status: 200, quota: undefined });
    await measure();
    expect(await upload(1)).toMatchObject({ status: 200, quota: undefined });
    await measure();
    const near = '"records";used=80;max=100';
    expect(await upload(20)).toMatchObject({ status: 200, quota: near });
    // Failed requests get the header as well.
    expect(await send('/v1/data/tags', { records: [] })).toMatchObject({ status: 400, quota: near });
    await measure();
    expect(await upload(1)).toMatchObject({
      status: 403,
      quota: '"records";used=100;max=100',
      body: { ...used, message: expect.stringContaining('may store 100 records and has 100; ') },
    });
    expect(await storedIn()).toBe(100);
  });

  it('is exceeded by no more than what was sent between two measurements', async () => {
    await change({ records_stored_max: 10 });
    const each = 3;
    for (let round = 0; round < 10; round++) {
      await upload(each);
      await measure();
    }
    expect(await storedIn()).toBe(12);
    expect(await upload(each)).toMatchObject({ status: 403 });
  });

  it('counts differences that are not rolled up, interactions and records alike', async () => {
    const tag = newTag();
    await send('/v1/data/tags', { records: [tag] });
    await change({ records_stored_max: 3 });
    const interaction = {
      interaction_type: 'SHARE',
      item_type: 'TAG',
      item_id: tag.tag_id,
      event_timestamp: 1,
    };
    const single = (headers?: Record<string, string>) => send('/user-interactions', interaction, headers);
    const batch = (headers?: Record<string, string>) =>
      send('/user-interactions/batch', { records: [interaction] }, headers);
    expect((await single()).status).toBe(201);
    const first = await single({ 'idempotency-key': 'one' });
    await measure();
    expect(await single()).toMatchObject({ status: 403, quota: '"records";used=3;max=3', body: used });
    expect(await single({ 'idempotency-key': 'two' })).toMatchObject({ status: 403, body: used });
    expect(await batch()).toMatchObject({ status: 403, body: used });
    expect(await batch({ 'idempotency-key': 'three' })).toMatchObject({ status: 403, body: used });
    expect(await storedIn()).toBe(3);
    // Retrying a stored interaction returns the first response again, and a refusal does not use up the key.
    expect(await single({ 'idempotency-key': 'one' })).toMatchObject({ status: 201, body: first.body });
    await change({ records_stored_max: 4 });
    expect((await single({ 'idempotency-key': 'two' })).status).toBe(201);
  });

  it('lets a retry of an upload repeat its answer, and finish what was started', async () => {
    const records = many(1_500, () => newTag());
    const retry = () => send('/v1/data/tags', { records }, { 'idempotency-key': 'k' });
    const first = await retry();
    await change({ records_stored_max: 1_000 });
    await measure();
    expect(await retry()).toMatchObject({ status: 200, body: first.body });
    // Simulate a process that was killed between the two batches.
    await test.pool.query(
      `with b as (delete from receipt_batches where organisation_id = $1 and batch = 2)
       update receipts set batches = '{1}' where organisation_id = $1`,
      [organisationId],
    );
    const { status, body } = await retry();
    expect({ status, counts: body.batches[1].data.counts }).toMatchObject({
      status: 200,
      counts: { unchanged: 500 },
    });
    expect(await upload(1, { 'idempotency-key': 'other' })).toMatchObject({ status: 403, body: used });
  });

  it('admits reads, dry runs, discards and erasures, but no replay', async () => {
    await send('/v1/data/tags', { records: [newTag(), { tag_id: 'no' }] });
    await change({ records_stored_max: 1 });
    await measure();
    expect((await upload(1)).status).toBe(403);
    expect(await send('/v1/data/tags?dry_run=true', { records: [newTag()] })).toMatchObject({
      status: 200,
      body: { dry_run: true },
    });
    for (const url of ['/v1/data', '/v1/data/tags', '/user-interactions', '/v1/rejections', '/v1/changes'])
      expect(await read(url)).toBe(200);
    expect(await send('/v1/rejections/replay')).toMatchObject({ status: 403, body: used });
    // An Idempotency-Key has no effect, because this operation does not support it.
    const withKey = await send('/v1/rejections/replay', undefined, { 'idempotency-key': 'k' });
    expect(withKey).toMatchObject({ status: 403, body: used });
    const discarded = await test.app.inject({
      method: 'DELETE',
      url: '/v1/rejections',
      headers: { authorization: `Bearer ${key}` },
    });
    expect(discarded.json()).toMatchObject({ discarded: 1 });
    const erased = await send('/v1/erasures', { mode: 'delete', customer_ids: [randomUUID()] });
    expect(erased.status).toBeLessThan(300);
  });

  it('admits uploads when it is raised or removed, and earlier measurements are forgotten', async () => {
    await upload(5);
    await change({ records_stored_max: 5 });
    await measure();
    expect((await upload(1)).status).toBe(403);
    await change({ records_stored_max: 7 });
    expect(await upload(1)).toMatchObject({ status: 200, quota: undefined });
    await measure();
    expect((await upload(1)).quota).toBe('"records";used=6;max=7');
    await change({ records_stored_max: null });
    expect(await upload(1)).toMatchObject({ status: 200, quota: undefined });
    await measure();
    expect((await findOrganisation(test.pool, slug))?.records_stored).toBeNull();
    const { rows } = await test.pool.query('select from quota_usage where organisation_id = $1', [
      organisationId,
    ]);
    expect(rows).toEqual([]);
  });

  it('does not affect other organisations', async () => {
    const other = await test.organisation(`other-${slug}`);
    await change({ records_stored_max: 1 });
    await upload(1);
    await measure();
    expect((await upload(1)).status).toBe(403);
    key = other.key;
    expect(await upload(3)).toMatchObject({ status: 200, quota: undefined });
    const { rows } = await test.pool.query('select from quota_usage where organisation_id = $1', [
      other.organisationId,
    ]);
    expect(rows).toEqual([]);
  });

  it('refuses visitors of a web page without showing them any figure', async () => {
    const tag = newTag();
    await send('/v1/data/tags', { records: [tag] });
    const origin = 'https://shop.example';
    const browser = await issueKey(test.pool, by, {
      organisationId,
      permissions: ['interactions:write'],
      browserOrigins: [origin],
      label: null,
      expiresAt: null,
    });
    await change({ records_stored_max: 5 });
    await measure();
    key = browser.key;
    const interaction = {
      interaction_type: 'SHARE',
      item_type: 'TAG',
      item_id: tag.tag_id,
      event_timestamp: 1,
    };
    const visit = (headers = {}) => send('/user-interactions', interaction, { origin, ...headers });
    for (const n of many(4, String))
      expect(await visit({ 'idempotency-key': n })).toMatchObject({ status: 202, quota: undefined });
    await measure();
    for (const headers of [{}, { 'idempotency-key': 'new' }]) {
      const refused = await visit(headers);
      expect(refused).toMatchObject({ status: 403, quota: undefined, body: used });
      expect(refused.body.message).not.toMatch(/\d/);
      expect(refused.answer.headers['access-control-allow-origin']).toBe(origin);
      const batch = await send(
        '/user-interactions/batch',
        { records: [interaction] },
        { origin, ...headers },
      );
      expect(batch).toMatchObject({ status: 403, quota: undefined, body: used });
    }
    expect(await visit({ 'idempotency-key': '0' })).toMatchObject({ status: 202 });
    expect(await storedIn()).toBe(5);
  });
});

describe('a quota of bytes', () => {
  it('counts rows as PostgreSQL stores them, exactly while there are few', async () => {
    await upload(10);
    await send('/v1/data/tags', { records: [newTag({ name: 'x'.repeat(900) })] });
    await change({ bytes_stored_max: 1_000_000 });
    await measure();
    const { rows } = await test.pool.query<{ bytes: number }>(
      `select sum(pg_column_size(t))::float8 as bytes from tags t where organisation_id = $1`,
      [organisationId],
    );
    const stored = (await findOrganisation(test.pool, slug))?.bytes_stored as number;
    expect(stored).toBeGreaterThan(1_500);
    expect(Math.abs(stored - (rows[0]?.bytes ?? 0))).toBeLessThanOrEqual(10 * 8);
    await change({ bytes_stored_max: stored + 1 });
    expect(await upload(1)).toMatchObject({
      status: 200,
      quota: `"bytes";used=${stored};max=${stored + 1}`,
    });
    await measure();
    expect(await upload(1)).toMatchObject({ status: 403, body: used });
  });

  it('measures rows again when they were replaced by larger ones', async () => {
    const tags = many(5, () => newTag());
    await send('/v1/data/tags', { records: tags });
    await change({ bytes_stored_max: 3_000 });
    await measure();
    expect((await upload(1)).quota).toBeUndefined();
    await send('/v1/data/tags', { records: tags.map((tag) => ({ ...tag, name: 'é'.repeat(900) })) });
    await measure();
    expect((await upload(1)).status).toBe(403);
  });

  it('does not depend on what other organisations store', async () => {
    await upload(3);
    await change({ bytes_stored_max: 10_000 });
    await measure();
    const before = (await findOrganisation(test.pool, slug))?.bytes_stored;
    const [own, other] = [key, await test.organisation(`large-${slug}`)];
    key = other.key;
    await send('/v1/data/tags', { records: many(100, () => newTag({ name: 'y'.repeat(999) })) });
    key = own;
    await test.pool.query('analyze tags');
    await measure();
    expect((await findOrganisation(test.pool, slug))?.bytes_stored).toBe(before);
  });

  it('samples many rows, even if their ids are close together', async () => {
    const count = 3 * quotaLimits.rowsSampled;
    await test.pool.query(
      `insert into tags (organisation_id, tag_id, name, is_deleted)
       select $1, lpad(to_hex(n), 32, '0')::uuid, repeat('z', case when n % 2 = 0 then 100 else 900 end), false
       from generate_series(1, $2::integer) n`,
      [organisationId, count],
    );
    const small = await sampleRowBytes(test.pool, organisationId, 'tags', 1);
    const sampled = await sampleRowBytes(test.pool, organisationId, 'tags', count);
    const { rows } = await test.pool.query<{ bytes: number }>(
      'select avg(pg_column_size(t))::float8 as bytes from tags t where organisation_id = $1',
      [organisationId],
    );
    expect(rows[0]?.bytes).toBeGreaterThan(300);
    for (const bytes of [small, sampled])
      expect(Math.abs(bytes / (rows[0]?.bytes as number) - 1)).toBeLessThan(0.05);
    expect(await sampleRowBytes(test.pool, organisationId, 'interactions', count)).toBe(0);
  });
});

it('the leader counts the organisations that have used most of a quota, and all of it', async () => {
  await measure();
  const before = await countNearQuota(test.pool);
  await upload(9);
  await change({ records_stored_max: 10, bytes_stored_max: 1_000_000 });
  await measure();
  expect(await countNearQuota(test.pool)).toEqual({ near: before.near + 1, full: before.full });
  await change({ bytes_stored_max: 100 });
  expect(await countNearQuota(test.pool)).toEqual({ near: before.near + 1, full: before.full + 1 });
});

it('an organisation that is measured again and has not changed is not looked up again', async () => {
  await upload(9);
  await change({ records_stored_max: 10 });
  await measure();
  const changedIn = async () =>
    (
      await test.pool.query<{ x: string }>(
        'select changed_in::text as x from organisations where organisation_id = $1',
        [organisationId],
      )
    ).rows[0]?.x;
  const first = await changedIn();
  await measure();
  expect(await changedIn()).toBe(first);
  await upload(1);
  await measure();
  expect(await changedIn()).not.toBe(first);
});
