// @module-tag full

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { embeddedBinaries, type LocalPostgres, startLocalPostgres } from '../../scripts/local-postgres.ts';
import { adminDatabaseUrl } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase, servingLogin, servingUrl } from '../support/database.ts';
import { many } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { expectReady } from '../support/ready.ts';
import { runCommand } from '../support/run-command.ts';

/** A service does not acknowledge data that PostgreSQL may lose, or promise to store what it cannot store. */

interface Refused {
  readonly args?: string[];
  readonly ADMIN_DATABASE_URL?: string;
  readonly ADMIN_PORT?: string;
}

const isReady = async ({ url }: BuiltServer) => {
  const { status, body } = await apiOf(url).get('/health/ready');
  return `${status} ${body.message ?? ''}`;
};

/** Runs `serve` or another command, which must fail, and returns what it prints. */
async function refusal(url: string, { args = ['serve'], ...env }: Refused = {}): Promise<string> {
  const { exitCode, stderr } = await runCommand(args, {
    DATABASE_URL: url,
    PORT: '0',
    LOG_LEVEL: 'silent',
    ...env,
  });
  expect([exitCode, stderr.trim().split('\n').length]).toEqual([1, 1]);
  return stderr;
}

// A pooler's sessions keep their settings until it opens new ones.
describe.skipIf(inject('poolerPort') !== null)('a running process', () => {
  let server: BuiltServer;
  let name: string;
  beforeAll(async () => {
    server = await startBuiltServer();
    name = new URL(server.databaseUrl).pathname.slice(1);
  });
  afterAll(() => server.stop());
  const set = (text: string) => queryDatabase(server.databaseUrl, `alter ${text}`);

  it.each([
    ['synchronous_commit = off', /synchronous_commit=off; turn it on for the role, the database/],
    [
      'default_transaction_read_only = on',
      /PostgreSQL is read-only; .*turn default_transaction_read_only off/,
    ],
  ])('is not ready while the database has %s', async (setting, expected) => {
    await expectReady(server.url);
    await set(`database ${name} set ${setting}`);
    try {
      await expect.poll(() => isReady(server)).toMatch(expected);
      expect(await isReady(server)).toMatch(/^503 /);
      await expect.poll(() => server.log.some((line) => expected.test(line))).toBe(true);
    } finally {
      await queryDatabase(server.databaseUrl, `begin read write; alter database ${name} reset all; commit`);
    }
    await expect.poll(() => isReady(server)).toMatch(/^200 /);
  });

  it('logs that it has no file descriptor left', async () => {
    const { hostname, port } = new URL(server.url);
    execFileSync('prlimit', ['--pid', String(server.process.pid), '--nofile=60:60']);
    const sockets = many(80, () => connect(Number(port), hostname).on('error', () => {}));
    const isLogged = (text: string) => server.log.some((line) => line.includes(text));
    await expect.poll(() => isLogged('no file descriptor left')).toBe(true);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => isLogged('No longer: out_of_descriptors')).toBe(true);
    await expectReady(server.url);
  });
});

it.skipIf(inject('poolerPort') !== null)(
  'synchronous_commit=off is refused at start, for a role or a database',
  async () => {
    const databaseUrl = await createTestDatabase();
    const name = new URL(databaseUrl).pathname.slice(1);
    for (const url of [servingUrl(databaseUrl), databaseUrl]) {
      await queryDatabase(
        databaseUrl,
        `alter role current_user in database ${name} set synchronous_commit = off`,
      );
      await queryDatabase(
        databaseUrl,
        `alter role ${servingLogin} in database ${name} set synchronous_commit = off`,
      );
      expect(await refusal(url)).toMatch(
        /^intake-server: .*lose data .*synchronous_commit=off; turn it on for the role/,
      );
    }
  },
);

it.skipIf(inject('poolerPort') !== null)(
  "synchronous_commit=off is refused for the operator's login, by commands and the admin API",
  async () => {
    const databaseUrl = await createTestDatabase();
    const ADMIN_DATABASE_URL = await adminDatabaseUrl(databaseUrl);
    const name = new URL(databaseUrl).pathname.slice(1);
    const login = new URL(ADMIN_DATABASE_URL).username;
    await queryDatabase(databaseUrl, `alter role ${login} in database ${name} set synchronous_commit = off`);
    const unsafe = (setting: string) =>
      new RegExp(
        `PostgreSQL, with the login in ${setting}, may lose .* of synchronous_commit=off; turn it on`,
      );
    expect(await refusal(servingUrl(databaseUrl), { ADMIN_DATABASE_URL, ADMIN_PORT: '0' })).toMatch(
      unsafe('ADMIN_DATABASE_URL'),
    );
    const issuing = { args: ['tokens', 'issue', 'late'] };
    expect(await refusal(ADMIN_DATABASE_URL, issuing)).toMatch(unsafe('DATABASE_URL'));
    // The ledger of an old database can still be saved.
    const read = await runCommand(['erasures'], { DATABASE_URL: ADMIN_DATABASE_URL });
    expect(read).toMatchObject({ exitCode: 0, stderr: '' });
  },
);

describe('a server without fsync', () => {
  const folder = mkdtempSync(join(tmpdir(), 'intake-unsafe-'));
  chmodSync(folder, 0o755);
  const off = { fsync: 'off', full_page_writes: 'off' };
  let postgres: LocalPostgres | undefined;
  afterAll(async () => {
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  async function start(settings: Record<string, string>): Promise<string> {
    await postgres?.stop();
    postgres = await startLocalPostgres(folder, embeddedBinaries(), settings);
    return postgres.url('postgres');
  }

  beforeAll(async () => {
    const url = await start(off);
    expect((await runCommand(['migrate'], { DATABASE_URL: url })).exitCode).toBe(0);
    const { password } = new URL(url);
    await queryDatabase(url, `create role ${servingLogin} login password '${password}' in role intake_serve`);
  });

  it('is refused by name, unless the server itself says that this is accepted', async () => {
    let url = await start(off);
    expect(await refusal(servingUrl(url))).toMatch(
      /because of fsync=off and full_page_writes=off; turn it on in postgresql\.conf/,
    );
    url = await start({ ...off, 'intake.accepted_settings': 'fsync=off, synchronous_commit=off' });
    expect(await refusal(servingUrl(url))).toMatch(/because of full_page_writes=off; turn it on/);
    await queryDatabase(url, `alter role ${servingLogin} set synchronous_commit = off`);
    expect(await refusal(servingUrl(url))).toMatch(/full_page_writes=off and synchronous_commit=off/);
    await queryDatabase(url, `alter role ${servingLogin} reset all`);
    url = await start({ ...off, 'intake.accepted_settings': 'fsync=off, full_page_writes=off' });
    const server = await startBuiltServer({ DATABASE_URL: url });
    expect(
      server.log.filter((line) => line.includes('intake.accepted_settings accepts fsync=off and')),
    ).toHaveLength(1);
    await expectReady(server.url);
    await server.stop();
  });

  it('is noticed by a running process', async () => {
    const url = await start({});
    const set = async (text: string) => {
      await queryDatabase(url, `alter system ${text}`);
      await queryDatabase(url, 'select pg_reload_conf()');
    };
    const server = await startBuiltServer({ DATABASE_URL: url });
    for (const setting of Object.keys(off)) {
      await expectReady(server.url);
      await set(`set ${setting} = off`);
      const expected = new RegExp(`^503 .*because of ${setting}=off; turn it on in postgresql\\.conf`);
      await expect.poll(() => isReady(server)).toMatch(expected);
      await set(`reset ${setting}`);
      await expect.poll(() => isReady(server)).toMatch(/^200 /);
    }
    await server.stop();
  });
});
