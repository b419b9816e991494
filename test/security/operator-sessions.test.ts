import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, adminToken, startAdminServer } from '../support/admin-server.ts';
import { many } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests which credentials can sign in to the operator console, and with which permissions. */

let server: AdminServer;
let key: string;
beforeAll(async () => {
  server = await startAdminServer();
  key = await server.createKey('acme');
});
afterAll(() => server.stop());

interface Sent {
  readonly url?: string;
  readonly method?: string;
  readonly cookie?: string | undefined;
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

/** Sends a request as the console's page does. */
async function ask(path: string, sent: Sent = {}) {
  const { url = server.adminUrl, method = 'GET', cookie, body, headers = {} } = sent;
  const answer = await fetch(url + path, {
    method,
    redirect: 'manual',
    headers: {
      origin: url,
      ...(cookie !== undefined && { cookie }),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('json') && text !== '';
  return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text };
}

/** Returns the status and the error code. */
async function outcome(path: string, sent: Sent = {}): Promise<[number, string | undefined]> {
  const { status, body } = await ask(path, sent);
  return [status, body.code];
}

const session = '/console/api/session';
const organisations = '/console/api/admin/v1/organisations';
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const notSignedIn = [401, 'not_signed_in'];

async function signIn(token = adminToken): Promise<string> {
  const { status, headers } = await ask(session, { method: 'POST', body: { token } });
  expect(status).toBe(201);
  return cookieOf(headers);
}

function cookieOf(headers: Headers): string {
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
  expect(cookie).toMatch(/^intake_operator=[\w-]{43}$/);
  return cookie;
}

async function issue(name: string, ...flags: string[]): Promise<string> {
  return JSON.parse(await server.run('tokens', 'issue', name, '--json', ...flags)).token;
}

const countSessions = async (name: string) =>
  (await queryDatabase(server.databaseUrl, `select from operator_sessions where admin_token = '${name}'`))
    .length;

describe('a session', () => {
  it('starts with an admin token, shows which, and has a cookie only for the console', async () => {
    const { status, headers, body } = await ask(session, { method: 'POST', body: { token: adminToken } });
    expect(status).toBe(201);
    expect(headers.get('set-cookie')).toMatch(
      /^intake_operator=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict, intake_operator=; Path=\/console; Max-Age=0; HttpOnly; SameSite=Strict$/,
    );
    expect(body).toEqual({
      token: { name: 'operator', role: 'full', expires_at: null },
      expires_at: expect.any(String),
    });
    const endsInHours = (Date.parse(body.expires_at) - Date.now()) / 3_600_000;
    expect(endsInHours).toBeGreaterThan(11.9);
    expect(endsInHours).toBeLessThanOrEqual(12);
    const cookie = cookieOf(headers);
    expect((await ask(session, { cookie })).body).toEqual(body);
    expect((await ask(organisations, { cookie: `theme=dark; ${cookie}; other=1` })).status).toBe(200);
  });

  it('is Secure over HTTPS', async () => {
    const proxied = await startAdminServer({
      DATABASE_URL: server.databaseUrl,
      TRUSTED_PROXY: '127.0.0.1',
      // When the admin API listens on loopback, it does not trust the proxy.
      ADMIN_HOST: '0.0.0.0',
    });
    const headers = {
      origin: 'https://admin.example',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'admin.example',
      'x-forwarded-for': '192.0.2.1',
    };
    const sent = { url: proxied.adminUrl, method: 'POST', body: { token: adminToken }, headers };
    const answer = await ask(session, sent);
    await proxied.stop();
    expect(answer.status).toBe(201);
    expect(answer.headers.getSetCookie()[0]).toMatch(
      /^__Host-intake_operator=[\w-]{43}; Path=\/; Max-Age=43200; .*; Secure$/,
    );
  });

  it('does not work for the API, and a token does not work for the console', async () => {
    const cookie = await signIn();
    for (const path of ['/admin/v1/organisations', '/admin/v1/audit', '/admin/v1/keys'])
      expect(await outcome(path, { cookie })).toEqual([401, 'admin_unauthorized']);
    expect(await outcome(organisations, { headers: bearer(adminToken) })).toEqual(notSignedIn);
    expect(await outcome(session, { headers: bearer(adminToken) })).toEqual(notSignedIn);
    expect((await ask(organisations, { cookie, headers: bearer('wrong') })).status).toBe(200);
  });

  it('of one console opens nothing in the other', async () => {
    const onPublic = { url: server.url };
    const begun = await ask(session, { ...onPublic, method: 'POST', body: { key } });
    const [ofKey = ''] = (begun.headers.get('set-cookie') ?? '').split(';');
    expect((await ask(session, { ...onPublic, cookie: ofKey })).status).toBe(200);
    const ofToken = await signIn();
    for (const cookie of [ofKey, ofKey.replace('intake_console', 'intake_operator')])
      for (const path of [session, organisations])
        expect(await outcome(path, { cookie })).toEqual(notSignedIn);
    for (const cookie of [ofToken, ofToken.replace('intake_operator', 'intake_console')])
      for (const path of [session, '/console/api/v1/data'])
        expect(await outcome(path, { ...onPublic, cookie })).toEqual(notSignedIn);
    // Browsers send both cookies to both ports.
    const both = `${ofKey}; ${ofToken}`;
    expect((await ask(session, { cookie: both })).body.token.name).toBe('operator');
    expect((await ask(session, { ...onPublic, cookie: both })).body.organisation.slug).toBe('acme');
  });

  it('is the only one, and is not used by a page that was opened in an earlier one', async () => {
    const [own, other] = [await signIn(), await signIn(await issue('grace'))];
    expect(await outcome(organisations, { cookie: `${own}; ${other}` })).toEqual([400, 'two_sessions']);
    const as = (name: string) => `/console/api/as/${name}/admin/v1/organisations`;
    const create = { method: 'POST', cookie: other, body: { slug: 'by-grace' } };
    expect(await outcome(as('operator'), create)).toEqual([409, 'other_session']);
    expect((await ask(as('grace'), create)).status).toBe(201);
  });

  it('acts under the name of its token', async () => {
    const cookie = await signIn(await issue('ada'));
    const sent = { method: 'POST', cookie, body: { slug: 'globex' }, headers: bearer(adminToken) };
    const { status, headers } = await ask(organisations, sent);
    expect(status).toBe(201);
    const { body } = await ask('/console/api/admin/v1/audit?limit=1', { cookie });
    expect(body.entries[0]).toMatchObject({
      actor: 'token:ada',
      act: 'organisation.create',
      request_id: headers.get('x-request-id'),
    });
  });

  it('of a read-only token reads, changes nothing, and can be ended', async () => {
    const cookie = await signIn(await issue('reader', '--read-only'));
    expect((await ask(session, { cookie })).body.token).toMatchObject({ name: 'reader', role: 'read-only' });
    expect((await ask(organisations, { cookie })).status).toBe(200);
    const refused = [403, 'read_only_token'];
    const body = { slug: 'sneaky', organisation: 'acme', suspended: true };
    for (const [method, path] of [
      ['POST', organisations],
      ['PATCH', `${organisations}/acme`],
      ['POST', '/console/api/admin/v1/keys'],
      ['POST', '/console/api/admin/v1/console-links'],
    ] as const)
      expect(await outcome(path, { method, cookie, body, headers: bearer(adminToken) })).toEqual(refused);
    expect((await ask(session, { method: 'DELETE', cookie })).status).toBe(204);
    expect(await outcome(organisations, { cookie })).toEqual(notSignedIn);
  });

  it('ends when somebody signs out, in every process, and others do not', async () => {
    const other = await startAdminServer({ DATABASE_URL: server.databaseUrl });
    const [cookie, kept] = [await signIn(), await signIn()];
    const inOther = (given: string) => ask(organisations, { url: other.adminUrl, cookie: given });
    expect((await inOther(cookie)).status).toBe(200);
    const { status, headers } = await ask(session, { method: 'DELETE', cookie });
    expect([status, headers.get('set-cookie')]).toEqual([
      204,
      'intake_operator=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict, intake_operator=; Path=/console; Max-Age=0; HttpOnly; SameSite=Strict',
    ]);
    expect([(await inOther(cookie)).status, (await inOther(kept)).status]).toEqual([401, 200]);
    expect(await outcome(session, { cookie })).toEqual(notSignedIn);
    await other.stop();
  });

  it('ends at once when its token is revoked', async () => {
    const token = await issue('leaver');
    const cookie = await signIn(token);
    expect((await ask(organisations, { cookie })).status).toBe(200);
    await server.run('tokens', 'revoke', 'leaver');
    // The change takes effect immediately, because each request queries the database.
    for (const path of [organisations, session]) expect(await outcome(path, { cookie })).toEqual(notSignedIn);
    expect(await outcome(session, { method: 'POST', body: { token } })).toEqual([401, 'token_not_usable']);
  });

  it('ends no later than its token', async () => {
    const token = await issue('brief', '--expires', '1h');
    const cookie = await signIn(token);
    const { body } = await ask(session, { cookie });
    expect(body.expires_at).toBe(body.token.expires_at);
    const expire = `update admin_tokens set expires_at = now() where name = 'brief'`;
    await queryDatabase(server.databaseUrl, expire);
    expect(await outcome(organisations, { cookie })).toEqual(notSignedIn);
    expect(await outcome(session, { method: 'POST', body: { token } })).toEqual([401, 'token_not_usable']);
  });

  it('ends after its time, and is removed when somebody signs in', async () => {
    const cookie = await signIn(await issue('sleepy'));
    const expire = `update operator_sessions set expires_at = now() where admin_token = 'sleepy'`;
    await queryDatabase(server.databaseUrl, expire);
    expect(await outcome(organisations, { cookie })).toEqual(notSignedIn);
    expect(await countSessions('sleepy')).toBe(1);
    await signIn();
    expect(await countSessions('sleepy')).toBe(0);
  });

  it('is one of at most a hundred of its token', async () => {
    const token = await issue('busy');
    const elsewhere = await signIn();
    const cookies: string[] = [];
    for (const _ of many(101, () => 0)) cookies.push(await signIn(token));
    expect(await outcome(organisations, { cookie: cookies[0] })).toEqual(notSignedIn);
    for (const cookie of [cookies[1], cookies[100], elsewhere])
      expect((await ask(organisations, { cookie })).status).toBe(200);
    expect(await countSessions('busy')).toBe(100);
  });
});

describe('nobody can sign in', () => {
  it('with a session that somebody else chose', async () => {
    const chosen = `intake_operator=${randomBytes(32).toString('base64url')}`;
    const { headers } = await ask(session, { method: 'POST', cookie: chosen, body: { token: adminToken } });
    expect(cookieOf(headers)).not.toBe(chosen);
    expect(await outcome(organisations, { cookie: chosen })).toEqual(notSignedIn);
  });

  it.each(['', 'x', "' or true --", 'a'.repeat(43), 'a'.repeat(4_000), adminToken])(
    'with the cookie %s',
    async (token) => {
      const cookie = `intake_operator=${token}`;
      for (const path of [organisations, session])
        expect(await outcome(path, { cookie })).toEqual(notSignedIn);
      expect((await ask(session, { method: 'DELETE', cookie })).status).toBe(204);
    },
  );

  it('with anything else than an admin token, and the message explains what to do', async () => {
    const misspelt = adminToken.slice(0, -1) + (adminToken.endsWith('0') ? '1' : '0');
    for (const token of ['', 'x', key, misspelt, `${adminToken} `, 'operator']) {
      const { status, headers, body } = await ask(session, { method: 'POST', body: { token } });
      expect([token, status, body.code]).toEqual([token, 401, 'token_not_usable']);
      expect(body.message).toMatch(
        /^This is not .+; use a token that intake-server tokens issue has printed/,
      );
      expect(headers.get('set-cookie')).toBeNull();
    }
  });

  it.each([{}, { token: 7 }, { token: null }, { key: 'x' }, { token: 'x', key: 'y' }, []])(
    'with %j',
    async (body) => {
      expect((await ask(session, { method: 'POST', body })).status).toBe(400);
    },
  );

  it('with a large body', async () => {
    const body = { token: 'a'.repeat(10_000) };
    expect((await ask(session, { method: 'POST', body })).status).toBe(413);
  });

  it('by trying, which does not lock out the right token', async () => {
    const limited = await startAdminServer({
      DATABASE_URL: server.databaseUrl,
      FAILED_KEYS_PER_MINUTE_MAX: '5',
    });
    const url = limited.adminUrl;
    for (const token of many(8, () => `intake_admin_${randomBytes(20).toString('hex')}`))
      expect((await ask(session, { url, method: 'POST', body: { token } })).status).toBe(401);
    const { status } = await ask(session, { url, method: 'POST', body: { token: adminToken } });
    await limited.stop();
    expect(status).toBe(201);
  });
});

describe('another page', () => {
  it.each([
    ['of another site', { origin: 'https://evil.example' }],
    ['of the same host on another port', { origin: 'http://127.0.0.1:1' }],
    ['without an origin', { origin: 'null' }],
  ])('%s changes nothing', async (_, headers) => {
    const cookie = await signIn();
    const otherPage = [403, 'other_page'];
    const create = { method: 'POST', cookie, body: { slug: 'forged' }, headers };
    expect(await outcome(organisations, create)).toEqual(otherPage);
    expect(await outcome(session, { method: 'DELETE', cookie, headers })).toEqual(otherPage);
    const begin = { method: 'POST', body: { token: adminToken }, headers };
    expect(await outcome(session, begin)).toEqual(otherPage);
    expect((await ask(`${organisations}/forged`, { cookie })).status).toBe(404);
    expect((await ask(organisations, { cookie })).status).toBe(200);
  });

  it('may not read answers', async () => {
    const sent = { cookie: await signIn(), headers: { origin: server.url } };
    for (const method of ['GET', 'OPTIONS']) {
      const { headers } = await ask(organisations, { ...sent, method });
      expect(headers.get('access-control-allow-origin')).toBeNull();
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  it('cannot show it in a frame, and it only runs its own files', async () => {
    for (const path of ['/console/', '/console/organisations']) {
      const { status, headers, body } = await ask(path);
      expect([path, status]).toEqual([path, 200]);
      const policy = headers.get('content-security-policy');
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).not.toContain('unsafe');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(body).not.toBe((await ask(path, { url: server.url })).body);
    }
  });
});

it('there is nothing at other addresses', async () => {
  const cookie = await signIn();
  const nothing = [404, 'not_found'];
  for (const path of [
    '/console/api',
    '/console/api/v1/data',
    '/console/api/user-interactions',
    '/console/api/admin',
    '/console/api/admin/v2/organisations',
    '/console/api/admin/v1nothing',
    '/console/api/admin/v1/nothing',
    '/console/api/health/live',
    `${session}/`,
    `${organisations}/`,
    '/console/assets/nothing.js',
  ])
    expect([path, await outcome(path, { cookie })]).toEqual([path, nothing]);
  expect((await ask('/console')).headers.get('location')).toBe('/console/');
  expect(await outcome('/console/api/admin/v1/nothing')).toEqual(notSignedIn);
  expect(await outcome(session, { method: 'PATCH', cookie })).toEqual([405, 'method_not_allowed']);
  expect(await outcome(organisations, { method: 'DELETE', cookie })).toEqual([405, 'method_not_allowed']);
  // The public port does not serve the admin API under its console either.
  expect(await outcome(organisations, { url: server.url, cookie })).toEqual(nothing);
});

it('neither tokens nor sessions are logged or stored', async () => {
  const token = await issue('secretive');
  const cookie = await signIn(token);
  await ask(organisations, { cookie });
  await ask(session, { method: 'POST', body: { token: `${token}x` } });
  const rows = await queryDatabase(
    server.databaseUrl,
    `select s::text from operator_sessions s where admin_token = 'secretive'
     union all select encode(token_sha256, 'escape') from operator_sessions`,
  );
  expect(rows.length).toBeGreaterThan(1);
  const log = () => server.log.join('\n');
  await expect.poll(log).toContain('token_not_usable');
  expect(log()).toContain('operator-sign-in');
  const secrets = [cookie.split('=')[1] as string, token, token.slice(-49)];
  const where = log() + JSON.stringify(rows);
  expect(secrets.filter((secret) => where.includes(secret))).toEqual([]);
});

it('does not exist with CONSOLE=off', async () => {
  const off = await startAdminServer({ CONSOLE: 'off', DATABASE_URL: server.databaseUrl });
  const cookie = await signIn();
  const url = off.adminUrl;
  for (const path of ['/console', '/console/', session, organisations]) {
    expect([path, (await ask(path, { url, headers: bearer(adminToken) })).status]).toEqual([path, 404]);
    expect([path, (await ask(path, { url, cookie })).status]).toEqual([path, 401]);
  }
  expect((await ask(session, { url, method: 'POST', body: { token: adminToken } })).status).toBe(401);
  expect((await off.admin.get('/admin/v1/organisations')).status).toBe(200);
  await off.stop();
});
