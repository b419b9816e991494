import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AskConsole, cookieOf, overview, session } from '../support/ask-console.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests which credentials can sign in to the console, and with which permissions. */

let server: BuiltServer;
let key: string;
let ask: AskConsole['ask'];
let link: AskConsole['link'];
let signIn: (given?: object) => Promise<string>;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
  const console_ = new AskConsole(server);
  ({ ask, link } = console_);
  signIn = (given = { key }) => console_.signIn(given);
});
afterAll(() => server.stop());

describe('a session', () => {
  it('starts with a key, shows its organisation, and has a cookie only for the console', async () => {
    const { status, headers, body } = await ask(session, { method: 'POST', body: { key } });
    expect(status).toBe(201);
    expect(headers.get('set-cookie')).toMatch(
      /^intake_console=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict, intake_console=; Path=\/console; Max-Age=0; HttpOnly; SameSite=Strict$/,
    );
    expect(body).toMatchObject({
      organisation: { slug: 'acme', name: expect.any(String) },
      key: { key_id: key.split('_')[1], permissions: expect.arrayContaining(['data:read']) },
      limits: {
        requests_per_second_max: { value: 1_000_000, is_default: true },
        bytes_in_flight_max: { value: 192 * 1024 * 1024, is_default: true },
      },
    });
    const endsInHours = (Date.parse(body.expires_at) - Date.now()) / 3_600_000;
    expect(endsInHours).toBeGreaterThan(11.9);
    expect(endsInHours).toBeLessThanOrEqual(12);
    const cookie = cookieOf(headers);
    expect((await ask(session, { cookie })).body).toEqual(body);
    expect((await ask(overview, { cookie: `theme=dark; ${cookie}; other=1` })).status).toBe(200);
  });

  it('shows the limits of the organisation if it has its own', async () => {
    const limited = await server.createKey('limited');
    await server.run('organisations', 'limit', 'limited', '--records-per-second', '70000');
    const { body } = await ask(session, { method: 'POST', body: { key: limited } });
    expect(body.limits).toMatchObject({
      records_per_second_max: { value: 70_000, is_default: false },
      interactions_per_second_max: { value: 1_000_000, is_default: true },
    });
  });

  it('is Secure over HTTPS', async () => {
    const proxied = await startBuiltServer({ TRUSTED_PROXY: '127.0.0.1', DATABASE_URL: server.databaseUrl });
    const answer = await fetch(proxied.url + session, {
      method: 'POST',
      headers: {
        origin: 'https://intake.example',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'intake.example',
        'x-forwarded-for': '192.0.2.1',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ key }),
    });
    await proxied.stop();
    expect(answer.status).toBe(201);
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-intake_console=[\w-]{43}; Path=\/; Max-Age=43200; .*; Secure$/),
      'intake_console=; Path=/console; Max-Age=0; HttpOnly; SameSite=Strict; Secure',
    ]);
  });

  it('does not work for the API, and a key does not work for the console', async () => {
    const cookie = await signIn();
    expect((await ask('/v1/data', { cookie })).status).toBe(401);
    expect((await ask('/user-interactions', { cookie })).status).toBe(401);
    const { status, body } = await ask(overview, { headers: { authorization: `Bearer ${key}` } });
    expect([status, body.code]).toEqual([401, 'not_signed_in']);
  });

  it('uploads, reads what it uploaded, and counts as its key', async () => {
    const cookie = await signIn();
    const shop = newShop();
    const sent = { method: 'POST', cookie, body: { records: [shop] } };
    expect((await ask('/console/api/v1/data/shops', sent)).status).toBe(200);
    const found = await ask(`/console/api/v1/data/shops/${shop.shop_id}`, { cookie });
    expect(found.body).toMatchObject({ shop_id: shop.shop_id });
    const { body } = await ask('/console/api/v1/requests?limit=1', { cookie });
    expect(body.requests[0].key_id).toBe(key.split('_')[1]);
    const { body: daily } = await ask('/console/api/v1/requests/daily?days=2', { cookie });
    expect(daily.days[0]).toMatchObject({ uploads: { complete: 1 }, records: { created: 1 } });
    expect(daily.days).toHaveLength(2);
  });

  it('is the only one: two cookies are refused, and the message explains what to do', async () => {
    const [own, other] = [await signIn(), await signIn({ key: await server.createKey('elsewhere') })];
    for (const cookie of [`${own}; ${other}`, `${other}; theme=dark; ${own}`, `${own}; intake_console=`])
      for (const [path, method] of [
        [overview, 'GET'],
        [session, 'GET'],
        [session, 'POST'],
        [session, 'DELETE'],
      ] as const) {
        const { status, body } = await ask(path, {
          method,
          cookie,
          ...(method === 'POST' && { body: { key } }),
        });
        expect([status, body.code, body.message]).toEqual([
          ...[400, 'two_sessions'],
          expect.stringMatching(/delete the cookies of this site, then sign in again/),
        ]);
      }
    expect((await ask(overview, { cookie: own })).status).toBe(200);
  });

  it('ends when the same browser signs in with another key', async () => {
    const first = await signIn();
    const { headers } = await ask(session, { method: 'POST', cookie: first, body: { key } });
    expect((await ask(overview, { cookie: first })).status).toBe(401);
    expect((await ask(overview, { cookie: cookieOf(headers) })).status).toBe(200);
  });

  it('is not used by a page that was opened in an earlier one', async () => {
    const cookie = await signIn();
    const other = await server.createKey('newer');
    const as = (used: string, path: string) => `/console/api/as/${used.split('_')[1]}${path}`;
    expect((await ask(as(key, '/v1/data'), { cookie })).status).toBe(200);
    const sent = { method: 'POST', cookie, body: { records: [newShop()] } };
    const { status, body } = await ask(as(other, '/v1/data/shops'), sent);
    expect([status, body.code]).toEqual([409, 'other_session']);
    expect(body.message).toMatch(/reload the page/);
    expect((await ask(as(other, '/v1/data'), { cookie })).status).toBe(409);
    expect((await ask(as(other, '/v1/data'))).status).toBe(401);
    for (const path of [
      '/console/api/as/v1/data',
      '/console/api/as//v1/data',
      '/console/api/as/a/as/b/v1/data',
    ])
      expect([path, (await ask(path, { cookie })).status]).toEqual([path, 404]);
  });

  it('ends everywhere when somebody signs out', async () => {
    const cookie = await signIn();
    const { status, headers } = await ask(session, { method: 'DELETE', cookie });
    expect([status, headers.get('set-cookie')]).toEqual([
      204,
      'intake_console=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict, intake_console=; Path=/console; Max-Age=0; HttpOnly; SameSite=Strict',
    ]);
    expect((await ask(overview, { cookie })).status).toBe(401);
    expect((await ask(session, { cookie })).body.code).toBe('not_signed_in');
  });

  it('ends with its key', async () => {
    const revoked = await server.createKey('ending');
    const cookie = await signIn({ key: revoked });
    await server.run('keys', 'revoke', revoked.split('_')[1] as string);
    const status = async () => (await ask(overview, { cookie })).status;
    await expect.poll(status).toBe(401);
    expect((await ask(session, { method: 'POST', body: { key: revoked } })).status).toBe(401);
  });

  it('ends after its time', async () => {
    const cookie = await signIn();
    await queryDatabase(server.databaseUrl, `update console_sessions set expires_at = now()`);
    expect((await ask(overview, { cookie })).status).toBe(401);
  });

  it('is one of at most a hundred of its key', async () => {
    const cookies: string[] = [];
    for (const _ of many(101, () => 0)) cookies.push(await signIn());
    expect((await ask(overview, { cookie: cookies[0] })).status).toBe(401);
    expect((await ask(overview, { cookie: cookies[1] })).status).toBe(200);
    const rows = await queryDatabase<{ count: string }>(
      server.databaseUrl,
      'select count(*) as count from console_sessions',
    );
    expect(Number(rows[0]?.count)).toBeLessThanOrEqual(101);
  });
});

describe('nobody can sign in', () => {
  it('with a token that somebody else chose', async () => {
    const chosen = `intake_console=${randomBytes(32).toString('base64url')}`;
    const { headers } = await ask(session, { method: 'POST', cookie: chosen, body: { key } });
    expect(cookieOf(headers)).not.toBe(chosen);
    expect((await ask(overview, { cookie: chosen })).status).toBe(401);
  });

  it.each(['', 'x', "' or true --", 'a'.repeat(4_000)])('with the cookie %s', async (token) => {
    expect((await ask(overview, { cookie: `intake_console=${token}` })).status).toBe(401);
  });

  it('with a key for web pages', async () => {
    const said = await server.run(
      ...[
        'keys',
        'issue',
        '--organisation',
        'acme',
        '--browser',
        '--origin',
        'https://shop.example',
        '--json',
      ],
    );
    const { status, body } = await ask(session, { method: 'POST', body: { key: JSON.parse(said).key } });
    expect([status, body.code]).toEqual([403, 'browser_key']);
  });

  it.each([{}, { key: 7 }, { key: 'x', link: 'y' }, { token: 'x' }])('with %j', async (body) => {
    expect((await ask(session, { method: 'POST', body })).status).toBe(400);
  });

  it('by trying', async () => {
    const limited = await startBuiltServer({
      DATABASE_URL: server.databaseUrl,
      FAILED_KEYS_PER_MINUTE_MAX: '5',
    });
    const statuses: number[] = [];
    for (const cookie of many(8, () => `intake_console=${randomBytes(32).toString('base64url')}`))
      statuses.push((await fetch(`${limited.url}${overview}`, { headers: { cookie } })).status);
    await limited.stop();
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429]);
  });
});

describe('another page', () => {
  it.each([
    ['of another site', { origin: 'https://evil.example' }],
    ['of the same host on another port', { origin: 'http://127.0.0.1:1' }],
    ['without an origin', { origin: 'null' }],
  ])('%s changes nothing', async (_, headers) => {
    const cookie = await signIn();
    const upload = { method: 'POST', cookie, body: { records: [newShop()] }, headers };
    expect((await ask('/console/api/v1/data/shops', upload)).body.code).toBe('other_page');
    expect((await ask(session, { method: 'DELETE', cookie, headers })).body.code).toBe('other_page');
    expect((await ask(session, { method: 'POST', body: { key }, headers })).body.code).toBe('other_page');
    expect((await ask(overview, { cookie })).status).toBe(200);
  });

  it('on the same host over another scheme changes nothing', async () => {
    const headers = { origin: server.url.replace('http:', 'https:') };
    const begin = { method: 'POST', body: { key }, headers };
    expect((await ask(session, begin)).body.code).toBe('other_page');
    const proxied = await startBuiltServer({ TRUSTED_PROXY: '127.0.0.1', DATABASE_URL: server.databaseUrl });
    const signInFrom = async (origin: string) => {
      const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'intake.example' };
      const sent = { origin, ...forwarded, 'content-type': 'application/json' };
      const body = JSON.stringify({ key });
      return (await fetch(proxied.url + session, { method: 'POST', headers: sent, body })).status;
    };
    expect(await signInFrom('https://intake.example')).toBe(201);
    expect(await signInFrom('http://intake.example')).toBe(403);
    expect(await signInFrom('https://intake.example:444')).toBe(403);
    await proxied.stop();
  });

  it('cannot be taken for the console with X-Forwarded-Host, unless a trusted proxy sends it', async () => {
    const forged = { origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' };
    const headers = { ...forged, 'x-forwarded-proto': 'https', 'x-forwarded-for': '127.0.0.1' };
    const { body } = await ask(session, { method: 'POST', body: { key }, headers });
    expect(body.code).toBe('other_page');
  });

  it('cannot show it in a frame, and it only runs its own files', async () => {
    const { headers } = await ask('/console/');
    const policy = headers.get('content-security-policy');
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).not.toContain('unsafe');
    expect(headers.get('x-frame-options')).toBe('DENY');
    const { body } = await ask('/console/');
    const [, script = ''] = /src="([^"]+\.js)"/.exec(body) ?? [];
    // This policy applies to workers, because the page's own policy does not cover them.
    expect((await ask(script)).headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'",
    );
  });
});

it('neither tokens nor keys are logged or stored', async () => {
  const cookie = await signIn();
  const { token } = await link();
  const used = await signIn({ link: token });
  await ask(overview, { cookie });
  const secrets = [cookie, used].map((one) => one.split('=')[1] as string).concat(token, key);
  const rows = await queryDatabase(
    server.databaseUrl,
    'select token_sha256::text, key_id from console_sessions union all select token_sha256::text, key_id from console_links',
  );
  const where = server.log.join('\n') + JSON.stringify(rows);
  expect(where).toContain('console-sign-in');
  expect(secrets.filter((secret) => where.includes(secret))).toEqual([]);
});

it('does not exist with CONSOLE=off', async () => {
  const off = await startBuiltServer({ CONSOLE: 'off', DATABASE_URL: server.databaseUrl });
  const headers = { authorization: `Bearer ${key}` };
  for (const path of ['/console', '/console/', session, overview])
    expect([path, (await fetch(off.url + path, { headers })).status]).toEqual([path, 404]);
  await off.stop();
});
