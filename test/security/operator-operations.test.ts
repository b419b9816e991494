import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, adminToken, startAdminServer } from '../support/admin-server.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tries every admin API operation, on the API and on the console, with every credential that must not be accepted. */

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
}

const { paths } = JSON.parse(readFileSync(new URL('../../admin-openapi.json', import.meta.url), 'utf8'));
const operations: Operation[] = Object.keys(paths)
  .filter((path) => path.startsWith('/admin/v1/'))
  .flatMap((path) =>
    Object.keys(paths[path]).map((method) => ({
      id: paths[path][method].operationId,
      method: method.toUpperCase(),
      path,
    })),
  );
const each = operations.map((operation) => [operation.id, operation] as const);
const writing = each.filter(([, { method }]) => method !== 'GET');

let server: AdminServer;
let key: string;
/** The state of all organisations, which no request may change. */
let before: unknown;
beforeAll(async () => {
  server = await startAdminServer({ FAILED_KEYS_PER_MINUTE_MAX: '100000' });
  key = await server.createKey('acme');
  await server.createKey('gone');
  await server.run('organisations', 'delete', 'gone', '--confirm', 'gone');
  before = await state();
});
afterAll(() => server.stop());

/** Returns the state without the times at which keys were last used. */
const state = () =>
  queryDatabase(
    server.databaseUrl,
    `select (select array_agg(o order by slug)::text from organisations o) as organisations,
       (select array_agg(to_jsonb(k) - '{last_used_at,changed_in}'::text[] order by key_id)::text from api_keys k) as keys,
       (select count(*)::integer from console_links) as links, (select max(audit_id)::text from audit_log) as entries`,
  );

/** A valid body for each operation. */
const bodies: Readonly<Record<string, object>> = {
  'create-organisation': { slug: 'sneaky' },
  'change-organisation': { suspended: true, records_stored_max: 1, interactions_kept_days: 1 },
  'issue-key': { organisation: 'acme' },
  'issue-console-link': { organisation: 'acme' },
};

type Headers = Record<string, string>;

async function ask(url: string, { id, method, path }: Operation, prefix: string, headers: Headers) {
  const slug = id === 'restore-organisation' ? 'gone' : 'acme';
  const named = path.replace('{slug}', slug).replace('{key_id}', key.split('_')[1] as string);
  const body = method === 'GET' || method === 'DELETE' ? undefined : JSON.stringify(bodies[id] ?? {});
  const answer = await fetch(url + prefix + named, {
    method,
    headers: { origin: url, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body }),
  });
  const { code } = (await answer.json()) as { code?: string };
  return [answer.status, code] as const;
}

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

async function cookieFrom(url: string, secret: object): Promise<string> {
  const headers = { origin: url, 'content-type': 'application/json' };
  const answer = await fetch(`${url}/console/api/session`, {
    method: 'POST',
    headers,
    body: JSON.stringify(secret),
  });
  expect(answer.status).toBe(201);
  return (answer.headers.get('set-cookie') ?? '').split(';')[0] as string;
}

async function readOnlyToken(name: string): Promise<string> {
  return JSON.parse(await server.run('tokens', 'issue', name, '--json', '--read-only')).token;
}

it('the description has the operations that delete and restore an organisation', () => {
  expect(writing.map(([id]) => id)).toEqual(
    expect.arrayContaining(['delete-organisation', 'restore-organisation']),
  );
});

describe('without permission', () => {
  it.each(each)('nobody uses %s', async (_id, operation) => {
    const ofKey = await cookieFrom(server.url, { key });
    const asOperator = ofKey.replace('intake_console', 'intake_operator');
    const attempts: Headers[] = [{}, bearer(key), bearer('x'), { cookie: ofKey }, { cookie: asOperator }];
    for (const headers of attempts) {
      expect(await ask(server.adminUrl, operation, '', headers)).toEqual([401, 'admin_unauthorized']);
      expect(await ask(server.adminUrl, operation, '/console/api', headers)).toEqual([401, 'not_signed_in']);
    }
    // The console does not accept tokens, and the API does not accept sessions.
    const cookie = await cookieFrom(server.adminUrl, { token: adminToken });
    expect(await ask(server.adminUrl, operation, '/console/api', bearer(adminToken))).toEqual([
      401,
      'not_signed_in',
    ]);
    expect(await ask(server.adminUrl, operation, '', { cookie })).toEqual([401, 'admin_unauthorized']);
    // The public port does not serve these paths.
    for (const headers of [bearer(key), { cookie: ofKey }, bearer(adminToken), { cookie }])
      for (const prefix of ['', '/console/api']) {
        const [, code] = await ask(server.url, operation, prefix, headers);
        expect(code).toMatch(/^(unauthorized|not_found|method_not_allowed)$/);
      }
    expect(await ask(server.url, operation, '', bearer(key))).toEqual([404, 'not_found']);
    expect(await state()).toEqual(before);
  });

  it.each(writing)('a read-only token does not use %s', async (id, operation) => {
    const token = await readOnlyToken(`reader-${id}`);
    const cookie = await cookieFrom(server.adminUrl, { token });
    const now = await state();
    const refused = [403, 'read_only_token'];
    expect(await ask(server.adminUrl, operation, '', bearer(token))).toEqual(refused);
    expect(await ask(server.adminUrl, operation, '/console/api', { cookie })).toEqual(refused);
    expect(await state()).toEqual(now);
  });

  it.each(writing)('another page cannot use %s on behalf of an operator', async (_id, operation) => {
    const cookie = await cookieFrom(server.adminUrl, { token: adminToken });
    const now = await state();
    for (const origin of ['https://evil.example', 'http://127.0.0.1:1', 'null'])
      expect(await ask(server.adminUrl, operation, '/console/api', { cookie, origin })).toEqual([
        403,
        'other_page',
      ]);
    expect(await state()).toEqual(now);
  });
});

it('with a right to them, all of these requests are answered, so that the refusals are for the right alone', async () => {
  const cookie = await cookieFrom(server.adminUrl, { token: adminToken });
  const last = ['revoke-key', 'delete-organisation'];
  for (const operation of operations.toSorted(
    (one, other) => last.indexOf(one.id) - last.indexOf(other.id),
  )) {
    const [status] = await ask(server.adminUrl, operation, '/console/api', { cookie });
    expect([operation.id, [200, 201].includes(status)]).toEqual([operation.id, true]);
  }
});
