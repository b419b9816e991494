// @module-tag full

import { userInfo } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { newTag } from '../support/new-records.ts';
import { countStored, queryDatabase } from '../support/query-database.ts';
import { type ResidentCommands, startResidentCommands } from '../support/resident-commands.ts';
import { runCommand } from '../support/run-command.ts';

/** Tests a key from issue to expiry, and an organisation that is suspended temporarily. */

interface ListedKey {
  readonly key_id: string;
  readonly organisation: string;
  readonly permissions: string[];
  readonly label: string | null;
  readonly created_at: string;
  readonly created_by: string;
  readonly last_used_at: string | null;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly successor_of: string | null;
}

const me = `cli:${userInfo().username}`;

let server: BuiltServer;
let commands: ResidentCommands;
beforeAll(async () => {
  server = await startBuiltServer();
  commands = startResidentCommands(server.databaseUrl);
  await commands.run('organisations', 'create', 'acme');
});
afterAll(async () => {
  await commands.stop();
  await server.stop();
});

/** Runs the command in a separate process, to check its output and exit code. */
const attempt = (...args: string[]) => runCommand(args, { DATABASE_URL: server.databaseUrl });
const issue = async (organisation: string, ...flags: string[]): Promise<{ key: string; key_id: string }> =>
  JSON.parse(await commands.run('keys', 'issue', '--organisation', organisation, '--json', ...flags));
const listed = async (keyId: string): Promise<ListedKey> => {
  const keys: ListedKey[] = JSON.parse(await commands.run('keys', 'list', '--json'));
  return keys.find(({ key_id }) => key_id === keyId)!;
};
const use = async (key: string) => (await apiOf(server.url, key).get('/user-interactions')).status;

/**
 * Returns a key that has been used and expires soon. If the machine is so slow that the key has already expired, tries
 * a longer lifetime.
 */
async function usedBeforeItsEnd(
  issueFor: (seconds: number) => ReturnType<typeof issue>,
): ReturnType<typeof issue> {
  for (const seconds of [2, 8, 20]) {
    const issued = await issueFor(seconds);
    if ((await use(issued.key)) === 200) return issued;
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse((await listed(issued.key_id)).expires_at!));
  }
  throw new Error('each key had ended before it could be used');
}

describe('an expiry', () => {
  it('ends a key at its time, and not before', async () => {
    const asked = Date.now();
    const { key, key_id } = await issue('acme', '--expires', '2s');
    const endsAt = Date.parse((await listed(key_id)).expires_at!);
    expect(endsAt).toBeGreaterThanOrEqual(asked + 2_000);
    expect(endsAt).toBeLessThanOrEqual(Date.now() + 2_000);

    const { key: longer } = await issue('acme', '--expires', '1h');
    const used = await usedBeforeItsEnd((seconds) => issue('acme', '--expires', `${seconds}s`));
    await expect.poll(() => use(used.key)).toBe(401);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse((await listed(used.key_id)).expires_at!));
    expect(await use(key)).toBe(401);
    expect(await use(longer)).toBe(200);
  });

  it('is a period or an instant, and shown as an instant', async () => {
    const { key_id: days } = await issue('acme', '--expires', '90d');
    const shown = Date.parse((await listed(days)).expires_at!);
    expect(Math.abs(shown - Date.now() - 90 * 86_400_000)).toBeLessThan(60_000);
    const { key_id: instant } = await issue('acme', '--expires', '2199-12-31T22:00:00+01:00');
    expect(Date.parse((await listed(instant)).expires_at!)).toBe(Date.UTC(2199, 11, 31, 21));
    const { key_id: never } = await issue('acme');
    expect((await listed(never)).expires_at).toBeNull();
  });

  it.each(['soon', '-1d', '2020-01-01T00:00:00Z'])(
    'is not "%s", and then no key is issued',
    async (expires) => {
      const count = async () => (await queryDatabase(server.databaseUrl, 'select from api_keys')).length;
      const before = await count();
      const issued = ['keys', 'issue', '--organisation', 'acme', `--expires=${expires}`];
      const { exitCode, stderr } = await attempt(...issued);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/expires|period/);
      expect(await count()).toBe(before);
    },
  );
});

it('the list can be filtered by keys that expire soon, or that were never used', async () => {
  await commands.run('organisations', 'create', 'tidy');
  const soon = await issue('tidy', '--expires', '20d');
  const later = await issue('tidy', '--expires', '40d');
  const used = await issue('tidy');
  const revoked = await issue('tidy', '--expires', '20d');
  await commands.run('keys', 'revoke', revoked.key_id);
  const ended = await issue('tidy', '--expires', '20d');
  const end = `update api_keys set expires_at = now() - interval '1 day' where key_id = '${ended.key_id}'`;
  await queryDatabase(server.databaseUrl, end);
  expect(await use(used.key)).toBe(200);
  const idsOf = async (...flags: string[]) => {
    const keys: ListedKey[] = JSON.parse(
      await commands.run('keys', 'list', '--organisation', 'tidy', '--json', ...flags),
    );
    return keys.map(({ key_id }) => key_id).toSorted();
  };
  const ids = (...keys: { key_id: string }[]) => keys.map(({ key_id }) => key_id).toSorted();
  expect(await idsOf('--expiring', '30d')).toEqual(ids(soon));
  expect(await idsOf('--expiring', '50d')).toEqual(ids(soon, later));
  await expect.poll(() => idsOf('--unused'), { interval: 200 }).toEqual(ids(soon, later));
  expect(await idsOf('--unused', '--expiring', '30d')).toEqual(ids(soon));
  const wrong = await attempt('keys', 'list', '--expiring', 'soon');
  expect([wrong.exitCode, wrong.stdout]).toEqual([1, '']);
  expect(wrong.stderr).toMatch(/"soon" is not a period; .*7d/);
});

describe('the stored details of a key', () => {
  it('are its label, its creator and its dates', async () => {
    const before = Date.now();
    const { key_id } = await issue('acme', '--label', 'nightly export', '--scope', 'data:read');
    const { created_at, ...rest } = await listed(key_id);
    expect(rest).toEqual({
      key_id,
      organisation: 'acme',
      permissions: ['data:read'],
      browser: false,
      origins: [],
      link: false,
      label: 'nightly export',
      created_by: me,
      last_used_at: null,
      expires_at: null,
      revoked_at: null,
      successor_of: null,
    });
    expect(Date.parse(created_at)).toBeGreaterThanOrEqual(before - 1);
    expect(Date.parse(created_at)).toBeLessThanOrEqual(Date.now());
    const { stdout } = await attempt('keys', 'list', '--organisation', 'acme');
    expect(stdout).toMatch(new RegExp(`^${key_id}\t.*nightly export`, 'm'));
  });

  it('are listed on one line, whatever the label', async () => {
    await attempt('keys', 'issue', '--organisation', 'acme', '--label', 'two\nlines\tand more');
    const keys: ListedKey[] = JSON.parse(await commands.run('keys', 'list', '--json'));
    const lines = (await commands.run('keys', 'list')).trim().split('\n');
    expect(lines).toHaveLength(1 + keys.length);
  });

  it('include its last use, written once for many uses, and not for a refused one', async () => {
    const [{ key, key_id }, refused] = [await issue('acme'), await issue('acme')];
    await commands.run('keys', 'revoke', refused.key_id);
    const before = Date.now();
    expect([await use(key), await use(key), await use(refused.key)]).toEqual([200, 200, 401]);
    const lastUsed = async () => (await listed(key_id)).last_used_at;
    await expect.poll(lastUsed, { interval: 200 }).not.toBeNull();
    const first = (await lastUsed())!;
    expect(Date.parse(first)).toBeGreaterThanOrEqual(before - 1);
    expect(Date.parse(first)).toBeLessThanOrEqual(Date.now());
    // This loop takes longer than the process's polling interval.
    for (const end = Date.now() + 5_000; Date.now() < end; await sleep(250)) expect(await use(key)).toBe(200);
    expect(await lastUsed()).toBe(first);
    expect((await listed(refused.key_id)).last_used_at).toBeNull();
  });
});

describe('a successor', () => {
  it('has the permissions and the label of its predecessor, which expires after the grace', async () => {
    const old = await issue('acme', '--label', 'till', '--scope', 'data:write:tags', '--expires', '30d');
    const rotated = JSON.parse(await commands.run('keys', 'rotate', old.key_id, '--grace', '1h', '--json'));
    expect(rotated).toMatchObject({ key: expect.stringMatching(/^intake_/), successor_of: old.key_id });
    expect(await listed(rotated.key_id)).toMatchObject({
      organisation: 'acme',
      permissions: ['data:write:tags'],
      label: 'till',
      created_by: me,
      expires_at: null,
      revoked_at: null,
      successor_of: old.key_id,
    });
    const { expires_at, revoked_at } = await listed(old.key_id);
    expect(Math.abs(Date.parse(expires_at!) - Date.now() - 3_600_000)).toBeLessThan(60_000);
    expect(revoked_at).toBeNull();
    for (const { key } of [old, rotated]) {
      expect((await apiOf(server.url, key).batch('tags', [newTag()])).http).toBe(200);
    }
  });

  it('does not extend a key that expires sooner', async () => {
    const { key_id } = await issue('acme', '--expires', '1h');
    const { expires_at } = await listed(key_id);
    await commands.run('keys', 'rotate', key_id, '--grace', '24h');
    expect((await listed(key_id)).expires_at).toBe(expires_at);
  });

  it('expires if it is given an expiry, and otherwise the command states that it never does', async () => {
    const { key_id } = await issue('acme', '--expires', '30d');
    const { stdout } = await attempt('keys', 'rotate', key_id);
    expect(stdout).toMatch(
      /The new key never expires \(--expires sets an end\); the old one works for 24h more/,
    );
    const rotated = JSON.parse(await commands.run('keys', 'rotate', key_id, '--expires', '60d', '--json'));
    expect(Math.abs(Date.parse(rotated.expires_at) - Date.now() - 60 * 86_400_000)).toBeLessThan(60_000);
    expect(await listed(rotated.key_id)).toMatchObject({ expires_at: rotated.expires_at });
    const said = await attempt('keys', 'rotate', rotated.key_id, '--expires', '2199-12-31T00:00:00Z');
    expect(said.stdout).toContain('The new key expires 2199-12-31T00:00:00.000Z');
    const past = await attempt('keys', 'rotate', key_id, '--expires', '2020-01-01T00:00:00Z');
    expect([past.exitCode, past.stdout]).toEqual([1, '']);
    expect(past.stderr).toContain('2020-01-01');
  });

  it('replaces it within seconds without a grace', async () => {
    const old = await issue('acme');
    expect(await use(old.key)).toBe(200);
    const { key } = JSON.parse(await commands.run('keys', 'rotate', old.key_id, '--grace', '0s', '--json'));
    expect(await use(key)).toBe(200);
    await expect.poll(() => use(old.key)).toBe(401);
  });

  it('is not issued for an expired key', async () => {
    const { key_id } = await issue('acme');
    await commands.run('keys', 'revoke', key_id);
    const { exitCode, stderr } = await attempt('keys', 'rotate', key_id);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(key_id);
  });
});

describe('a suspended organisation', () => {
  const calls: [string, (api: Api) => ReturnType<Api['get']>][] = [
    ['an upload', (api) => api.upload('tags', [newTag()])],
    ['a list of records', (api) => api.get('/v1/data/tags')],
    ['an interaction', (api) => api.post('/user-interactions', {})],
    ['receipts', (api) => api.get('/v1/requests')],
    ['an unknown address', (api) => api.get('/nowhere')],
  ];

  it('gets 403 within seconds, with every key, and works again as quickly', async () => {
    const keys = [await server.createKey('paused'), await server.createKey('paused', 'data:read')];
    const other = await server.createKey('busy');
    const revoked = await issue('paused');
    await commands.run('keys', 'revoke', revoked.key_id);
    const apis = keys.map((key) => apiOf(server.url, key));
    for (const api of apis) expect((await api.get('/v1/data/tags')).status).toBe(200);

    await commands.run('organisations', 'suspend', 'paused');
    const statuses = () => Promise.all(apis.map(async (api) => (await api.get('/v1/data/tags')).status));
    await expect.poll(statuses).toEqual([403, 403]);
    for (const [what, call] of calls) {
      const answer = await call(apis[0]!);
      expectError(answer, 403);
      expect(answer.body.message, what).toMatch(/suspended/);
    }
    const fresh = await issue('paused');
    expect(await use(fresh.key)).toBe(403);
    expect(await use(revoked.key)).toBe(401);
    expect((await apiOf(server.url, other).get('/v1/data/tags')).status).toBe(200);

    await commands.run('organisations', 'resume', 'paused');
    await expect.poll(statuses).toEqual([200, 200]);
    expect((await apis[0]!.batch('tags', [newTag()])).http).toBe(200);
  });

  it('stores nothing', async () => {
    const api = apiOf(server.url, await server.createKey('still'));
    const tag = newTag();
    await commands.run('organisations', 'suspend', 'still');
    await expect.poll(async () => (await api.get('/v1/data/tags')).status).toBe(403);
    expectError(await api.upload('tags', [tag]), 403);
    expect(await countStored(server.databaseUrl, 'tags', 'tag_id', [tag.tag_id])).toBe(0);
  });

  it('is listed as such, since the first time it was suspended', async () => {
    await server.createKey('listed');
    const suspendedAt = async () => {
      const all: { slug: string; suspended_at: string | null }[] = JSON.parse(
        await commands.run('organisations', 'list', '--json'),
      );
      return all.find(({ slug }) => slug === 'listed')!.suspended_at;
    };
    expect(await suspendedAt()).toBeNull();
    await commands.run('organisations', 'suspend', 'listed');
    const first = await suspendedAt();
    expect(Math.abs(Date.parse(first!) - Date.now())).toBeLessThan(60_000);
    expect(await commands.run('organisations', 'list')).toMatch(/^listed\t.*suspended/m);
    await attempt('organisations', 'suspend', 'listed');
    expect(await suspendedAt()).toBe(first);
    await commands.run('organisations', 'resume', 'listed');
    expect(await suspendedAt()).toBeNull();
  });

  it.each(['suspend', 'resume'])('has to exist for %s', async (act) => {
    const { exitCode, stderr } = await attempt('organisations', act, 'nobody');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/"nobody".*organisations list/);
  });
});
