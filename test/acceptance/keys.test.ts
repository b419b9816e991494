import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { builtVersion } from '../support/built-version.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { expectInTime } from '../support/in-time.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { runCommand } from '../support/run-command.ts';

/** Tests permissions: the specification's Authentication section, and rows 28, 29 and 36 to 38 of docs/api-behaviour.md. */

const description = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
const types = Object.keys(description.paths)
  .filter((path) => /^\/v1\/data\/[^/]+$/.test(path))
  .map((path) => path.slice('/v1/data/'.length));

let server: BuiltServer;
let key: string;
let database: pg.Client;
beforeAll(async () => {
  server = await startBuiltServer({ BODY_BYTES_MAX: '10000', LAKE_URL: 'file:///nowhere' });
  key = await server.createKey('acme');
  await server.run('organisations', 'set-report', 'acme', 'on');
  database = new pg.Client({ connectionString: server.databaseUrl });
  await database.connect();
});
afterAll(async () => {
  await database.end();
  await server.stop();
});

/** Returns a well-formed key that another installation issued. */
async function foreignKey(): Promise<{ key: string; key_id: string }> {
  const env = { DATABASE_URL: await createTestDatabase() };
  await runCommand(['organisations', 'create', 'acme'], env);
  const { stdout } = await runCommand(['keys', 'issue', '--organisation', 'acme', '--json'], env);
  return JSON.parse(stdout);
}

function expectUnauthorised(answer: Answer) {
  expectError(answer, 401);
  expect(answer.body.error).toBe('Unauthorized');
  expect(answer.body.message).toMatch(/key is invalid or missing/);
  expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
}

/** Every operation that needs a key. Each has a request that passes the permission check and stores nothing. */
const operations: { name: string; needs: string; call: (api: Api) => Promise<Answer> }[] = [
  ...types.map((type) => ({
    name: `upload of ${type}`,
    needs: `data:write:${type}`,
    call: (api: Api) => api.upload(type, []),
  })),
  ...types.flatMap((type) => [
    {
      name: `list of ${type}`,
      needs: 'data:read',
      call: (api: Api) => api.get(`/v1/data/${type}`),
    },
    {
      name: `export of ${type}`,
      needs: 'data:read',
      call: (api: Api) => api.get(`/v1/data/${type}`, { accept: 'application/x-ndjson' }),
    },
    {
      name: `reading one of ${type}`,
      needs: 'data:read',
      call: (api: Api) => api.get(`/v1/data/${type}/${randomUUID()}`),
    },
  ]),
  { name: 'reading the report', needs: 'data:read', call: (api) => api.get('/v1/reports/recommendations') },
  { name: 'reading the lake', needs: 'data:read', call: (api) => api.get('/v1/lake') },
  { name: 'reading changes', needs: 'data:read', call: (api) => api.get('/v1/changes?types=tags') },
  {
    name: 'recording an interaction',
    needs: 'interactions:write',
    call: (api) => api.post('/user-interactions', {}),
  },
  { name: 'list of interactions', needs: 'interactions:read', call: (api) => api.get('/user-interactions') },
  {
    name: 'reading an interaction',
    needs: 'interactions:read',
    call: (api) => api.get(`/user-interactions/${randomUUID()}`),
  },
];

describe('a key that is missing or invalid', () => {
  it.each(operations)('29: $name without one is 401', async ({ call }) => {
    expectUnauthorised(await call(apiOf(server.url)));
  });

  it.each([
    ['nothing', () => ''],
    ['the scheme alone', () => 'Bearer'],
    ['no scheme', () => key],
    ['another scheme', () => `Basic ${Buffer.from(`${key}:`).toString('base64')}`],
    ['a scheme of a similar name', () => `Bearers ${key}`],
    ['two keys', () => `Bearer ${key} ${key}`],
    ['two keys with a comma', () => `Bearer ${key}, Bearer ${key}`],
    ['a quoted key', () => `Bearer "${key}"`],
    ['a word', () => 'Bearer secret'],
    ['a key cut short', () => `Bearer ${key.slice(0, -1)}`],
    ['a key with a character more', () => `Bearer ${key}0`],
    ['a key of another prefix', () => `Bearer ${key.replace('intake_', 'intuke_')}`],
    ['a key with a wrong checksum', () => `Bearer ${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`],
    ['a key with two characters exchanged', () => `Bearer ${exchanged(key)}`],
    ['a key in capitals', () => `Bearer ${key.toUpperCase()}`],
    ['a very long key', () => `Bearer intake_${'x'.repeat(8_000)}`],
  ])('36: Authorization with %s is 401', async (_what, authorization) => {
    const headers = { authorization: authorization() };
    expectUnauthorised(await apiOf(server.url).get('/user-interactions', headers));
    expectUnauthorised(await apiOf(server.url).post('/v1/data/tags', { records: [] }, headers));
  });

  function exchanged(text: string): string {
    const at = [...text].findIndex((character, index) => index > 25 && character !== text[index + 1]);
    return text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2);
  }

  it('36: a well-formed and unknown one is 401', async () => {
    const { key: unknown } = await foreignKey();
    expectUnauthorised(await apiOf(server.url, unknown).get('/user-interactions'));
  });

  it('36: one with the id of a known key and another secret is 401', async () => {
    const foreign = await foreignKey();
    expect(foreign.key.split('_')[1]).toBe(foreign.key_id);
    await database.query(
      `insert into api_keys (key_id, organisation_id, key_sha256, permissions)
       select $1, organisation_id, key_sha256, permissions from api_keys limit 1`,
      [foreign.key_id],
    );
    expectUnauthorised(await apiOf(server.url, foreign.key).get('/user-interactions'));
  });

  it('Authentication: a key in the address is ignored', async () => {
    for (const name of ['key', 'api_key', 'access_token', 'authorization']) {
      expectUnauthorised(await apiOf(server.url).get(`/user-interactions?${name}=${key}`));
    }
    expectUnauthorised(await apiOf(server.url).get(`/${key}`));
  });

  it('Authentication: the scheme may be written in any case', async () => {
    for (const scheme of ['bearer', 'BEARER']) {
      const { status } = await apiOf(server.url).get('/user-interactions', {
        authorization: `${scheme} ${key}`,
      });
      expect(status).toBe(200);
    }
  });
});

describe('permissions', () => {
  const grants = [
    ['data:write'],
    ['data:write:shops'],
    ['data:write:shop-tags', 'data:write:tags'],
    ['data:read'],
    ['interactions:write'],
    ['interactions:read'],
    ['data:read', 'interactions:write', 'interactions:read'],
  ];
  const permits = (granted: string[], needed: string) =>
    granted.includes(needed) || (needed.startsWith('data:write:') && granted.includes('data:write'));

  it.each(grants.map((granted) => ({ granted })))(
    '37: $granted grants that and nothing else',
    async ({ granted }) => {
      const api = apiOf(server.url, await server.createKey('acme', ...granted));
      for (const { name, needs, call } of operations) {
        const answer = await call(api);
        if (permits(granted, needs)) expect([name, answer.status]).not.toEqual([name, 403]);
        else {
          expectError(answer, 403);
          expect(answer.body).toMatchObject({ code: 'missing_permission', permission: needs });
          expect(answer.body.message).toContain(` ${needs};`);
        }
        expect(answer.status).toBeLessThan(500);
      }
    },
  );

  it('37: a key has every permission unless it is issued with fewer', async () => {
    for (const { call } of operations)
      expect([200, 400, 404]).toContain((await call(apiOf(server.url, key))).status);
  });

  it('37: data:read grants reading records, and nothing else does', async () => {
    const uploaded = { tag_id: randomUUID(), name: 'vegan' };
    await apiOf(server.url, key).batch('tags', [uploaded]);
    const reader = apiOf(server.url, await server.createKey('acme', 'data:read'));
    const others = ['data:write', 'interactions:write', 'interactions:read'];
    const rest = apiOf(server.url, await server.createKey('acme', ...others));
    for (const path of ['/v1/data/tags', `/v1/data/tags/${uploaded.tag_id}`]) {
      expect((await reader.get(path)).status).toBe(200);
      expectError(await rest.get(path), 403);
    }
    expectError(await reader.upload('tags', [uploaded]), 403);
  });
});

describe('revoking', () => {
  it('38: a revoked key is refused within 5 seconds, and the organisation’s others are not', async () => {
    const refuseRevoked = async () => {
      const revoked = await server.createKey('acme');
      const api = apiOf(server.url, revoked);
      expect((await api.get('/user-interactions')).status).toBe(200);
      await server.run('keys', 'revoke', revoked.split('_')[1]!);
      const revokedMs = performance.now();
      await expect.poll(async () => (await api.get('/user-interactions')).status).toBe(401);
      const refusedMs = performance.now();
      expectUnauthorised(await api.get('/user-interactions'));
      return [{ what: 'a revoked key is refused', ms: refusedMs - revokedMs, promisedMs: 5_000 }];
    };
    await expectInTime(refuseRevoked);
    expect((await apiOf(server.url, key).get('/user-interactions')).status).toBe(200);
  });

  it('38: a successor works at once and its predecessor for the grace period, and no longer', async () => {
    const scopes = ['interactions:read', 'data:write:tags'];
    const statusOf = async (presented: string) =>
      (await apiOf(server.url, presented).get('/user-interactions')).status;
    let [old, oldId, rotated, status] = ['', '', { key: '' }, 0];
    // If the machine is so slow that the grace period ends before the old key is used, try a longer period.
    for (const seconds of [3, 10, 20]) {
      old = await server.createKey('acme', ...scopes);
      oldId = old.split('_')[1]!;
      const beganMs = performance.now();
      rotated = JSON.parse(await server.run('keys', 'rotate', oldId, '--grace', `${seconds}s`, '--json'));
      expect(await statusOf(rotated.key)).toBe(200);
      status = await statusOf(old);
      if (status === 200) break;
      expect(performance.now() - beganMs).toBeGreaterThanOrEqual(seconds * 1_000);
    }
    expect(status).toBe(200);
    expect((await apiOf(server.url, rotated.key).upload('shops', [])).status).toBe(403);
    await expect.poll(() => statusOf(old)).toBe(401);
    expect(await statusOf(rotated.key)).toBe(200);
    await expect(server.run('keys', 'rotate', oldId)).rejects.toThrow('in use');
  });

  it('38: without a period the grace is a day, and a longer one does not extend the key', async () => {
    const id = (await server.createKey('acme')).split('_')[1]!;
    const endsAt = async () => {
      const listed: { key_id: string; expires_at: string }[] = JSON.parse(
        await server.run('keys', 'list', '--json'),
      );
      return Date.parse(listed.find(({ key_id }) => key_id === id)!.expires_at);
    };
    await server.run('keys', 'rotate', id);
    const first = await endsAt();
    expect(Math.abs(first - Date.now() - 24 * 3_600_000)).toBeLessThan(60_000);
    await server.run('keys', 'rotate', id, '--grace', '7d');
    expect(await endsAt()).toBe(first);
    await expect(server.run('keys', 'rotate', id, '--grace', 'soon')).rejects.toThrow('24h');
  });
});

describe('the order of the checks', () => {
  const json = 'Content-Type: application/json';
  const withoutKey = () => apiOf(server.url);
  const withKey = () => apiOf(server.url, key);
  const readOnly = async () => apiOf(server.url, await server.createKey('acme', 'data:read'));

  it('28: the key comes before the address, the type, the method, the media type and the body', async () => {
    expectUnauthorised(await withoutKey().get('/nowhere'));
    expectUnauthorised(await withoutKey().post('/v1/data/nothing', {}));
    expectUnauthorised(await withoutKey().send('/v1/data/shops', { method: 'DELETE' }));
    expectUnauthorised(await withoutKey().send('/v1/data/shops', { method: 'POST', body: 'text' }));
    expectUnauthorised(await withoutKey().post('/v1/data/shops?dry_run=true', {}));
    expectUnauthorised(
      await sendRaw(server.url, rawPost('/v1/data/shops', [json, 'Content-Length: 99999999'])),
    );
  });

  it('28: the key comes before an id that is too long to be one', async () => {
    expectUnauthorised(await withoutKey().get(`/user-interactions/${'x'.repeat(500)}`));
  });

  it('28: the type comes before the method, and the method before the permission', async () => {
    const api = await readOnly();
    expectError(await api.send('/v1/data/nothing', { method: 'DELETE' }), 404);
    expectError(await api.send('/v1/data/shops', { method: 'DELETE' }), 405);
    expectError(await api.send('/user-interactions', { method: 'PUT' }), 405);
  });

  it('28: the permission comes before the size, the media type and the body', async () => {
    const scoped = await server.createKey('acme', 'data:read');
    const api = apiOf(server.url, scoped);
    expectError(await api.send('/v1/data/shops', { method: 'POST', body: 'text' }), 403);
    const headers = { 'content-type': 'application/json' };
    expectError(await api.send('/v1/data/shops', { method: 'POST', headers, body: '{' }), 403);
    const tooLarge = [`Authorization: Bearer ${scoped}`, json, 'Content-Length: 99999999'];
    expectError(await sendRaw(server.url, rawPost('/v1/data/shops', tooLarge)), 403);
  });

  it('28: the size and the media type come before the body', async () => {
    const text = { 'content-type': 'text/plain' };
    expectError(await withKey().send('/v1/data/shops', { method: 'POST', headers: text, body: '{' }), 415);
    const tooLarge = [`Authorization: Bearer ${key}`, json, 'Content-Length: 10001'];
    expectError(await sendRaw(server.url, rawPost('/v1/data/shops', tooLarge, '{'.repeat(10_001))), 413);
  });
});

describe('two Authorization headers', () => {
  it.each([
    ['the same key twice', () => [key, key]],
    ['a good key first', () => [key, 'nonsense']],
    ['a good key last', () => ['nonsense', key]],
  ])('61a: %s is 400, and nothing is read', async (_what, keys) => {
    for (const [name, path] of [
      ['Authorization', '/v1/data'],
      ['AUTHORIZATION', '/health/live'],
    ] as const) {
      const [first = '', second = ''] = keys();
      const head = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${first}\r\n${name}: Bearer ${second}\r\n\r\n`;
      const answer = await sendRaw(server.url, head);
      expectError(answer, 400);
      expect(answer.headers.get('connection')).toBe('close');
    }
  });
});

describe('what needs no key', () => {
  it.each(['/health/live', '/health/ready', '/openapi.json', '/docs', '/docs/'])(
    '28: %s is public',
    async (path) => {
      for (const authorization of ['', 'Bearer nonsense']) {
        const ask = () => apiOf(server.url).get(path, authorization ? { authorization } : {});
        // If the machine stalls for two seconds, the process is briefly not ready.
        await expect.poll(async () => (await ask()).status).toBeOneOf([200, 301, 302]);
      }
    },
  );

  it('28: the published description is the one in the repository', async () => {
    const info = { ...description.info, version: builtVersion };
    expect((await apiOf(server.url).get('/openapi.json')).body).toEqual({ ...description, info });
  });

  it.each(['/health', '/healthy/live', '/docsx', '/openapi.jsonx', '/openapi.json/', '/v1', '/metrics'])(
    '28: %s requires a key before it reveals whether anything exists',
    async (path) => {
      expectUnauthorised(await apiOf(server.url).get(path));
    },
  );

  it('28: unknown addresses below the public paths are 404', async () => {
    expectError(await apiOf(server.url).get('/health/nothing'), 404);
  });
});

describe('keeping keys', () => {
  it('36: a key is recognisable, contains its id, and is never issued twice', async () => {
    const others = await Promise.all([server.createKey('acme'), server.createKey('acme')]);
    for (const one of [key, ...others]) expect(one).toMatch(/^intake_[0-9A-Za-z]+_[0-9A-Za-z]{43,}$/);
    expect(new Set([key, ...others]).size).toBe(3);
  });

  it('36: the database has only a SHA-256 of the key', async () => {
    const secret = key.split('_')[2]!;
    const { rows: tables } = await database.query(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    let dump = '';
    for (const { name } of tables) {
      const { rows } = await database.query(`select t::text as line from ${name} t`);
      dump += rows.map(({ line }) => line).join('\n');
    }
    expect(dump).toContain(createHash('sha256').update(key).digest('hex'));
    for (const form of [key, secret, secret.slice(0, 20), secret.slice(-20)]) {
      expect(dump).not.toContain(form);
      expect(dump).not.toContain(Buffer.from(form).toString('hex'));
    }
  });

  it('36: the log has no key, and nothing else that was sent', async () => {
    const [secret, planted] = [key.split('_')[2]!, 'planted@example.org'];
    const api = apiOf(server.url, key);
    await api.get(`/user-interactions?key=${key}`);
    await api.get(`/user-interactions?user_id=${planted}`);
    await api.get(`/${key}`);
    await api.get(`/user-interactions/%zz${key}`);
    await api.get('/user-interactions', { authorization: `Basic ${key}`, 'x-planted': planted });
    const customer = { customer_id: randomUUID(), user_id: planted, region: 'GB', birthdate: '1999-12-31' };
    await api.batch('customers', [customer, { ...customer, user_id: randomUUID(), gender: planted }]);
    await api.send('/v1/data/customers', { method: 'POST', body: planted });
    await sendRaw(server.url, `GET /${planted} ${key} HTTP/1.1\r\n\r\n`);
    const last = (await api.get('/v1/data')).headers.get('x-request-id')!;
    await expect.poll(() => server.log.some((line) => line.includes(last))).toBe(true);
    const log = server.log.join('\n');
    for (const form of [key, secret, planted, encodeURIComponent(planted), '1999-12-31']) {
      expect(log).not.toContain(form);
    }
  });
});
