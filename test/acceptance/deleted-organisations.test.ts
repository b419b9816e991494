import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, patch, startAdminServer } from '../support/admin-server.ts';
import { type Api, apiOf } from '../support/api.ts';
import { followFeed } from '../support/change-feed.ts';
import { expectError } from '../support/expect-error.ts';
import { expectInTime } from '../support/in-time.ts';
import { newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/** Tests deleting and restoring an organisation, and the final removal of its data. */

const path = '/admin/v1/organisations';
let server: AdminServer;
let admin: Api;
beforeAll(async () => {
  server = await startAdminServer({ REQUESTS_PER_SECOND_MAX: '1000' });
  admin = server.admin;
});
afterAll(() => server.stop());

const reachesMs = 5_000;
const remove = (slug: string) => admin.send(`${path}/${slug}`, { method: 'DELETE' });
const restore = (slug: string) => admin.post(`${path}/${slug}/restore`, {});

async function create(slug: string): Promise<{ api: Api; key: string; keyId: string }> {
  expect((await admin.post(path, { slug })).status).toBe(201);
  const { body } = await admin.post('/admin/v1/keys', { organisation: slug });
  return { api: apiOf(server.url, body.key), key: body.key, keyId: body.key_id };
}

const codeOf = async (api: Api) => {
  const { status, body } = await api.get('/v1/data');
  return status === 200 ? 200 : body.code;
};

async function signIn(key: string): Promise<() => Promise<unknown>> {
  const url = `${server.url}/console/api/session`;
  const headers = { origin: server.url, 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ key }) });
  expect(answer.status).toBe(201);
  const [cookie = ''] = (answer.headers.get('set-cookie') ?? '').split(';');
  return async () => {
    const shown = await fetch(url, { headers: { cookie } });
    return shown.status === 200 ? 200 : ((await shown.json()) as { code: string }).code;
  };
}

describe('deleting', () => {
  it('refuses every key with 410 within five seconds, including readers of the feed and the console', async () => {
    await expectInTime(async () => {
      const slug = `gone-${randomUUID()}`;
      const { api, key } = await create(slug);
      const tag = newTag();
      expect((await api.upload('tags', [tag])).status).toBe(200);
      const session = await signIn(key);
      expect(await session()).toBe(200);
      const lines = followFeed(server.url, key);
      expect((await lines.next()).value).toMatchObject({ type: 'tags' });
      // From here on, the reader waits for the next change.
      const ended = (async () => {
        for await (const _ of lines);
      })();
      const startedMs = performance.now();
      const deleted = await remove(slug);
      expect(deleted).toMatchObject({ status: 200, body: { slug, removal: null } });
      await expect.poll(() => codeOf(api)).toBe('organisation_deleted');
      await ended;
      const tookMs = performance.now() - startedMs;
      expectError(await api.post('/v1/data/tags', { records: [newTag()] }), 410);
      expect(await session()).toBe('organisation_deleted');
      await expect(followFeed(server.url, key).next()).rejects.toThrow(/^410 .*organisation_deleted/);
      expect((await restore(slug)).body).toMatchObject({ slug, deleted_at: null });
      await expect.poll(() => codeOf(api)).toBe(200);
      expect(await session()).toBe(200);
      expect((await api.get(`/v1/data/tags/${tag.tag_id}`)).body).toMatchObject({ name: tag.name });
      return [{ what: 'refusing all', ms: tookMs, promisedMs: reachesMs }];
    });
  });

  it('twice changes nothing, and a suspended one is still suspended when it is restored', async () => {
    const { api } = await create('paused');
    const { suspended_at } = (await patch(admin, `${path}/paused`, { suspended: true })).body;
    const deleted = (await remove('paused')).body;
    expect(deleted).toMatchObject({ suspended_at, deleted_at: expect.any(String) });
    expect((await remove('paused')).body).toEqual(deleted);
    await expect.poll(() => codeOf(api)).toBe('organisation_deleted');
    const restored = (await restore('paused')).body;
    expect(restored).toEqual({ ...deleted, deleted_at: null });
    expect((await restore('paused')).body).toEqual(restored);
    await expect.poll(() => codeOf(api)).toBe('organisation_suspended');
    const entries: { act: string }[] = (await admin.get('/admin/v1/audit?organisation=paused')).body.entries;
    expect(entries.map(({ act }) => act).toReversed()).toEqual([
      'organisation.create',
      'key.issue',
      'organisation.suspend',
      'organisation.delete',
      'organisation.restore',
    ]);
  });

  it('prevents changes until it is restored', async () => {
    const { keyId } = await create('fixed');
    await remove('fixed');
    const before = (await admin.get(`${path}/fixed`)).body;
    const organisation = 'fixed';
    for (const answer of [
      await patch(admin, `${path}/fixed`, { name: 'Other' }),
      await patch(admin, `${path}/fixed`, { suspended: true }),
      await admin.post('/admin/v1/keys', { organisation }),
      await admin.post('/admin/v1/console-links', { organisation }),
      await admin.post(`/admin/v1/keys/${keyId}/rotate`, {}),
    ]) {
      expectError(answer, 409);
      expect(answer.body.code).toBe('organisation_is_deleted');
    }
    expect((await admin.get(`${path}/fixed`)).body).toEqual(before);
    expect((await admin.post(path, { slug: 'fixed' })).body.code).toBe('slug_taken');
    const { body } = await admin.get('/admin/v1/keys?organisation=fixed');
    expect(body.keys).toMatchObject([{ key_id: keyId, expires_at: null }]);
  });

  it('of an unknown one is 404', async () => {
    for (const slug of ['nobody', 'x'.repeat(200), "'--"]) {
      expectError(await remove(slug), 404);
      expectError(await restore(slug), 404);
    }
  });
});

describe('on the command line', () => {
  const run = (...args: string[]) =>
    runCommand(['organisations', ...args], { DATABASE_URL: server.databaseUrl });

  it('the slug has to be repeated', async () => {
    const { api } = await create('shell');
    for (const confirm of [[], ['--confirm', 'acme'], ['--confirm', '']])
      expect(await run('delete', 'shell', ...confirm)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('organisations delete shell --confirm shell'),
      });
    expect(await codeOf(api)).toBe(200);
    const deleted = await run('delete', 'shell', '--confirm', 'shell');
    expect(deleted).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('organisations restore shell'),
    });
    expect((await run('list')).stdout).toMatch(/^shell\t.*\tdeleted 20\S+\toff$/m);
    await expect.poll(() => codeOf(api)).toBe('organisation_deleted');
    expect(await run('suspend', 'shell')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^intake-server: The organisation is deleted.*restore.*\n$/),
    });
    expect(await run('restore', 'shell')).toMatchObject({ exitCode: 0 });
    await expect.poll(() => codeOf(api)).toBe(200);
  });

  it('an unknown one is named', async () => {
    for (const args of [
      ['delete', 'nobody', '--confirm', 'nobody'],
      ['restore', 'nobody'],
    ])
      expect(await run(...args)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('no organisation "nobody"'),
      });
  });
});

it('after the period it is removed, and its slug is free', async () => {
  const { api } = await create('removed');
  expect((await api.upload('tags', [newTag(), newTag()])).status).toBe(200);
  await remove('removed');
  // Wait until the process refuses the key. In production, it has at least a day until the removal.
  await expect.poll(async () => (await api.get('/v1/data')).status).toBe(410);
  await queryDatabase(
    server.databaseUrl,
    `update organisations set deleted_at = now() - interval '31 days' where slug = 'removed'`,
  );
  await expect.poll(async () => (await admin.get(`${path}/removed`)).status).toBe(404);
  const { entries } = (await admin.get('/admin/v1/audit?limit=1')).body;
  expect(entries).toMatchObject([
    {
      actor: 'maintenance',
      act: 'organisation.remove',
      organisation: null,
      details: { slug: 'removed', rows: { tags: 2 } },
    },
  ]);
  await create('removed');
  // The old key does not belong to the new organisation.
  expect([401, 410]).toContain((await api.get('/v1/data')).status);
});
