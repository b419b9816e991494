// @module-tag long

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createEmptyDatabase, createTestDatabase } from '../support/database.ts';
import { expectReady } from '../support/ready.ts';
import { type CommandResult, runCommand } from '../support/run-command.ts';

/** What an operator types, what it answers, and how it says that a setting is wrong. */

let databaseUrl: string;
const awayUrl = 'postgres://intake:hush@127.0.0.1:1/intake';
const run = (...args: string[]) => runCommand(args, { DATABASE_URL: databaseUrl });
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  await run('organisations', 'create', 'acme', '--name', 'Acme Student Discounts');
});

/** A failure that helps: one line that says what is wrong and, matching `help`, what to do; no stack. */
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
    expectFailure(await run('organisations', 'create', 'new-one'), /"new-one" exists already/);
    const { stdout } = await run('organisations', 'list');
    expect(stdout).toMatch(/^SLUG\tNAME\tCREATED\tSTATE\n/);
    expect(stdout).toMatch(/^acme\tAcme Student Discounts\t/m);
    expect(stdout).toMatch(/^new-one\tnew-one\t/m);
  });

  it('are listed for programs', async () => {
    const { stdout } = await run('organisations', 'list', '--json');
    expect(JSON.parse(stdout)).toContainEqual(
      expect.objectContaining({ slug: 'acme', name: 'Acme Student Discounts' }),
    );
  });

  it.each([[], ['Acme'], ['-acme'], ['a'.repeat(64)], ['one', 'two']])(
    'are not created as %j',
    async (...slugs) => {
      expectFailure(await run('organisations', 'create', '--', ...slugs), /slug/);
    },
  );

  it('say what they take', async () => {
    expectFailure(await run('organisations'), /create, list/);
    for (const args of [[], ['acme'], ['acme', 'yes'], ['acme', 'on', 'off']])
      expectFailure(await run('organisations', 'set-report', ...args), /set-report acme on/);
    expectFailure(await run('organisations', 'set-report', 'nobody', 'on'), /"nobody"/);
    expectFailure(await run('organisations', 'remove', 'acme'), /create, list/);
    expectFailure(await run('organisations', 'list', '--colour'), /colour/);
  });
});

describe('keys', () => {
  const issue = async (...flags: string[]) => {
    const { exitCode, stdout } = await run('keys', 'issue', '--organisation', 'acme', '--json', ...flags);
    expect(exitCode).toBe(0);
    return JSON.parse(stdout);
  };

  it('are issued for people: the key, shown once, and what it may do', async () => {
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

  it('are revoked once and stay revoked from then', async () => {
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
    ['no organisation', ['issue'], /--organisation/],
    ['no origin', ['issue', '--organisation', 'acme', '--browser'], /--origin https:/],
    [
      'an origin alone',
      ['issue', '--organisation', 'acme', '--origin', 'https://shop.example'],
      /--browser --origin/,
    ],
    [
      'an address for an origin',
      ['issue', '--organisation', 'acme', '--browser', '--origin', 'https://shop.example/'],
      /--origin .*no slash at the end/,
    ],
    [
      'a browser key with permissions',
      [
        'issue',
        '--organisation',
        'acme',
        '--browser',
        '--origin',
        'https://a.example',
        '--scope',
        'data:read',
      ],
      /--scope/,
    ],
    [
      'an unknown scope',
      ['issue', '--organisation', 'acme', '--scope', 'data:raed'],
      /"data:raed".*data:read, data:write, .*data:write:<type>/,
    ],
    [
      'a scope of an unknown type',
      ['issue', '--organisation', 'acme', '--scope', 'data:write:shop'],
      /"data:write:shop" is no permission, for there is no type "shop"; the types are shops, .*student-favourites/,
    ],
    [
      'a scope of nothing',
      ['issue', '--organisation', 'acme', '--scope', 'data:write:'],
      /data:write:<type>/,
    ],
    ['an empty scope', ['issue', '--organisation', 'acme', '--scope', ''], /permission/],
    ['a list of nobody’s keys', ['list', '--organisation', 'nobody'], /"nobody".*organisations list/],
    ['an unknown key', ['revoke', '0Qm3xYb7ZkA'], /0Qm3xYb7ZkA.*keys list/],
    ['no key', ['revoke'], /key-id/],
    ['two keys', ['revoke', 'a', 'b'], /one key/],
    ['a flag that is not one', ['issue', '--organization', 'acme'], /organization/],
    ['no action', [], /issue, list, rotate or revoke/],
    ['an unknown action', ['forget'], /issue, list, rotate or revoke/],
  ])('are not to be had with %s', async (_what, args, help) => {
    expectFailure(await run('keys', ...args), help);
  });

  it('are revoked by their id: the key itself is refused, and not repeated', async () => {
    const { key } = await issue();
    const refused = await run('keys', 'revoke', key);
    expectFailure(refused, /id/);
    expect(refused.stderr).not.toContain(key);
  });
});

describe('help', () => {
  it.each([
    [['--help'], /Usage/],
    [['--version'], /^\d+\.\d+\.\d+\n$/],
    [[], /Usage/],
    [['help'], /Usage/],
    [['help', 'settings'], /^ {2}DATABASE_URL .*\n(.*\n)* {2}LOG_LEVEL /m],
    [['help', 'keys'], /keys issue/],
    [['serve', '--help'], /intake-server serve/],
    [['migrate', '--help'], /intake-server migrate/],
    [['organisations', '--help'], /organisations create/],
    [['organisations', 'create', '--help'], /organisations create/],
    [['keys', '--help'], /keys issue/],
    [['keys', 'issue', '--help'], /keys issue/],
  ] as [string[], RegExp][])('%j is answered without any settings', async (args, expected) => {
    const { exitCode, stdout, stderr } = await runCommand(args, {});
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(expected);
  });

  it.each([
    ['serve', '--port', '9000', /takes no arguments.*: PORT=\.\.\. intake-server serve$/],
    ['serve', '--database-url=postgres://a:hush@b/c', '', /: DATABASE_URL=\.\.\. intake-server serve$/],
    ['serve', '--colour', 'red', /takes no arguments.*intake-server help settings lists them$/],
    ['migrate', '--log-level', 'debug', /: LOG_LEVEL=\.\.\. intake-server migrate$/],
    ['dev', '--port', '9000', /: PORT=\.\.\. npm run dev$/],
  ])('%s %s %s names the setting in its place, and repeats no value', async (command, flag, value, help) => {
    const refused = await run(command, flag, ...(value === '' ? [] : [value]));
    expectFailure({ ...refused, stderr: refused.stderr.trim() }, help);
    expect(refused.stderr).not.toMatch(/hush|9000/);
  });

  it('is pointed to by a command that does not exist', async () => {
    for (const flags of [[], ['--help'], ['-h']]) {
      expectFailure(await run('server', ...flags), /"server".*Did you mean serve\?.*--help/);
      expectFailure(await run('__proto__', ...flags), /"__proto__"\. intake-server --help/);
    }
    expectFailure(await run('help', 'organisation'), /Did you mean organisations\?/);
  });

  it('in general lists every command on one screen, and no setting but the required one', async () => {
    const { stdout } = await runCommand(['--help'], {});
    const commands = stdout.match(/^ {2}[a-z-]+ {2}/gm)?.map((name) => name.trim()) ?? [];
    for (const command of commands)
      expect((await runCommand([command, '--help'], {})).stdout).toContain(`intake-server ${command}`);
    expect(commands.length).toBeGreaterThan(9);
    expect(stdout.split('\n').length).toBeLessThanOrEqual(24);
    expect(stdout.match(/\b[A-Z]+_[A-Z_]+\b/g)).toEqual(['DATABASE_URL']);
  });

  it('is pointed to by an option that does not exist', async () => {
    const { exitCode, stderr } = await run('audit', '--colour', 'red');
    expect([exitCode, stderr.trim()]).toEqual([
      1,
      "intake-server: Unknown option '--colour'; intake-server audit --help shows what it takes",
    ]);
  });
});

describe('settings', () => {
  const missingFile = '/nonexistent/tls.pem';
  const wrong: { what: string; env: Record<string, string>; named: RegExp[] }[] = [
    {
      what: 'many at once',
      env: {
        DATABASE_URL: 'mysql://a:hush@b/c',
        PORT: 'abc',
        HOST: '0.0.0.0',
        DATABASE_CONNECTIONS_MAX: '0',
        DATABASE_TIMEOUT_MS: '1s',
        RECORDS_PER_REQUEST_MAX: '-1',
        COURSES_PER_REQUEST_MAX: '1e3',
        BODY_BYTES_MAX: '32MB',
        LOG_LEVEL: 'loud',
        API_REFERENCE: 'maybe',
        TLS_CERT_FILE: missingFile,
      },
      named: [
        /DATABASE_URL .*postgres:\/\//,
        /PORT must be a whole number/,
        /HOST .*TLS_CERT_FILE.*TRUSTED_PROXY/,
        /DATABASE_CONNECTIONS_MAX must be a whole number from 1/,
        /DATABASE_TIMEOUT_MS must be a whole number/,
        /RECORDS_PER_REQUEST_MAX must be a whole number/,
        /COURSES_PER_REQUEST_MAX must be a whole number/,
        /BODY_BYTES_MAX must be a whole number/,
        /LOG_LEVEL must be one of .*info/,
        /API_REFERENCE must be one of on, off/,
        /TLS_KEY_FILE is missing/,
      ],
    },
    {
      what: 'a limit of records that no full upload could pass',
      env: { DATABASE_URL: 'postgres://a@127.0.0.1:1/b', RECORDS_PER_SECOND_MAX: '100' },
      named: [/RECORDS_PER_SECOND_MAX must be 2500 or more/],
    },
    {
      what: 'others at once, one of them missing',
      env: { PORT: '70000', HOST: '::', TLS_KEY_FILE: missingFile },
      named: [
        /DATABASE_URL is missing.*postgres:\/\//,
        /PORT .*65535/,
        /HOST .*TLS_CERT/,
        /TLS_CERT_FILE is missing/,
      ],
    },
    {
      what: 'an address of the database that is none',
      env: { DATABASE_URL: 'postgres://[hush' },
      named: [/DATABASE_URL .*postgres:\/\//],
    },
    {
      what: 'a certificate that is not there',
      env: { DATABASE_URL: awayUrl, TLS_CERT_FILE: missingFile, TLS_KEY_FILE: missingFile },
      named: [/TLS_CERT_FILE/],
    },
    {
      what: 'a proxy that is no address',
      env: { DATABASE_URL: awayUrl, TRUSTED_PROXY: 'somewhere' },
      named: [/TRUSTED_PROXY/],
    },
    {
      what: 'a collector that is no address, and a sampler that does not exist',
      env: { DATABASE_URL: awayUrl, OTEL_EXPORTER_OTLP_ENDPOINT: 'somewhere', OTEL_TRACES_SAMPLER: 'ratio' },
      named: [/OTEL_EXPORTER_OTLP_ENDPOINT .*4318/, /OTEL_TRACES_SAMPLER must be one of .*traceidratio/],
    },
  ];

  it.each(wrong)('$what: each is named, with what it should be', async ({ env, named }) => {
    const { exitCode, stdout, stderr } = await runCommand(['serve'], { PORT: '0', ...env });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    for (const line of named) expect(stderr).toMatch(line);
    expect(stderr, 'no stack').not.toMatch(/\bat .+:\d+/);
    expect(stderr, 'no password').not.toContain('hush');
  });

  it.each(['0.0.0.0', '::', '192.0.2.1'])('39: listening in the clear on %s is refused', async (HOST) => {
    const { exitCode, stderr } = await runCommand(['serve'], { DATABASE_URL: awayUrl, PORT: '0', HOST });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/HOST .*TLS_CERT_FILE.*TLS_KEY_FILE.*TRUSTED_PROXY/);
  });

  it('a port that is taken is named', async () => {
    const server = await startBuiltServer({ DATABASE_URL: databaseUrl });
    try {
      const { port } = new URL(server.url);
      const admin = { ADMIN_DATABASE_URL: databaseUrl, ADMIN_PORT: '0' };
      for (const more of [{}, admin]) {
        const env = { DATABASE_URL: databaseUrl, PORT: port, ...more };
        const { exitCode, stderr } = await runCommand(['serve'], env);
        expect(exitCode).toBe(1);
        expect(stderr).toContain(port);
        expect(stderr, 'no stack').not.toMatch(/\bat .+:\d+/);
      }
    } finally {
      await server.stop();
    }
  });
});

it('what is wrong with serving does not keep a key from being revoked', async () => {
  const { stdout } = await run('keys', 'issue', '--organisation', 'acme', '--json');
  const env = { DATABASE_URL: databaseUrl, HOST: '0.0.0.0', PORT: 'abc', TLS_CERT_FILE: '/nonexistent' };
  const revoked = await runCommand(['keys', 'revoke', JSON.parse(stdout).key_id], env);
  expect(revoked).toMatchObject({ exitCode: 0, stderr: '' });
});

describe('the database', () => {
  let server: BuiltServer | undefined;
  afterAll(() => server?.stop());

  it('that is away is said to be, without its password', async () => {
    const result = await runCommand(['organisations', 'list'], { DATABASE_URL: awayUrl });
    expectFailure(result, /127\.0\.0\.1:1 cannot be reached.*DATABASE_URL/);
    expect(result.stderr).not.toContain('hush');
  });

  it('without a schema is not served until it is migrated, which can be done twice', async () => {
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
