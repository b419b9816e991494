import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { allPages } from '../support/all-pages.ts';
import { type Api, apiOf } from '../support/api.ts';
import { expectError } from '../support/expect-error.ts';
import { linesOf } from '../support/lines-of.ts';
import { many } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests managing keys through the admin API. */

const path = '/admin/v1/keys';
let server: AdminServer;
let admin: Api;
beforeAll(async () => {
  server = await startAdminServer();
  admin = server.admin;
  for (const slug of ['acme', 'other']) await admin.post('/admin/v1/organisations', { slug });
});
afterAll(() => server.stop());

interface Issued {
  readonly key_id: string;
  readonly key: string;
}
async function issue(fields: object = {}): Promise<Issued & Record<string, unknown>> {
  const { status, body } = await admin.post(path, { organisation: 'acme', ...fields });
  expect({ status, body }).toMatchObject({ status: 201 });
  return body;
}
const use = async (key: string) => (await apiOf(server.url, key).get('/v1/data')).status;
async function listed(keyId: string) {
  const pages = await allPages<{ key_id: string }>(admin, path, 'keys', {
    organisation: 'acme',
    limit: '1000',
  });
  return pages.flat().find(({ key_id }) => key_id === keyId)!;
}
const listing = {
  key_id: expect.stringMatching(/^[0-9A-Za-z]{11}$/),
  organisation: 'acme',
  permissions: ['data:write', 'data:read', 'interactions:write', 'interactions:read'],
  browser: false,
  origins: [],
  link: false,
  label: null,
  created_at: expect.any(String),
  created_by: 'token:operator',
  last_used_at: null,
  expires_at: null,
  revoked_at: null,
  successor_of: null,
};

describe('issuing', () => {
  it('returns the key, which works at once, and its details', async () => {
    const issued = await issue();
    expect(issued).toEqual({ ...listing, key: expect.stringMatching(/^intake_/) });
    expect(issued.key.split('_')[1]).toBe(issued.key_id);
    expect(await use(issued.key)).toBe(200);
    const { key, last_used_at, ...rest } = issued;
    expect(await listed(issued.key_id)).toMatchObject(rest);
  });

  it('accepts permissions, a label and an expiry', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const fields = { permissions: ['data:read', 'data:write:tags'], label: 'till' };
    const issued = await issue({ ...fields, expires_at });
    expect(issued).toMatchObject(fields);
    expect(Date.parse(issued.expires_at as string)).toBe(Date.parse(expires_at));
    expect((await apiOf(server.url, issued.key).upload('shops', [])).status).toBe(403);
  });

  it('with an end stops at it', async () => {
    let [key, status] = ['', 0];
    // If the machine is so slow that the key expires before it is used, try again with a longer lifetime.
    for (const seconds of [2, 8, 20]) {
      const endsAt = Date.now() + seconds * 1_000;
      key = (await issue({ expires_at: new Date(endsAt).toISOString() })).key;
      status = await use(key);
      if (status === 200) break;
      expect(Date.now()).toBeGreaterThanOrEqual(endsAt);
    }
    expect(status).toBe(200);
    await expect.poll(() => use(key)).toBe(401);
  });

  it.each<[object, string[]]>([
    [{ organisation: undefined }, ['organisation']],
    [{ organisation: 'nobody' }, ['organisation']],
    [{ organisation: 7 }, ['organisation']],
    [{ permissions: ['data:delete'] }, ['permissions']],
    [{ permissions: ['data:read', 'data:write:toys'] }, ['permissions']],
    [{ permissions: [] }, ['permissions']],
    [{ permissions: 'data:read' }, ['permissions']],
    [{ label: 7 }, ['label']],
    [{ label: 'nul\0' }, ['label']],
    [{ organisation: 'nul\0' }, ['organisation']],
    [{ expires_at: '2020-01-01T00:00:00Z' }, ['expires_at']],
    [{ expires_at: 'soon' }, ['expires_at']],
    [{ expires_at: 7 }, ['expires_at']],
    [{ scope: ['data:read'] }, ['scope']],
    [{ browser: 'yes' }, ['browser']],
    [{ browser: true }, ['origins']],
    [{ origins: ['https://shop.example'] }, ['origins']],
    [{ browser: true, origins: ['https://shop.example'], permissions: ['data:read'] }, ['permissions']],
    ...[
      [],
      many(11, (at) => `https://shop${at}.example`),
      ['http://shop.example'],
      ['https://shop.example/'],
      ['https://Shop.example'],
      ['https://shop.example:443'],
      ['https://user@shop.example'],
      ['https://*.example'],
      ['null'],
      ['*'],
      [`https://${'a'.repeat(300)}.example`],
      [7],
    ].map((origins): [object, string[]] => [{ browser: true, origins }, ['origins']]),
  ])('with %j is 400, and no key is made', async (fields, named) => {
    const count = () => queryDatabase(server.databaseUrl, 'select from api_keys');
    const before = (await count()).length;
    const answer = await admin.post(path, { organisation: 'acme', ...fields });
    // A field name can include the index of a list element.
    const found = answer.body.details?.map(({ field }: { field: string }) => field) ?? [];
    expectError(answer, 400, found);
    expect(found.map((field: string) => field.split(/[.[]/)[0])).toEqual(named);
    expect((await count()).length).toBe(before);
  });

  it.each([
    ['data:raed', /^must be one of data:read, /],
    ['data:write:shop', /one of the types shops, /],
  ])('with the permission %s gets the most similar ones first', async (permission, meant) => {
    const answer = await admin.post(path, { organisation: 'acme', permissions: [permission] });
    expectError(answer, 400, ['permissions']);
    expect(answer.body.details[0].message).toMatch(meant);
  });
});

describe('the list', () => {
  it('lists more than a thousand, each once, of all or of one organisation', async () => {
    await queryDatabase(
      server.databaseUrl,
      `insert into api_keys (key_id, organisation_id, key_sha256, permissions)
       select substr(md5(n::text), 1, 11), organisation_id, sha256(n::text::bytea), '{data:read}'
       from generate_series(1, 1105) n, organisations where slug = 'other'`,
    );
    const { key_id } = await issue();
    const rows = await queryDatabase<{ key_id: string; slug: string }>(
      server.databaseUrl,
      'select key_id, slug from api_keys join organisations using (organisation_id)',
    );
    const idsOf = (keys: { key_id: string }[]) => keys.map((one) => one.key_id).toSorted();
    const pagesOf = (query: Record<string, string>) =>
      allPages<{ key_id: string; organisation: string }>(admin, path, 'keys', query);
    for (const query of [{}, { limit: '1000' }] as Record<string, string>[])
      expect(idsOf((await pagesOf(query)).flat())).toEqual(idsOf(rows));
    for (const organisation of ['acme', 'other']) {
      const keys = (await pagesOf({ organisation })).flat();
      expect(idsOf(keys)).toEqual(idsOf(rows.filter(({ slug }) => slug === organisation)));
      expect(keys.every((one) => one.organisation === organisation)).toBe(true);
    }
    const pages = await pagesOf({ organisation: 'other' });
    expect(pages.map((page) => page.length)).toEqual([...Array(11).fill(100), 5]);
    expect((await pagesOf({ organisation: 'other' })).flat().some((one) => one.key_id === key_id)).toBe(
      false,
    );
  });

  it('can be filtered by keys that expire soon, or that were never used', async () => {
    await admin.post('/admin/v1/organisations', { slug: 'tidy' });
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
    const soon = await issue({ organisation: 'tidy', expires_at: inDays(20) });
    const used = await issue({ organisation: 'tidy', expires_at: inDays(40) });
    await queryDatabase(
      server.databaseUrl,
      `update api_keys set last_used_at = now() where key_id = '${used.key_id}'`,
    );
    const idsOf = async (query: string) =>
      (await admin.get(`${path}?organisation=tidy&${query}`)).body.keys.map((key: Issued) => key.key_id);
    expect(await idsOf(`expires_before=${inDays(30)}`)).toEqual([soon.key_id]);
    expect(await idsOf('unused=true')).toEqual([soon.key_id]);
    expect(await idsOf('unused=false')).toHaveLength(2);
    expectError(await admin.get(`${path}?expires_before=soon`), 400, ['expires_before']);
  });

  it('continues after a key that has been removed meanwhile', async () => {
    const slug = 'leaving';
    await admin.post('/admin/v1/organisations', { slug });
    for (const _ of many(3, () => 0)) await issue({ organisation: slug });
    const { keys: all } = (await admin.get(`${path}?organisation=${slug}`)).body;
    const { keys: first, next_cursor } = (await admin.get(`${path}?organisation=${slug}&limit=1`)).body;
    await queryDatabase(server.databaseUrl, 'delete from api_keys where key_id = $1', [first[0].key_id]);
    const { keys } = (await admin.get(`${path}?organisation=${slug}&cursor=${next_cursor}`)).body;
    expect(keys).toEqual(all.slice(1));
  });

  it('never contains a key or a hash', async () => {
    const { key, key_id } = await issue();
    const entry = await listed(key_id);
    expect(Object.keys(entry).toSorted()).toEqual(Object.keys(listing).toSorted());
    const text = JSON.stringify(await allPages(admin, path, 'keys', { limit: '1000' }));
    const digest = createHash('sha256').update(key);
    const [hex, base64] = [digest.copy().digest('hex'), digest.digest('base64')];
    for (const form of ['intake_', key.split('_')[2]!, hex, base64]) expect(text).not.toContain(form);
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['colour=red', 'colour'],
    ['organisation=', 'organisation'],
    ['organisation=%00', 'organisation'],
    ['cursor=%00', 'cursor'],
  ])('with %s is 400', async (query, field) => {
    expectError(await admin.get(`${path}?${query}`), 400, [field]);
  });
});

describe('rotating', () => {
  const rotate = (keyId: string, body: object = {}) => admin.post(`${path}/${keyId}/rotate`, body);

  it('returns the successor, and both work for the grace period', async () => {
    const old = await issue({ label: 'till', permissions: ['data:read'] });
    const { status, body } = await rotate(old.key_id, { grace_seconds: 3_600 });
    expect(status).toBe(201);
    expect(body).toEqual({
      ...listing,
      key: expect.stringMatching(/^intake_/),
      label: 'till',
      permissions: ['data:read'],
      successor_of: old.key_id,
    });
    expect([await use(old.key), await use(body.key)]).toEqual([200, 200]);
    const { expires_at } = (await listed(old.key_id)) as unknown as { expires_at: string };
    expect(Math.abs(Date.parse(expires_at) - Date.now() - 3_600_000)).toBeLessThan(60_000);
  });

  it('has a default grace of a day, and without one ends the old key within seconds', async () => {
    const [daily, gone] = [await issue(), await issue()];
    expect(await use(gone.key)).toBe(200);
    await rotate(daily.key_id);
    const { expires_at } = (await listed(daily.key_id)) as unknown as { expires_at: string };
    expect(Math.abs(Date.parse(expires_at) - Date.now() - 86_400_000)).toBeLessThan(60_000);
    expect((await rotate(gone.key_id, { grace_seconds: 0 })).status).toBe(201);
    await expect.poll(() => use(gone.key)).toBe(401);
  });

  it('sets the expiry of the successor if given', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const { key_id } = await issue();
    expect((await rotate(key_id, { expires_at })).body).toMatchObject({ expires_at, successor_of: key_id });
    expectError(await rotate(key_id, { expires_at: '2020-01-01T00:00:00Z' }), 400, ['expires_at']);
  });

  it('of a key that is not in use is 404', async () => {
    const { key_id } = await issue();
    await admin.post(`${path}/${key_id}/revoke`, {});
    expectError(await rotate(key_id), 404);
    expectError(await rotate('0Qm3xYb7ZkA'), 404);
    expectError(await rotate('%00'), 404);
  });

  it.each<[object, string[]]>([
    [{ grace_seconds: -1 }, ['grace_seconds']],
    [{ grace_seconds: 31_536_001 }, ['grace_seconds']],
    [{ grace_seconds: 1.5 }, ['grace_seconds']],
    [{ grace_seconds: '60' }, ['grace_seconds']],
    [{ grace: '1h' }, ['grace']],
  ])('with %j is 400, and the key still works', async (body, fields) => {
    const { key_id } = await issue();
    expectError(await rotate(key_id, body), 400, fields);
    expect(await listed(key_id)).toMatchObject({ expires_at: null });
  });
});

describe('revoking', () => {
  it('returns the details, the same when repeated, and ends the key within seconds', async () => {
    const { key, key_id } = await issue();
    expect(await use(key)).toBe(200);
    const first = await admin.send(`${path}/${key_id}/revoke`, { method: 'POST' });
    expect(first.status).toBe(200);
    expect(Object.keys(first.body).toSorted()).toEqual(Object.keys(listing).toSorted());
    expect(Math.abs(Date.parse(first.body.revoked_at) - Date.now())).toBeLessThan(60_000);
    await expect.poll(() => use(key)).toBe(401);
    const again = await admin.send(`${path}/${key_id}/revoke`, { method: 'POST' });
    expect(again.status).toBe(200);
    expect(again.body.revoked_at).toBe(first.body.revoked_at);
  });

  it('of a key that does not exist is 404', async () => {
    for (const keyId of ['0Qm3xYb7ZkA', '%00', 'x'.repeat(300)])
      expectError(await admin.send(`${path}/${keyId}/revoke`, { method: 'POST' }), 404);
  });

  it('accepts no fields', async () => {
    const { key_id } = await issue();
    expectError(await admin.post(`${path}/${key_id}/revoke`, { at: 'once' }), 400, ['at']);
    expect(await listed(key_id)).toMatchObject({ revoked_at: null });
  });
});

it('every act is in the audit log, with its request id, and without the key', async () => {
  await admin.post('/admin/v1/organisations', { slug: 'watched' });
  const issued = await admin.post(path, { organisation: 'watched', label: 'till' });
  const rotated = await admin.post(`${path}/${issued.body.key_id}/rotate`, {});
  const revoked = await admin.send(`${path}/${issued.body.key_id}/revoke`, { method: 'POST' });
  const text = await server.run('audit', '--organisation', 'watched', '--json');
  const [, ...entries]: { act: string; actor: string; request_id: string }[] = linesOf(text).toReversed();
  expect(entries.map(({ act, actor, request_id }) => [act, actor, request_id])).toEqual([
    ['key.issue', 'token:operator', issued.headers.get('x-request-id')],
    ['key.rotate', 'token:operator', rotated.headers.get('x-request-id')],
    ['key.revoke', 'token:operator', revoked.headers.get('x-request-id')],
  ]);
  for (const { key } of [issued.body, rotated.body]) expect(text).not.toContain(key.split('_')[2]);
  expect(server.log.join('\n')).not.toContain('intake_');
});
