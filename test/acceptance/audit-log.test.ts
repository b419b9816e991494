import { createHash } from 'node:crypto';
import { userInfo } from 'node:os';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { linesOf } from '../support/lines-of.ts';
import { runCommand } from '../support/run-command.ts';

/** The append-only log of operator actions records who did what, and when. */

interface Entry {
  readonly audit_id: string | number;
  readonly at: string;
  readonly actor: string;
  readonly act: string;
  readonly organisation: string | null;
  readonly key_id: string | null;
  readonly request_id: string | null;
  readonly details: unknown;
  readonly imported_at: string | null;
}

let databaseUrl: string;
let database: pg.Client;
let began: number;
/** The organisation's first key. */
let issued: { key: string; key_id: string };
let successor: { key: string; key_id: string };
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  began = Date.now();
  await run('organisations', 'create', 'acme', '--name', 'Acme');
  issued = JSON.parse(await run('keys', 'issue', '--organisation', 'acme', '--label', 'till', '--json'));
  successor = JSON.parse(await run('keys', 'rotate', issued.key_id, '--grace', '1h', '--json'));
  await run('keys', 'revoke', issued.key_id);
  await run('organisations', 'limit', 'acme', '--requests-per-second', '7');
  await run('organisations', 'suspend', 'acme');
  await run('organisations', 'resume', 'acme');
  await run('organisations', 'set-report', 'acme', 'on');
  await run('organisations', 'set-lake', 'acme', 'on');
});
afterAll(() => database.end());

const attempt = (...args: string[]) => runCommand(args, { DATABASE_URL: databaseUrl });
async function run(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await attempt(...args);
  expect({ args, exitCode, stderr }).toEqual({ args, exitCode: 0, stderr: '' });
  return stdout;
}
const audit = async (...flags: string[]): Promise<Entry[]> => linesOf(await run('audit', '--json', ...flags));

describe('every act', () => {
  it('is in the log in order, with the actor, the organisation and the time', async () => {
    const entries = (await audit('--organisation', 'acme')).toReversed();
    expect(entries.map(({ act }) => act)).toEqual([
      'organisation.create',
      'key.issue',
      'key.rotate',
      'key.revoke',
      'organisation.limit',
      'organisation.suspend',
      'organisation.resume',
      'organisation.report',
      'organisation.lake',
    ]);
    for (const entry of entries) {
      expect(Object.keys(entry).toSorted()).toEqual(
        [
          ...['act', 'actor', 'at', 'audit_id', 'details'],
          ...['imported_at', 'key_id', 'organisation', 'request_id'],
        ].toSorted(),
      );
      expect(entry).toMatchObject({
        actor: `cli:${userInfo().username}`,
        organisation: 'acme',
        request_id: null,
        imported_at: null,
      });
    }
    const [, issue, rotate, revoke, limit] = entries;
    expect([issue!.key_id, revoke!.key_id]).toEqual([issued.key_id, issued.key_id]);
    expect(rotate!.key_id).not.toBeNull();
    for (const { key_id } of [issued, successor]) expect(JSON.stringify(rotate)).toContain(key_id);
    expect(JSON.stringify(limit!.details)).toMatch(/requests_per_second.*7/);
    const times = entries.map(({ at }) => Date.parse(at));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times[0]).toBeGreaterThanOrEqual(began - 1);
    expect(times.at(-1)).toBeLessThanOrEqual(Date.now());
    expect(new Set(entries.map(({ audit_id }) => audit_id)).size).toBe(entries.length);
  });

  it('is logged without any key', async () => {
    const { rows } = await database.query<{ line: string }>('select a::text as line from audit_log a');
    const text = JSON.stringify(await audit()) + rows.map(({ line }) => line).join('\n');
    for (const { key, key_id } of [issued, successor]) {
      expect(text).toContain(key_id);
      expect(text).not.toContain(key.split('_')[2]);
      expect(text).not.toContain(createHash('sha256').update(key).digest('hex'));
    }
    expect(text).not.toContain('intake_');
  });

  it('that was refused is not logged', async () => {
    await run('organisations', 'create', 'refused');
    const before = await audit();
    const refused = [
      ['organisations', 'create', 'refused'],
      ['organisations', 'suspend', 'nobody'],
      ['organisations', 'limit', 'nobody', '--requests-per-second', '7'],
      ['organisations', 'limit', 'refused', '--requests-per-second', '-7'],
      ['keys', 'issue', '--organisation', 'nobody'],
      ['keys', 'issue', '--organisation', 'refused', '--scope', 'data:delete'],
      ['keys', 'rotate', '0Qm3xYb7ZkA'],
      ['keys', 'revoke', '0Qm3xYb7ZkA'],
    ];
    for (const args of refused) expect((await attempt(...args)).exitCode, args.join(' ')).toBe(1);
    await run('organisations', 'limit', 'refused');
    await run('keys', 'list');
    expect(await audit()).toEqual(before);
  });

  it('that cannot be logged is not done', async () => {
    await run('organisations', 'create', 'unheard');
    const { key_id } = JSON.parse(await run('keys', 'issue', '--organisation', 'unheard', '--json'));
    await database.query('alter table audit_log add constraint deaf check (false) not valid');
    try {
      expect((await attempt('keys', 'revoke', key_id)).exitCode).toBe(1);
      expect((await attempt('keys', 'rotate', key_id)).exitCode).toBe(1);
      expect((await attempt('keys', 'issue', '--organisation', 'unheard')).exitCode).toBe(1);
      expect((await attempt('organisations', 'suspend', 'unheard')).exitCode).toBe(1);
      expect((await attempt('organisations', 'create', 'unheard-of')).exitCode).toBe(1);
    } finally {
      await database.query('alter table audit_log drop constraint deaf');
    }
    const keys = JSON.parse(await run('keys', 'list', '--organisation', 'unheard', '--json'));
    expect(keys).toMatchObject([{ key_id, revoked_at: null, expires_at: null }]);
    const all: { slug: string; suspended_at: string | null }[] = JSON.parse(
      await run('organisations', 'list', '--json'),
    );
    expect(all.find(({ slug }) => slug === 'unheard')).toMatchObject({ suspended_at: null });
    expect(all.find(({ slug }) => slug === 'unheard-of')).toBeUndefined();
  });
});

describe('the log', () => {
  it.each([
    "update audit_log set actor = 'nobody'",
    "update audit_log set details = '{}' where act = 'key.revoke'",
    'delete from audit_log',
    "delete from audit_log where act = 'key.revoke'",
    'truncate audit_log',
    'truncate audit_log restart identity cascade',
  ])('cannot be changed, even by its owner: %s', async (statement) => {
    const contents = async () =>
      (await database.query<{ line: string }>('select a::text as line from audit_log a order by 1')).rows;
    const before = await contents();
    expect(before.length).toBeGreaterThan(0);
    await expect(database.query(statement)).rejects.toThrow(/audit_log|audit log/);
    expect(await contents()).toEqual(before);
  });

  it('stays when its subject is removed', async () => {
    const count = async () =>
      (await database.query<{ count: string }>('select count(*) from audit_log')).rows[0]!.count;
    const before = await count();
    for (const statement of ['truncate organisations cascade', 'delete from api_keys']) {
      await database.query('begin');
      const after = await database.query(statement).then(count, () => 'refused');
      await database.query('rollback');
      expect([before, 'refused']).toContain(after);
    }
  });

  it('is shown newest first, up to the limit', async () => {
    await run('organisations', 'create', 'newest');
    const all = await audit('--limit', '1000');
    expect(all[0]).toMatchObject({ act: 'organisation.create', organisation: 'newest' });
    expect(await audit('--limit', '2')).toEqual(all.slice(0, 2));
    expect(await audit('--organisation', 'acme')).toEqual(
      all.filter(({ organisation }) => organisation === 'acme'),
    );
    const lines = (await run('audit', '--organisation', 'acme')).trim().split('\n');
    expect(lines).toHaveLength(10);
    expect(lines[0]).toBe('AT\tACTOR\tACT\tORGANISATION\tKEY ID\tDETAILS');
    expect(lines[1]).toMatch(/organisation\.lake/);
    expect(lines.at(-1)).toMatch(/organisation\.create/);
  });

  it('is filtered by actor, action, organisation and time, without a cap', async () => {
    const all = await audit('--limit', '1000000');
    const [newest, oldest] = [all[0]!.at, all.at(-1)!.at];
    const matching = async (flags: string[], isWanted: (entry: Entry) => boolean) => {
      const wanted = all.filter(isWanted);
      expect(wanted.length).toBeGreaterThan(0);
      expect(await audit(...flags, '--since', '2020-01-01')).toEqual(wanted);
    };
    await matching(['--action', 'key'], ({ act }) => act.startsWith('key.'));
    await matching(
      ['--action', 'key.revoke', '--organisation', 'acme'],
      (entry) => entry.act === 'key.revoke',
    );
    await matching(['--actor', `cli:${userInfo().username}`], () => true);
    await matching(['--until', newest], ({ at }) => at < newest);
    expect(await audit('--since', newest)).toEqual(all.filter(({ at }) => at >= newest));
    expect(await audit('--actor', 'nobody', '--since', '1h')).toEqual([]);
    expect(await audit('--until', oldest)).toEqual([]);
  });

  it('shows a hundred by default', async () => {
    await run('organisations', 'create', 'long');
    await database.query(
      `insert into audit_log (actor, act, organisation_id, details)
       select actor, act, organisation_id, details from (select * from audit_log limit 1) one,
         generate_series(1, 120)`,
    );
    expect(await audit()).toHaveLength(100);
    expect((await audit('--limit', '110')).length).toBe(110);
    await database.query(
      `insert into audit_log (actor, act, details) select 'many', 'test', '{}' from generate_series(1, 3000)`,
    );
    const many = await audit('--since', '1d', '--actor', 'many');
    expect(new Set(many.map(({ audit_id }) => audit_id)).size).toBe(3_000);
  });

  it.each([
    ['--limit', '0'],
    ['--limit', 'many'],
    ['--organisation', 'nobody'],
    ['--colour'],
    ['--since', 'yesterday'],
  ])('is refused with %j', async (...flags) => {
    const { exitCode, stdout, stderr } = await attempt('audit', ...flags);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/limit|organisations list|colour|--since takes/);
  });

  it('is explained', async () => {
    const { exitCode, stdout } = await runCommand(['audit', '--help'], {});
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/audit .*--organisation/);
  });
});
