import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AskConsole, cookieOf, overview, session } from '../support/ask-console.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { linesOf } from '../support/lines-of.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests what a link of the operator opens, and when its key ends. */

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

describe('a link to another organisation', () => {
  it('replaces a session only if it is told to, and works until then', async () => {
    const cookie = await signIn({ key: await server.createKey('own') });
    const { token } = await link();
    const open = (more = {}) => ask(session, { method: 'POST', cookie, body: { link: token, ...more } });
    for (const more of [{}, { replace: false }]) {
      const { status, headers, body } = await open(more);
      expect([status, body.code]).toEqual([409, 'other_organisation']);
      expect(body.message).toMatch(/^This browser is signed in to own, and the link opens acme; /);
      expect(headers.get('set-cookie')).toBeNull();
      expect((await ask(session, { cookie })).body.organisation.slug).toBe('own');
    }
    expect((await open({ replace: 'yes' })).status).toBe(400);
    const { status, headers } = await open({ replace: true });
    expect(status).toBe(201);
    expect((await ask(session, { cookie: cookieOf(headers) })).body.organisation.slug).toBe('acme');
    expect((await ask(session, { cookie })).status).toBe(401);
  });

  it('replaces a session of the same organisation, and one that has ended', async () => {
    const cookie = await signIn();
    const again = await ask(session, { method: 'POST', cookie, body: { link: (await link()).token } });
    expect(again.status).toBe(201);
    const ended = await signIn({ key: await server.createKey('own') });
    await ask(session, { method: 'DELETE', cookie: ended });
    const { token } = await link();
    expect((await ask(session, { method: 'POST', cookie: ended, body: { link: token } })).status).toBe(201);
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
    const entries = linesOf(await server.run('audit', '--organisation', 'acme', '--json'));
    expect(entries.filter(({ key_id }) => key_id === keyId)).toMatchObject([
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
