import { userInfo } from 'node:os';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { allPages } from '../support/all-pages.ts';
import { type Api, apiOf } from '../support/api.ts';
import { expectError } from '../support/expect-error.ts';
import { linesOf } from '../support/lines-of.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/**
 * Tests the admin API tokens and the audit log. Each token has a name, several can be valid at the same time, some are
 * read-only, and tokens can be changed without a restart.
 */

const organisations = '/admin/v1/organisations';
const me = `cli:${userInfo().username}`;
let server: AdminServer;
/** A second process on the same database. */
let other: AdminServer;
beforeAll(async () => {
  server = await startAdminServer();
  other = await startAdminServer({ DATABASE_URL: server.databaseUrl });
  await server.admin.post(organisations, { slug: 'acme' });
});
afterAll(() => Promise.all([server, other].map((one) => one.stop())));

const waitsForLock = `select from pg_locks where relation = 'admin_tokens'::regclass and not granted`;

interface Issued {
  readonly name: string;
  readonly token: string;
  readonly role: string;
  readonly expires_at: string | null;
}
const attempt = (...args: string[]) => runCommand(['tokens', ...args], { DATABASE_URL: server.databaseUrl });
const issue = async (name: string, ...flags: string[]): Promise<Issued> =>
  JSON.parse(await server.run('tokens', 'issue', name, '--json', ...flags));
const use = async (token: string, { adminUrl } = server) =>
  (await apiOf(adminUrl, token).get(organisations)).status;

describe('a token', () => {
  it('works at once in every process, alongside others, and not after it is revoked', async () => {
    const [first, second] = [await issue('first'), await issue('second')];
    for (const at of [server, other])
      expect([await use(first.token, at), await use(second.token, at)]).toEqual([200, 200]);
    expect(await server.run('tokens', 'revoke', 'first')).toContain('first');
    // The change takes effect immediately, because each request queries the database.
    for (const at of [server, other])
      expect([await use(first.token, at), await use(second.token, at)]).toEqual([401, 200]);
    const [before] = JSON.parse(await server.run('tokens', 'list', '--json'));
    expect((await attempt('revoke', 'first')).exitCode).toBe(0);
    expect(JSON.parse(await server.run('tokens', 'list', '--json'))[0]).toEqual(before);
    expect(before).toMatchObject({ name: 'first', revoked_at: expect.any(String) });
  });

  it('expires at its end', async () => {
    const { token, expires_at } = await issue('brief', '--expires', '1h');
    expect(Math.abs(Date.parse(expires_at!) - Date.now() - 3_600_000)).toBeLessThan(60_000);
    expect(await use(token)).toBe(200);
    await queryDatabase(
      server.databaseUrl,
      `update admin_tokens set expires_at = now() where name = 'brief'`,
    );
    expect(await use(token)).toBe(401);
  });

  it('that is read-only reads everything and changes nothing', async () => {
    const { token, role } = await issue('dashboard', '--read-only');
    expect(role).toBe('read-only');
    const reader = apiOf(server.adminUrl, token);
    for (const path of [organisations, `${organisations}/acme`, '/admin/v1/keys', '/admin/v1/audit'])
      expect((await reader.get(path)).status).toBe(200);
    const count = () => queryDatabase(server.databaseUrl, 'select from audit_log');
    const before = (await count()).length;
    const writes: [string, string][] = [
      ['POST', organisations],
      ['PATCH', `${organisations}/acme`],
      ['POST', '/admin/v1/keys'],
      ['POST', '/admin/v1/keys/0Qm3xYb7ZkA/rotate'],
      ['POST', '/admin/v1/keys/0Qm3xYb7ZkA/revoke'],
    ];
    for (const [method, path] of writes) {
      const headers = { 'content-type': 'application/json' };
      const answer = await reader.send(path, { method, headers, body: '{"slug":"sneaky","suspended":true}' });
      expectError(answer, 403);
      expect(answer.body.code).toBe('read_only_token');
    }
    expectError(await reader.send(organisations, { method: 'DELETE' }), 405);
    expect((await count()).length).toBe(before);
  });

  it('is not locked out by 200 wrong ones from its address', async () => {
    const wrong = apiOf(server.adminUrl, 'x'.repeat(62));
    const unknown = apiOf(server.adminUrl, (await issue('gone')).token);
    await server.run('tokens', 'revoke', 'gone');
    const { token } = await issue('right');
    for (let time = 0; time < 100; time++)
      for (const api of [wrong, unknown]) expect((await api.get(organisations)).status).toBe(401);
    expect(await use(token)).toBe(200);
  });

  it('of a wrong form costs no query', async () => {
    const { token } = await issue('checked');
    const misspelt = token.slice(0, -1) + (token.endsWith('0') ? '1' : '0');
    const database = new pg.Client({ connectionString: server.databaseUrl });
    await database.connect();
    await database.query('begin; lock table admin_tokens in access exclusive mode');
    const waiting = use(token);
    // A query would block on the lock, so a 401 proves that these tokens are refused without a query.
    for (const wrong of [misspelt, 'secret', `${token}x`, token.slice(0, -1)])
      expect(await use(wrong)).toBe(401);
    await expect.poll(async () => (await database.query(waitsForLock)).rowCount).toBe(1);
    await database.end();
    expect(await waiting).toBe(200);
  });

  it('is shown once; the database has its hash', async () => {
    const { stdout } = await attempt('issue', 'shown');
    expect(stdout).toMatch(/the full token shown, which never expires \(--expires sets an end\)/);
    const [token = ''] = stdout.match(/intake_admin_\w+/g)!;
    expect(await use(token)).toBe(200);
    const rows = await queryDatabase(server.databaseUrl, 'select t::text from admin_tokens t');
    expect(JSON.stringify(rows)).not.toContain(token.slice(-49));
    const list = await server.run('tokens', 'list');
    expect(list).toMatch(/^NAME\tROLE\tISSUED\tISSUED BY\tSTATE\n/);
    expect(list).toMatch(new RegExp(`^shown\tfull\t\\S+\t${me}\tactive$`, 'm'));
    expect(list).not.toContain('intake_');
  });

  it.each([
    ['no name', ['issue'], /one name/],
    ['an invalid name', ['issue', 'No Name'], /lower-case/],
    ['a name that is taken', ['issue', 'operator'], /operator is taken/],
    ['an expiry in the past', ['issue', 'late', '--expires', '2020-01-01T00:00:00Z'], /past/],
    ['an unknown name', ['revoke', 'nobody'], /"nobody".*tokens list/],
    ['the token itself', ['revoke', 'intake_admin_secret'], /the name of the token/],
    ['no action', [], /issue, list or revoke/],
  ])('is not issued with %s', async (_what, args, help) => {
    const { exitCode, stdout, stderr } = await attempt(...args);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(help);
    expect(stderr).not.toContain('secret');
  });
});

describe('the audit log over HTTP', () => {
  const path = '/admin/v1/audit';
  interface Entry {
    readonly audit_id: string;
    readonly actor: string;
    readonly at: string;
    readonly act: string;
    readonly organisation: string | null;
    readonly details: object;
  }
  const pagesOf = (api: Api, query: Record<string, string>) => allPages<Entry>(api, path, 'entries', query);

  it('contains the token that acted, and who issued and revoked tokens', async () => {
    const deploy = apiOf(server.adminUrl, (await issue('deploy', '--expires', '2199-01-01T00:00:00Z')).token);
    const created = await deploy.post(organisations, { slug: 'globex' });
    await server.run('tokens', 'revoke', 'deploy');
    const [revoked, create, issued] = (await server.admin.get(`${path}?limit=3`)).body.entries;
    expect(issued).toMatchObject({
      actor: me,
      act: 'token.issue',
      organisation: null,
      details: { name: 'deploy', role: 'full', expires_at: '2199-01-01T00:00:00.000Z' },
    });
    expect(create).toMatchObject({
      actor: 'token:deploy',
      act: 'organisation.create',
      organisation: 'globex',
      request_id: created.headers.get('x-request-id'),
    });
    expect(revoked).toMatchObject({ actor: me, act: 'token.revoke', details: { name: 'deploy' } });
  });

  it('equals the output of the command, page by page, of all or of one organisation', async () => {
    for (const flags of [[], ['--organisation', 'acme']]) {
      const shown: Entry[] = linesOf(await server.run('audit', '--json', '--limit', '1000', ...flags));
      const organisation: Record<string, string> = flags[1] === undefined ? {} : { organisation: flags[1] };
      const pages = await pagesOf(server.admin, { ...organisation, limit: '2' });
      expect(pages.flat()).toEqual(shown);
      expect(pages[0]).toHaveLength(Math.min(2, shown.length));
      expect(await pagesOf(server.admin, organisation)).toEqual([shown]);
    }
  });

  it('is filtered by actor, action and time', async () => {
    const all = (await server.admin.get(`${path}?limit=1000`)).body.entries as Entry[];
    const filtered = async (query: Record<string, string>) =>
      (await pagesOf(server.admin, { ...query, limit: '2' })).flat();
    const [{ actor, at }] = [all[1]!];
    expect(await filtered({ actor })).toEqual(all.filter((entry) => entry.actor === actor));
    expect(await filtered({ action: 'token' })).toEqual(all.filter(({ act }) => act.startsWith('token.')));
    expect(await filtered({ since: at })).toEqual(all.filter((entry) => entry.at >= at));
    expect(await filtered({ until: at, actor })).toEqual(
      all.filter((entry) => entry.at < at && entry.actor === actor),
    );
    expect((await server.admin.get(`${path}?since=yesterday`)).status).toBe(400);
  });

  it('has one entry a day for the console links of an organisation, which cannot be lowered', async () => {
    const links = '/admin/v1/console-links';
    await Promise.all(
      Array.from({ length: 12 }, (_, at) =>
        server.admin.post(links, { organisation: 'acme', read_only: at % 4 === 0 }),
      ),
    );
    const { entries } = (await server.admin.get(`${path}?action=console`)).body;
    const day = new Date().toISOString().slice(0, 10);
    expect(entries.map(({ details }: { details: unknown }) => details)).toEqual(
      expect.arrayContaining([
        { day, read_only: true, links: 3 },
        { day, read_only: false, links: 9 },
      ]),
    );
    expect(entries).toHaveLength(2);
    for (const change of [
      `details = jsonb_set(details, '{links}', '1')`,
      `details = details || '{"day": "2020-01-01"}'`,
      `actor = 'nobody'`,
      `imported_at = now()`,
    ])
      await expect(
        queryDatabase(server.databaseUrl, `update audit_log set ${change} where act = 'console.links'`),
      ).rejects.toThrow('only grows');
  });

  it('accepts only cursors that it issued for the same list, in any process', async () => {
    const { next_cursor } = (await server.admin.get(`${path}?limit=1`)).body;
    const [, signature] = next_cursor.split('.');
    expect((await other.admin.get(`${path}?cursor=${next_cursor}`)).status).toBe(200);
    const forged = [
      '7',
      '7.',
      `7.${signature}`,
      `${next_cursor}x`,
      `${next_cursor}.`,
      next_cursor.slice(0, -1),
    ];
    for (const cursor of forged)
      expectError(await server.admin.get(`${path}?cursor=${cursor}`), 400, ['cursor']);
    expectError(await server.admin.get(`${path}?organisation=acme&cursor=${next_cursor}`), 400, ['cursor']);
    expectError(await server.admin.get(`${path}?organisation=nobody`), 400, ['organisation']);
  });
});
