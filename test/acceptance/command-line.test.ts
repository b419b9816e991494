import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltServer, sharedServer, startBuiltServer } from '../support/built-server.ts';
import { createEmptyDatabase, createTestDatabase } from '../support/database.ts';
import { expectReady } from '../support/ready.ts';
import { type CommandResult, runCommand } from '../support/run-command.ts';

/** Tests command-line input and output, and the messages about invalid settings. */

let databaseUrl: string;
const awayUrl = 'postgres://intake:hush@127.0.0.1:1/intake';
const run = (...args: string[]) => runCommand(args, { DATABASE_URL: databaseUrl });
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  await run('organisations', 'create', 'acme', '--name', 'Acme Student Discounts');
});

/** Checks that the failure is helpful: one line with the problem and a fix that matches `help`, and no stack trace. */
function expectFailure({ exitCode, stdout, stderr }: CommandResult, help: RegExp) {
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(help);
  expect(stderr.trim().split('\n')).toHaveLength(1);
  expect(stderr).not.toMatch(/^\s+at /m);
}

describe('organisations', () => {
  it('are created once, and listed', async () => {
    const created = await run('organisations', 'create', 'new-one');
    expect(created).toMatchObject({ exitCode: 0, stderr: '' });
    expect(created.stdout).toMatch(/new-one/);
    expectFailure(await run('organisations', 'create', 'new-one'), /"new-one" already exists/);
    const { stdout } = await run('organisations', 'list');
    expect(stdout).toMatch(/^SLUG\tNAME\tCREATED\tSTATE\tRETENTION\n/);
    expect(stdout).toMatch(/^acme\tAcme Student Discounts\t/m);
    expect(stdout).toMatch(/^new-one\tnew-one\t/m);
    expect(JSON.parse((await run('organisations', 'list', '--json')).stdout)).toContainEqual(
      expect.objectContaining({ slug: 'acme', name: 'Acme Student Discounts' }),
    );
  });

  it('have a retention that is set, shown and switched off, and nothing else changes', async () => {
    const retain = (...flags: string[]) => run('organisations', 'set-retention', 'kept', ...flags);
    await run('organisations', 'create', 'kept');
    expect((await retain()).stdout).toBe(
      'TYPE\tKEPT\tFROM\ninteractions\tindefinitely\tdefault\n' +
        'receipts\tdefault\tRECEIPTS_KEPT_DAYS of the service\nrejections\tdefault\tRECEIPTS_KEPT_DAYS of the service\n',
    );
    const own = 'set for this organisation';
    expect(await retain('--interactions', '90d', '--receipts', '14d', '--rejections', '7d')).toMatchObject({
      exitCode: 0,
      stderr: '',
      stdout: `TYPE\tKEPT\tFROM\ninteractions\t90d\t${own}\nreceipts\t14d\t${own}\nrejections\t7d\t${own}\n`,
    });
    const { stdout } = await run('organisations', 'list');
    expect(stdout).toMatch(/^kept\t.*\tactive\tinteractions 90d, receipts 14d, rejections 7d$/m);
    expect(stdout).toMatch(/^acme\t.*\tactive\toff$/m);
    expect(JSON.parse((await retain('--receipts', 'off', '--json')).stdout)).toMatchObject({
      slug: 'kept',
      interactions_kept_days: 90,
      receipts_kept_days: null,
      rejections_kept_days: 7,
    });
  });

  it.each([
    ['a period that is not in days', ['acme', '--interactions', '12h'], /whole number of days.*"12h"/],
    ['no day at all', ['acme', '--interactions', '0d'], /from 1 to 3650/],
    ['longer than the service', ['acme', '--receipts', '31d'], /at most 30 days.*RECEIPTS_KEPT_DAYS/],
    ['longer than the service', ['acme', '--rejections', '31d'], /at most 30 days.*RECEIPTS_KEPT_DAYS/],
    ['a type of records', ['acme', '--shops', '30d'], /--shops.*other records may refer to them/],
    ['an organisation that does not exist', ['nobody', '--interactions', '90d'], /"nobody"/],
    ['no organisation', ['--interactions', '90d'], /slug/],
  ])('cannot set a retention with %s', async (_, args, help) => {
    expectFailure(await run('organisations', 'set-retention', ...args), help);
  });

  it('can switch on the report only if they exist', async () => {
    expectFailure(await run('organisations', 'set-report', 'nobody', 'on'), /"nobody"/);
  });

  it('can switch their lake on and off', async () => {
    expectFailure(await run('organisations', 'set-lake', 'nobody', 'on'), /"nobody"/);
    const lakeOf = async (slug: string) =>
      JSON.parse((await run('organisations', 'limit', slug, '--json')).stdout).lake;
    expect(await lakeOf('acme')).toBe(false);
    expect((await run('organisations', 'set-lake', 'acme', 'on')).stdout).toMatch(/lake of acme on/);
    expect(await lakeOf('acme')).toBe(true);
    expect((await run('organisations', 'set-lake', 'acme', 'off')).stdout).toMatch(/lake of acme off/);
    expect(await lakeOf('acme')).toBe(false);
  });

  it('are not written to a lake without an address, or that is not writable', async () => {
    expectFailure(await run('lake'), /LAKE_URL is missing/);
    const env = { DATABASE_URL: databaseUrl, LAKE_URL: 'file:///dev/null/lake', LOG_LEVEL: 'silent' };
    expectFailure(await runCommand(['lake'], env), /file:\/\/\/dev\/null\/lake cannot be written/);
  });
});

describe('keys', () => {
  const issue = async (...flags: string[]) => {
    const { exitCode, stdout } = await run('keys', 'issue', '--organisation', 'acme', '--json', ...flags);
    expect(exitCode).toBe(0);
    return JSON.parse(stdout);
  };

  it('are issued for people: the key, shown once, and its permissions', async () => {
    const { exitCode, stdout } = await run(
      'keys',
      'issue',
      '--organisation',
      'acme',
      '--scope',
      'data:write:shops',
    );
    expect(exitCode).toBe(0);
    expect(stdout.match(/intake_\w+/g)).toHaveLength(1);
    expect(stdout).toContain('data:write:shops');
  });

  it('are issued for programs', async () => {
    expect(await issue()).toEqual({
      key_id: expect.any(String),
      key: expect.stringMatching(/^intake_/),
      organisation: 'acme',
      permissions: ['data:write', 'data:read', 'interactions:write', 'interactions:read'],
      browser: false,
      origins: [],
      link: false,
      label: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      created_by: expect.stringMatching(/^cli:./),
      last_used_at: null,
      expires_at: null,
      revoked_at: null,
      successor_of: null,
    });
    expect((await issue('--scope', 'data:read', '--scope', 'data:write:tags')).permissions).toEqual([
      'data:read',
      'data:write:tags',
    ]);
  });

  it('are listed without their secrets, active or revoked', async () => {
    const [active, revoked] = [await issue(), await issue()];
    expect((await run('keys', 'revoke', revoked.key_id)).stdout).toContain(revoked.key_id);
    const { stdout } = await run('keys', 'list', '--organisation', 'acme');
    expect(stdout).toMatch(/^KEY ID\tORGANISATION\tPERMISSIONS\tISSUED\tSTATE\tLAST USED\tLABEL\n/);
    expect(stdout).toMatch(new RegExp(`^${active.key_id}\tacme\t.*\tactive\tnever used$`, 'm'));
    expect(stdout).toMatch(new RegExp(`^${revoked.key_id}\tacme\t.*\trevoked `, 'm'));
    expect(stdout).not.toContain('intake_');
    const listed = JSON.parse((await run('keys', 'list', '--json')).stdout);
    expect(listed).toContainEqual(expect.objectContaining({ key_id: active.key_id, revoked_at: null }));
  });

  it('are revoked once and keep that time', async () => {
    const { key_id } = await issue();
    const revokedAt = async () => {
      expect((await run('keys', 'revoke', key_id)).exitCode).toBe(0);
      const listed = JSON.parse((await run('keys', 'list', '--json')).stdout);
      return listed.find((one: { key_id: string }) => one.key_id === key_id).revoked_at;
    };
    expect(await revokedAt()).toBe(await revokedAt());
  });

  it.each([
    [
      'an organisation that does not exist',
      ['issue', '--organisation', 'nobody'],
      /"nobody".*organisations list/,
    ],
    ['a list of nobody’s keys', ['list', '--organisation', 'nobody'], /"nobody".*organisations list/],
    ['an unknown key', ['revoke', '0Qm3xYb7ZkA'], /0Qm3xYb7ZkA.*keys list/],
  ])('are not issued with %s', async (_what, args, help) => {
    expectFailure(await run('keys', ...args), help);
  });

  it('are revoked by their id: the key itself is refused, and not repeated', async () => {
    const key = 'intake_0Qm3xYb7ZkA_secret';
    const refused = await run('keys', 'revoke', key);
    expectFailure(refused, /id/);
    expect(refused.stderr).not.toContain(key);
  });
});

it('a misspelt permission gets a list of all of them', async () => {
  const refused = await run('keys', 'issue', '--organisation', 'acme', '--scope', 'data:wrt');
  const all = [
    'data:write',
    'data:read',
    'interactions:write',
    'interactions:read',
    'data:erase',
    'data:access',
  ];
  for (const permission of all) expectFailure(refused, new RegExp(`\\b${permission}\\b`));
});

it('a list whose reader closes the pipe ends without a stack trace', async () => {
  const main = new URL('../../dist/main.js', import.meta.url).pathname;
  const child = spawn(process.execPath, [main, 'organisations', 'list'], {
    env: { DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  let said = '';
  child.stderr.on('data', (bytes) => {
    said += bytes;
  });
  const [exitCode] = await once(child, 'close');
  expect({ exitCode, said }).toEqual({ exitCode: 141, said: '' });
});

describe('help', () => {
  it.each([
    [['--help'], /Usage/],
    [['--version'], /^\d+\.\d+\.\d+(-dev)?\+[\w-]+\n$/],
    [[], /Usage/],
    [['help', 'settings'], /^ {2}DATABASE_URL .*\n(.*\n)* {2}LOG_LEVEL /m],
    [['serve', '--help'], /intake-server serve/],
    [['keys', 'issue', '--help'], /keys issue/],
  ] as [string[], RegExp][])('%j works without any settings', async (args, expected) => {
    const { exitCode, stdout, stderr } = await runCommand(args, {});
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(expected);
  });

  it('of a command without arguments names the setting to use instead, and repeats no value', async () => {
    const refused = await run('serve', '--database-url=postgres://a:hush@b/c');
    expectFailure(refused, /: DATABASE_URL=\.\.\. intake-server serve$/m);
    expect(refused.stderr).not.toContain('hush');
  });

  it('is mentioned for an unknown command', async () => {
    expectFailure(await run('server'), /"server".*Did you mean serve\?.*--help/);
    expectFailure(await run('__proto__', '--help'), /"__proto__"\. intake-server --help/);
    expectFailure(await run('help', 'organisation'), /Did you mean organisations\?/);
  });

  it('is mentioned for an unknown option', async () => {
    const { exitCode, stderr } = await run('audit', '--colour', 'red');
    expect([exitCode, stderr.trim()]).toEqual([
      1,
      "intake-server: Unknown option '--colour'; run intake-server audit --help for its options",
    ]);
  });
});

describe('settings', () => {
  it('that are wrong are each named, with the expected value', async () => {
    const { exitCode, stdout, stderr } = await runCommand(['serve'], {
      DATABASE_URL: 'mysql://a:hush@b/c',
      PORT: 'abc',
      HOST: '0.0.0.0',
      DATABASE_CONNECTIONS_MAX: '0',
      DATABASE_TIMEOUT_MS: '1s',
      RECORDS_PER_REQUEST_MAX: '-1',
      REQUESTS_PER_SECOND_MAX: '1e3',
      BODY_BYTES_MAX: '32MB',
      LOG_LEVEL: 'loud',
      API_REFERENCE: 'maybe',
      TLS_CERT_FILE: '/nonexistent/tls.pem',
    });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    for (const line of [
      /DATABASE_URL .*postgres:\/\//,
      /PORT must be a whole number/,
      /HOST .*TLS_CERT_FILE.*TRUSTED_PROXY/,
      /DATABASE_CONNECTIONS_MAX must be a whole number from 1/,
      /DATABASE_TIMEOUT_MS must be a whole number/,
      /RECORDS_PER_REQUEST_MAX must be a whole number/,
      /REQUESTS_PER_SECOND_MAX must be a whole number/,
      /BODY_BYTES_MAX must be a whole number/,
      /LOG_LEVEL must be one of .*info/,
      /API_REFERENCE must be one of on, off/,
      /TLS_KEY_FILE is missing/,
    ])
      expect(stderr).toMatch(line);
    expect(stderr, 'no stack').not.toMatch(/\bat .+:\d+/);
    expect(stderr, 'no password').not.toContain('hush');
  });

  it('39: listening without encryption beyond loopback is refused', async () => {
    const env = { DATABASE_URL: awayUrl, PORT: '0', HOST: '0.0.0.0' };
    const { exitCode, stderr } = await runCommand(['serve'], env);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/HOST .*TLS_CERT_FILE.*TLS_KEY_FILE.*TRUSTED_PROXY/);
  });

  it('a port that is taken is named', async () => {
    const { port } = new URL((await sharedServer()).url);
    const admin = { ADMIN_DATABASE_URL: databaseUrl, ADMIN_PORT: '0' };
    for (const more of [{}, admin]) {
      const env = { DATABASE_URL: databaseUrl, PORT: port, ...more };
      const { exitCode, stderr } = await runCommand(['serve'], env);
      expect(exitCode).toBe(1);
      expect(stderr).toContain(port);
      expect(stderr, 'no stack').not.toMatch(/\bat .+:\d+/);
    }
  });
});

it('wrong settings for serving do not prevent revoking a key', async () => {
  const { stdout } = await run('keys', 'issue', '--organisation', 'acme', '--json');
  const env = { DATABASE_URL: databaseUrl, HOST: '0.0.0.0', PORT: 'abc', TLS_CERT_FILE: '/nonexistent' };
  const revoked = await runCommand(['keys', 'revoke', JSON.parse(stdout).key_id], env);
  expect(revoked).toMatchObject({ exitCode: 0, stderr: '' });
});

describe('the database', () => {
  let server: BuiltServer | undefined;
  afterAll(() => server?.stop());

  it('that is unavailable is reported as such, without its password', async () => {
    const result = await runCommand(['organisations', 'list'], { DATABASE_URL: awayUrl });
    expectFailure(result, /127\.0\.0\.1:1 cannot be reached.*DATABASE_URL/);
    expect(result.stderr).not.toContain('hush');
  });

  it('without a schema is not served until it is migrated, which can be repeated', async () => {
    const env = { DATABASE_URL: await createEmptyDatabase(), PORT: '0' };
    expectFailure(await runCommand(['serve'], env), /intake-server migrate/);
    expectFailure(await runCommand(['organisations', 'list'], env), /intake-server migrate/);
    for (const said of [/applied/, /already/]) {
      const { exitCode, stdout } = await runCommand(['migrate'], env);
      expect(exitCode).toBe(0);
      expect(stdout).toMatch(said);
    }
    server = await startBuiltServer(env);
    await expectReady(server.url);
  });
});
