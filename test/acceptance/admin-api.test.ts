import { readFileSync } from 'node:fs';
import { validate } from '@scalar/openapi-parser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, adminToken, patch, startAdminServer } from '../support/admin-server.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { builtVersion } from '../support/built-version.ts';
import { expectError } from '../support/expect-error.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { runCommand } from '../support/run-command.ts';

/** Tests the admin API's port, access control and API description. Other files test its operations. */

let server: AdminServer;
let admin: Api;
beforeAll(async () => {
  server = await startAdminServer();
  admin = server.admin;
  await admin.post('/admin/v1/organisations', { slug: 'acme' });
});
afterAll(() => server.stop());

/** Every route except the public ones. */
const routes: [method: string, path: string][] = [
  ['POST', '/admin/v1/organisations'],
  ['GET', '/admin/v1/organisations'],
  ['GET', '/admin/v1/organisations/{slug}'],
  ['PATCH', '/admin/v1/organisations/{slug}'],
  ['GET', '/admin/v1/organisations/{slug}/lake'],
  ['GET', '/admin/v1/organisations/{slug}/requests'],
  ['GET', '/admin/v1/organisations/{slug}/rejections/summary'],
  ['GET', '/admin/v1/organisations/{slug}/usage'],
  ['GET', '/admin/v1/top'],
  ['GET', '/admin/v1/service'],
  ['DELETE', '/admin/v1/organisations/{slug}'],
  ['POST', '/admin/v1/organisations/{slug}/restore'],
  ['POST', '/admin/v1/console-links'],
  ['POST', '/admin/v1/keys'],
  ['GET', '/admin/v1/keys'],
  ['POST', '/admin/v1/keys/{key_id}/rotate'],
  ['POST', '/admin/v1/keys/{key_id}/revoke'],
  ['GET', '/admin/v1/audit'],
];

function call(api: Api, [method, path]: readonly [string, string]): Promise<Answer> {
  const filled = path.replace('{slug}', 'acme').replace('{key_id}', '0Qm3xYb7ZkA');
  const body = { method, headers: { 'content-type': 'application/json' }, body: '{}' };
  return api.send(filled, method === 'GET' ? { method } : body);
}

describe('the token', () => {
  it.each(routes)('is required by %s %s', async (...route) => {
    expectError(await call(apiOf(server.adminUrl), route), 401);
    const answer = await call(admin, route);
    expect(answer.status).not.toBe(401);
    expect(answer.status).toBeLessThan(500);
  });

  it.each([
    ['nothing', ''],
    ['the scheme alone', 'Bearer'],
    ['no scheme', adminToken],
    ['another scheme', `Basic ${adminToken}`],
    ['a part of it', `Bearer ${adminToken.slice(0, -1)}`],
    ['more than it', `Bearer ${adminToken}x`],
    ['it in capitals', `Bearer ${adminToken.toUpperCase()}`],
    ['it twice', `Bearer ${adminToken} ${adminToken}`],
  ])('is not %s', async (_what, authorization) => {
    const headers = { authorization };
    expectError(await apiOf(server.adminUrl).get('/admin/v1/organisations', headers), 401);
    const create = await apiOf(server.adminUrl).post('/admin/v1/organisations', { slug: 'sneaky' }, headers);
    expectError(create, 401);
    expect((await admin.get('/admin/v1/organisations/sneaky')).status).toBe(404);
  });

  it('is not an API key, and an API key is not an admin token', async () => {
    const { body } = await admin.post('/admin/v1/keys', { organisation: 'acme' });
    expectError(await apiOf(server.adminUrl, body.key).get('/admin/v1/organisations'), 401);
    expectError(await apiOf(server.url, adminToken).get('/v1/data'), 401);
  });

  it('comes before the address, the method and the body', async () => {
    const stranger = apiOf(server.adminUrl);
    expectError(await stranger.get('/nowhere'), 401);
    expectError(await stranger.get('/admin/v1/organisations/nobody'), 401);
    expectError(await stranger.get('/admin/v1/organisations?colour=red'), 401);
    expectError(await stranger.send('/admin/v1/organisations', { method: 'DELETE' }), 401);
    const large = rawPost('/admin/v1/organisations', ['Content-Length: 99999999']);
    expectError(await sendRaw(server.adminUrl, large), 401);
  });

  it('never appears in a log', async () => {
    await admin.get(`/admin/v1/organisations?token=${adminToken}`);
    const last = (await admin.get('/admin/v1/organisations')).headers.get('x-request-id')!;
    await expect.poll(() => server.log.some((line) => line.includes(last))).toBe(true);
    expect(server.log.join('\n')).not.toContain(adminToken);
  });
});

describe('the port', () => {
  it('of the public API does not serve the admin API', async () => {
    const { body } = await admin.post('/admin/v1/keys', { organisation: 'acme' });
    for (const route of routes) {
      expectError(await call(apiOf(server.url, body.key), route), 404);
      expectError(await call(apiOf(server.url), route), 401);
      expectError(await call(apiOf(server.url, adminToken), route), 401);
    }
  });

  it('of the admin API does not serve the public API', async () => {
    for (const path of ['/v1/data', '/v1/data/tags', '/v1/requests', '/v1/nothing', '/user-interactions'])
      expectError(await admin.get(path), 404);
    expectError(await admin.upload('tags', [{}]), 404);
  });

  it('is not opened without its own login', async () => {
    const { databaseUrl: DATABASE_URL, adminUrl } = server;
    const taken = { DATABASE_URL, ADMIN_PORT: new URL(adminUrl).port };
    const withLogin = { ...taken, PORT: '0', ADMIN_DATABASE_URL: DATABASE_URL };
    const refused = await runCommand(['serve'], withLogin);
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toMatch(/ADMIN_PORT/);
    // The service starts although the port is taken, which shows that the service did not try to listen on that port.
    // The `ADMIN_TOKEN` setting from 0.1.0 only causes a warning.
    const without = await startBuiltServer({ ...taken, ADMIN_TOKEN: 'the-token-of-an-older-version-0.1.0' });
    const log = without.log.join('\n');
    expect(log).not.toContain('Admin API');
    expect(log).toMatch(/ADMIN_TOKEN is no longer a setting.*tokens issue.*ADMIN_DATABASE_URL/);
    expect(log).not.toContain('older-version');
    await without.stop();
  });

  it.each([
    ['a login that is not an address', { ADMIN_DATABASE_URL: 'mysql://a:hush@b' }, /ADMIN_DATABASE_URL/],
    ['the port of the public API', { ADMIN_PORT: '8123', PORT: '8123' }, /ADMIN_PORT/],
    ['no port', { ADMIN_PORT: 'http' }, /ADMIN_PORT/],
  ] as [string, Record<string, string>, RegExp][])('is not opened with %s', async (_what, env, named) => {
    const { databaseUrl } = server;
    const login = { DATABASE_URL: databaseUrl, ADMIN_DATABASE_URL: databaseUrl };
    const settings = { ...login, PORT: '0', ADMIN_PORT: '0', ...env };
    const { exitCode, stdout, stderr } = await runCommand(['serve'], settings);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(named);
    expect(stderr).not.toContain('hush');
  });
});

describe('an unknown operation', () => {
  it('is 404', async () => {
    for (const path of ['/admin', '/admin/v1', '/admin/v1/nothing', '/admin/v1/organisations/a/b']) {
      const answer = await admin.get(path);
      expectError(answer, 404);
      expect(answer.body.message).toContain('/docs');
    }
    const slashed = await admin.get('/admin/v1/organisations/');
    expectError(slashed, 404);
    expect(slashed.body.message).toContain('use /admin/v1/organisations, without the slash');
  });

  it('is 405 for another method, with the allowed ones', async () => {
    const answer = await admin.send('/admin/v1/organisations', { method: 'DELETE' });
    expectError(answer, 405);
    expect(answer.headers.get('allow')).toMatch(/GET.*POST|POST.*GET/);
  });

  it('is 400 or 415 if the body is not a JSON object', async () => {
    const send = (body: string, type = 'application/json') =>
      admin.send('/admin/v1/organisations', { method: 'POST', headers: { 'content-type': type }, body });
    for (const body of ['{', '', '[]', 'null', '"acme"'])
      expect([body, (await send(body)).status]).toEqual([body, 400]);
    expectError(await send('{'), 400);
    expectError(await send('{"slug": "texted"}', 'text/plain'), 415);
    expect((await admin.get('/admin/v1/organisations/texted')).status).toBe(404);
  });
});

it('61a: two Authorization headers are 400', async () => {
  for (const second of [adminToken, 'nonsense']) {
    const headers = `Authorization: Bearer ${adminToken}\r\nauthorization: Bearer ${second}\r\n`;
    const head = `GET /admin/v1/organisations HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
    expectError(await sendRaw(server.adminUrl, head), 400);
  }
});

describe('the description', () => {
  const committed = JSON.parse(readFileSync(new URL('../../admin-openapi.json', import.meta.url), 'utf8'));
  const described = Object.entries<Record<string, object>>(committed.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method): [string, string] => [method.toUpperCase(), path]),
  );

  it('is public, and equals the committed one', async () => {
    const served = await apiOf(server.adminUrl).get('/openapi.json');
    expect(served.status).toBe(200);
    expect(served.body).toEqual({ ...committed, info: { ...committed.info, version: builtVersion } });
    expect((await apiOf(server.adminUrl).get('/health/live')).status).toBe(200);
  });

  it('is valid OpenAPI 3.1', async () => {
    const { valid, errors, version } = await validate(committed);
    expect(errors ?? []).toEqual([]);
    expect({ valid, version }).toEqual({ valid: true, version: '3.1' });
  });

  it('has every route, and no other', async () => {
    const open = described.filter(([, path]) => !path.startsWith('/admin/'));
    expect(described.filter((route) => !open.includes(route)).toSorted()).toEqual(routes.toSorted());
    expect(open).toContainEqual(['GET', '/health/live']);
    // If the machine stalls for two seconds, the process is briefly not ready.
    for (const [method, path] of open)
      await expect
        .poll(async () => [path, (await apiOf(server.adminUrl).send(path, { method })).status])
        .toEqual([path, 200]);
  });

  it('lists every status that is returned', async () => {
    for (const route of routes) {
      const { status, headers } = await call(admin, route);
      expect(headers.get('cache-control')).toBe('no-store');
      const { responses } = committed.paths[route[1]][route[0].toLowerCase()];
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['401', String(status)]));
    }
  });

  it('is not part of the public one', async () => {
    const { body } = await apiOf(server.url).get('/openapi.json');
    expect(Object.keys(body.paths).filter((path) => path.includes('admin'))).toEqual([]);
  });
});

it('has the same error shape, with details, for a wrong field', async () => {
  expectError(await admin.post('/admin/v1/organisations', { slug: 'Not A Slug' }), 400, ['slug']);
  expectError(await patch(admin, '/admin/v1/organisations/acme', { colour: 'red' }), 400, ['colour']);
  expectError(await admin.get('/admin/v1/keys?colour=red'), 400, ['colour']);
});
