// @module-tag full

import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { createEmptyDatabase, createTestDatabase } from '../support/database.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/** Tests the message that commands print about an unusable database: one sentence with the host, the port and the fix. */

const password = `hush-${randomBytes(8).toString('hex')}`;
/** A login that is not a member of any role, with a name that needs quoting. */
const login = `Stranger-${randomBytes(4).toString('hex')}`;
let databaseUrl: string;
let hostAndPort: string;

beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  hostAndPort = new URL(databaseUrl).host;
  await queryDatabase(databaseUrl, `create role "${login}" login password '${password}'`);
});

/** All operator commands open the database in the same way as `audit`. */
const commands = ['migrate', 'serve', 'audit'];

function changed(url: string, parts: Partial<Record<'username' | 'password' | 'host' | 'pathname', string>>) {
  return Object.assign(new URL(url), parts).href;
}

/** Runs the command on that database, and checks that it prints a single line without a stack trace or the password. */
async function sentenceOf(
  args: readonly string[],
  url: string,
  env: Record<string, string> = {},
): Promise<string> {
  const result = await runCommand(args, { DATABASE_URL: url, PORT: '0', LOG_LEVEL: 'silent', ...env });
  expect(result).toMatchObject({ exitCode: 1, stdout: '' });
  expect(result.stderr.trim().split('\n')).toHaveLength(1);
  expect(result.stderr).not.toMatch(/\bat .+:\d+:\d+/);
  expect(result.stderr).not.toContain(password);
  expect(result.stderr).not.toContain(new URL(databaseUrl).password);
  return result.stderr.trim();
}

describe.each(commands)('%s', (command) => {
  const args = command.split(' ');

  it('reports that the password is missing, and where to set it', async () => {
    const said = await sentenceOf(args, changed(databaseUrl, { password: '' }));
    expect(said).toContain(`DATABASE_URL has no password, and PostgreSQL at ${hostAndPort} requires one`);
    expect(said).toContain(`postgres://postgres:<password>@${hostAndPort}/`);
  });

  it('reports that the password is wrong', async () => {
    const said = await sentenceOf(args, changed(databaseUrl, { username: login, password: 'wrong' }));
    expect(said).toContain(`PostgreSQL at ${hostAndPort} refuses the user or the password`);
  });

  it('names a missing certificate', async () => {
    const said = await sentenceOf(args, `${databaseUrl}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`);
    expect(said).toContain('DATABASE_URL refers to the file /nowhere/ca.pem, which cannot be read (ENOENT)');
  });

  it('names a missing database', async () => {
    const said = await sentenceOf(args, changed(databaseUrl, { pathname: '/nowhere' }));
    expect(said).toContain(`PostgreSQL at ${hostAndPort} has no database "nowhere"; create it`);
  });

  // An unavailable server may come back, so serve waits for it. log.test.ts covers that.
  it.skipIf(args[0] === 'serve')('names a port without a server', async () => {
    const said = await sentenceOf(args, changed(databaseUrl, { host: '127.0.0.1:1' }));
    expect(said).toContain('PostgreSQL at 127.0.0.1:1 cannot be reached (ECONNREFUSED); check');
  });

  it.skipIf(args[0] === 'serve')('names an unknown host', async () => {
    const url = `${changed(databaseUrl, { host: 'nowhere.invalid:5432' })}?sslmode=disable`;
    expect(await sentenceOf(args, url)).toMatch(
      /the host nowhere\.invalid has no address \(\w+\); check the host/,
    );
  });

  it.skipIf(args[0] === 'migrate')(
    'names the role that the login lacks, and does not advise to grant it',
    async () => {
      const said = await sentenceOf(args, changed(databaseUrl, { username: login, password }));
      const role = args[0] === 'serve' ? 'intake_serve' : 'intake_admin';
      const usual = args[0] === 'serve' ? 'intake_app' : 'intake_ops';
      expect(said).toContain(
        `"${login}" is probably not the login you meant: set DATABASE_URL to one that is a member of ${role}, such as ${usual}. `,
      );
      expect(said).not.toMatch(/\bgrant\b/);
    },
  );
});

it('serve names the role that the login lacks, and membership is enough', async () => {
  const url = changed(databaseUrl, { username: login, password });
  await queryDatabase(databaseUrl, `grant intake_admin to "${login}"`);
  // With this login, the service can now read the list of migrations, but it could not answer any request.
  expect(await sentenceOf(['serve'], url)).toMatch(
    /DATABASE_URL is not a member of intake_serve; .*such as intake_app/,
  );
  expect(await runCommand(['keys', 'list'], { DATABASE_URL: url })).toMatchObject({
    exitCode: 0,
    stderr: '',
  });
  await queryDatabase(databaseUrl, `revoke intake_admin from "${login}"; grant intake_serve to "${login}"`);
  const admin = { ADMIN_DATABASE_URL: url, ADMIN_PORT: '0' };
  expect(await sentenceOf(['serve'], url, admin)).toMatch(
    /ADMIN_DATABASE_URL is not a member of intake_admin; .*such as intake_ops/,
  );
  const wrong = { ...admin, ADMIN_DATABASE_URL: changed(databaseUrl, { password: 'wrong' }) };
  expect(await sentenceOf(['serve'], url, wrong)).toContain(
    `PostgreSQL at ${hostAndPort} refuses the user or the password; check both in ADMIN_DATABASE_URL`,
  );
});

describe('migrate as a login that', () => {
  const asStranger = (url: string) => changed(url, { username: login, password });

  it('does not own the tables names the owner', async () => {
    expect(await sentenceOf(['migrate'], asStranger(databaseUrl))).toBe(
      `intake-server: the login "${login}" does not own the tables; run migrate as their owner, postgres`,
    );
  });

  it('may not create tables names the owner of the database, who can run it', async () => {
    const empty = await createEmptyDatabase();
    expect(await sentenceOf(['migrate'], asStranger(empty))).toBe(
      `intake-server: the login "${login}" may not create tables in this database; run migrate as the owner of the database, postgres`,
    );
    await queryDatabase(empty, `alter database ${new URL(empty).pathname.slice(1)} owner to "${login}"`);
    const { exitCode, stdout } = await runCommand(['migrate'], { DATABASE_URL: asStranger(empty) });
    expect(stdout).toContain('The schema is up to date.');
    expect(exitCode).toBe(0);
  });

  it('finds analysts among the logins announces the end of their views', async () => {
    const empty = await createEmptyDatabase();
    await queryDatabase(empty, `create role "analyst-${login}" in role intake_read_all`);
    const { stdout } = await runCommand(['migrate'], { DATABASE_URL: empty });
    await queryDatabase(empty, `drop role "analyst-${login}"`);
    expect(stdout).toMatch(/views in analytics_all, which 0\.3\.0 removes/);
  });
});
