// @module-tag full

import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { embeddedBinaries, type LocalPostgres, startLocalPostgres } from '../../scripts/local-postgres.ts';
import { readConfig } from '../../src/config.ts';
import { Detours } from '../../src/postgres/cluster/node-detours.ts';
import { NodePools } from '../../src/postgres/cluster/node-pools.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { makeCertificate } from '../support/certificate.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/** All data, including passwords, is sent to PostgreSQL, so the server must prove its identity. */

describe('an address of PostgreSQL on another machine', () => {
  const migrate = (query: string, host = 'db.example') =>
    runCommand(['migrate'], { DATABASE_URL: `postgres://intake:hush@${host}:5432/intake${query}` });

  it.each(['', '?sslmode=prefer', '?sslmode=require', '?sslmode=no-verify', '?sslmode=allow'])(
    'with %j is refused, with the expected form',
    async (query) => {
      const { exitCode, stderr } = await migrate(query);
      expect(exitCode).toBe(1);
      expect(stderr).toContain('sslmode=verify-full');
      expect(stderr).not.toContain('hush');
    },
  );

  it.each(['192.0.2.1', '[2001:db8::1]', 'localhost.example'])('is detected: %s', async (host) => {
    expect((await migrate('', host)).stderr).toContain('sslmode=verify-full');
  });
});

describe('a PostgreSQL that serves TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'intake-database-tls-'));
  const [served, other] = [makeCertificate(folder, 'served'), makeCertificate(folder, 'other')];
  let postgres: LocalPostgres;
  let databaseUrl: URL;
  beforeAll(async () => {
    chmodSync(folder, 0o755);
    postgres = await startLocalPostgres(join(folder, 'cluster'), embeddedBinaries());
    databaseUrl = new URL(postgres.url('postgres'));
    const data = join(postgres.home, 'data');
    const { uid, gid } = statSync(data);
    for (const [from, to] of [
      [served.certFile, 'server.crt'],
      [served.keyFile, 'server.key'],
    ] as const) {
      copyFileSync(from, join(data, to));
      chownSync(join(data, to), uid, gid);
      chmodSync(join(data, to), 0o600);
    }
    const client = new pg.Client({ connectionString: databaseUrl.href });
    await client.connect();
    await client.query('alter system set ssl = on');
    await client.query('select pg_reload_conf()');
    await client.end();
    // The server needs a moment to apply the setting.
    const isOn = async () => (await queryDatabase<{ ssl: string }>(databaseUrl.href, 'show ssl'))[0]?.ssl;
    while ((await isOn()) !== 'on') await sleep(20);
  });
  afterAll(async () => {
    await postgres.stop();
    rmSync(folder, { recursive: true });
  });

  const migrate = (host: string, rootCertificate?: string) => {
    const url = new URL(databaseUrl);
    url.hostname = host;
    url.searchParams.set('sslmode', 'verify-full');
    if (rootCertificate) url.searchParams.set('sslrootcert', rootCertificate);
    return runCommand(['migrate'], { DATABASE_URL: url.href });
  };

  it('is used if its certificate is from a trusted authority', async () => {
    expect(await migrate('localhost', served.certFile)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('is refused if it is from another', async () => {
    const { exitCode, stderr } = await migrate('localhost', other.certFile);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^intake-server: the certificate of PostgreSQL at \S+ cannot be verified .* sslrootcert/,
    );
    expect(stderr).not.toContain(databaseUrl.password);
  });

  it('a worker of Citus with a certificate of another authority is reported, and its requests take a detour', async () => {
    const poolWith = (rootCertificate: string) => {
      const url = new URL(databaseUrl);
      url.search = `?sslmode=verify-full&sslrootcert=${rootCertificate}`;
      return createPool(readConfig({ DATABASE_URL: url.href }), () => {});
    };
    const coordinator = poolWith(served.certFile);
    let authority = other.certFile;
    const reported: object[] = [];
    const detours = new Detours();
    detours.logTo({ begun: (what) => reported.push(what), ended: (what) => reported.push(what) });
    const poolsNow = () => new NodePools(coordinator, undefined, () => poolWith(authority), { detours });
    const pools = [poolsNow()];
    for (let time = 0; time < 2; time++) (await pools[0]?.connect('worker:5432'))?.release();
    expect(reported).toEqual([{ worker: 'worker:5432', cause: 'DEPTH_ZERO_SELF_SIGNED_CERT' }]);
    authority = served.certFile;
    pools.push(poolsNow());
    (await pools[1]?.connect('worker:5432'))?.release();
    expect(reported.slice(1)).toEqual([{ worker: 'worker:5432' }]);
    await Promise.all([...pools.map((one) => one.close()), coordinator.end()]);
  });

  it('is refused if its authority is not trusted by the system', async () => {
    expect((await migrate('localhost')).exitCode).toBe(1);
  });
});
