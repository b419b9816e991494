import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests which credentials can sign in to the console, and with which permissions. */

let server: BuiltServer;
let key: string;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
});
afterAll(() => server.stop());

interface Sent {
  readonly method?: string;
  readonly cookie?: string | undefined;
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

/** Sends a request as the console's page does. */
async function ask(path: string, { method = 'GET', cookie, body, headers = {} }: Sent = {}) {
  const answer = await fetch(server.url + path, {
    method,
    headers: {
      origin: server.url,
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

const session = '/console/api/session';
const overview = '/console/api/v1/data';

async function signIn(given: object = { key }): Promise<string> {
  const { status, headers } = await ask(session, { method: 'POST', body: given });
  expect(status).toBe(201);
  return cookieOf(headers);
}

function cookieOf(headers: Headers): string {
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
  expect(cookie).toMatch(/^intake_console=[\w-]{43}$/);
  return cookie;
}

async function link(...options: string[]): Promise<{ token: string; keyId: string }> {
  const said = await server.run('console', 'link', '--organisation', 'acme', '--json', ...options);
  const { path, key_id } = JSON.parse(said);
  return { token: path.replace('/console/sign-in#', ''), keyId: key_id };
}

describe('a session', () => {
  it('starts with a key, shows its organisation, and has a cookie only for the console', async () => {
    const { status, headers, body } = await ask(session, { method: 'POST', body: { key } });
    expect(status).toBe(201);
    expect(headers.get('set-cookie')).toMatch(
      /^intake_console=[\w-]{43}; Path=\/console; Max-Age=43200; HttpOnly; SameSite=Strict$/,
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
    expect(answer.headers.get('set-cookie')).toMatch(/; Secure$/);
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

  it('ends everywhere when somebody signs out', async () => {
    const cookie = await signIn();
    const { status, headers } = await ask(session, { method: 'DELETE', cookie });
    expect([status, headers.get('set-cookie')]).toEqual([
      204,
      'intake_console=; Path=/console; Max-Age=0; HttpOnly; SameSite=Strict',
    ]);
    expect((await ask(overview, { cookie })).status).toBe(401);
    expect((await ask(session, { cookie })).body.code).toBe('not_signed_in');
  });

  it('ends with its key', async () => {
    const revoked = await server.createKey('ending');
    const cookie = await signIn({ key: revoked });
    await server.run('keys', 'revoke', revoked.split('_')[1] as string);
    const status = async () => (await ask(overview, { cookie })).status;
    await expect.poll(status, { timeout: 6_000 }).toBe(401);
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

describe('a link of the operator', () => {
  it('works once', async () => {
    const { token } = await link();
    const cookie = await signIn({ link: token });
    expect((await ask(session, { cookie })).body.key.label).toBe('console link');
    const { status, body } = await ask(session, { method: 'POST', body: { link: token } });
    expect([status, body.code]).toEqual([401, 'link_not_usable']);
  });

  it('that is used twice at the same time lets one in', async () => {
    const { token } = await link();
    const both = await Promise.all(many(2, () => ask(session, { method: 'POST', body: { link: token } })));
    expect(both.map(({ status }) => status).sort()).toEqual([201, 401]);
  });

  it('that is read-only changes nothing', async () => {
    const { token } = await link('--read-only', '--expires', '1h');
    const cookie = await signIn({ link: token });
    expect((await ask(overview, { cookie })).status).toBe(200);
    const upload = { method: 'POST', cookie, body: { records: [newShop()] } };
    expect((await ask('/console/api/v1/data/shops', upload)).body.code).toBe('missing_permission');
    const { body } = await ask(session, { cookie });
    expect((Date.parse(body.expires_at) - Date.now()) / 60_000).toBeLessThanOrEqual(60);
  });

  it('ends with its key', async () => {
    const { token, keyId } = await link();
    await server.run('keys', 'revoke', keyId);
    const { status } = await ask(session, { method: 'POST', body: { link: token } });
    expect(status).toBe(401);
  });

  it('that is too old lets nobody in', async () => {
    const { token } = await link();
    await queryDatabase(server.databaseUrl, `update console_links set expires_at = now()`);
    expect((await ask(session, { method: 'POST', body: { link: token } })).body.code).toBe('link_not_usable');
  });
});

describe('the key of a link', () => {
  const list = async (): Promise<{ key_id: string; expires_at: string }[]> =>
    JSON.parse(await server.run('keys', 'list', '--organisation', 'acme', '--json'));
  const found = async (...keyIds: string[]) => {
    const listed = (await list()).map(({ key_id }) => key_id);
    return keyIds.map((keyId) => listed.includes(keyId));
  };
  const expire = (...keyIds: string[]) =>
    queryDatabase(server.databaseUrl, 'update api_keys set expires_at = now() where key_id = any($1)', [
      keyIds,
    ]);

  it('is removed when its session ends, and stays in the audit log', async () => {
    const { token, keyId } = await link('--read-only');
    const cookie = await signIn({ link: token });
    expect(await found(keyId)).toEqual([true]);
    expect((await ask(session, { method: 'DELETE', cookie })).status).toBe(204);
    expect(await found(keyId)).toEqual([false]);
    expect((await ask(overview, { cookie })).status).toBe(401);
    const entries = JSON.parse(await server.run('audit', '--organisation', 'acme', '--json'));
    expect(entries.filter(({ key_id }: { key_id: string }) => key_id === keyId)).toMatchObject([
      { act: 'console.link', details: { permissions: ['data:read', 'interactions:read'] } },
    ]);
  });

  it('is removed after its time, whether or not the link was used, by the next link or sign-in', async () => {
    const [unused, used, later] = [await link(), await link(), await link()];
    await signIn({ link: used.token });
    await server.run('keys', 'revoke', later.keyId);
    await expire(unused.keyId, used.keyId);
    const { keyId } = await link();
    expect(await found(unused.keyId, used.keyId, later.keyId, keyId)).toEqual([false, false, true, true]);
    await expire(later.keyId);
    await signIn();
    expect(await found(later.keyId, keyId)).toEqual([false, true]);
  });

  it('lasts no longer than its single session', async () => {
    const { token, keyId } = await link('--expires', '30d');
    await signIn({ link: token });
    const { expires_at = '' } = (await list()).find(({ key_id }) => key_id === keyId) ?? {};
    expect((Date.parse(expires_at) - Date.now()) / 3_600_000).toBeLessThanOrEqual(12);
  });

  it('differs from other keys, and stays if it was rotated', async () => {
    const issued = await server.run(
      ...['keys', 'issue', '--organisation', 'acme', '--label', 'console link', '--expires', '1h', '--json'],
    );
    const { key_id: ordinary } = JSON.parse(issued);
    const { keyId } = await link();
    await server.run('keys', 'rotate', keyId);
    await expire(ordinary, keyId);
    await link();
    expect(await found(ordinary, keyId)).toEqual([true, true]);
  });

  it('is one of at most a thousand that are removed at once', async () => {
    await queryDatabase(
      server.databaseUrl,
      `insert into api_keys (key_id, organisation_id, key_sha256, permissions, expires_at)
       select 'link' || n, organisation_id, decode(repeat('00', 32), 'hex'), '{}', now()
       from organisations, generate_series(1, 1200) n where slug = 'acme'`,
    );
    const left = async () => (await list()).filter(({ key_id }) => /^link\d+$/.test(key_id)).length;
    await link();
    expect(await left()).toBe(200);
    await link();
    expect(await left()).toBe(0);
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
