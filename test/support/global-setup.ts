import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { embeddedBinaries, startLocalPostgres } from '../../src/cli/local-postgres.ts';
import { grantRoles } from '../../src/operator/roles.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { servingLogin } from './database.ts';
import { startPgBouncer } from './pgbouncer.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of the cluster's `postgres` database, for the superuser. */
    postgresUrl: string;
    /** Where PgBouncer listens, if the service is to go through it. */
    poolerPort: number | null;
  }
}

/** Which PostgreSQL the tests run on: 18 comes with the packages, 15 is Debian's. */
const binaries: Record<string, () => string> = {
  '18': embeddedBinaries,
  '15': () => '/usr/lib/postgresql/15/bin',
};

/** One cluster for the whole run, with a migrated database that every test file clones. */
export default async function setup(project: TestProject) {
  const version = process.env.TEST_POSTGRES ?? '18';
  const found = binaries[version];
  if (!found) throw new Error(`TEST_POSTGRES must be ${Object.keys(binaries).join(' or ')}, not ${version}`);
  const folder = mkdtempSync(join(tmpdir(), 'intake-test-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, found(), { max_connections: '300', fsync: 'off' });
  const client = new pg.Client({ connectionString: postgres.url('postgres') });
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('show server_version');
  console.log(`Testing on PostgreSQL ${rows[0]?.server_version}`);
  await client.query('create database intake_template');
  await migrate(postgres.url('intake_template'), grantRoles);
  const { password } = new URL(postgres.url('postgres'));
  await client.query(`create role ${servingLogin} login password '${password}' in role intake_serve`);
  await client.end();
  project.provide('postgresUrl', postgres.url('postgres'));
  // So small that the statements of one connection run in several sessions.
  const pooler = process.env.TEST_POOLER ? await startPgBouncer(postgres.url('postgres'), 5) : undefined;
  project.provide('poolerPort', pooler?.port ?? null);
  if (pooler) console.log('The service goes through PgBouncer in transaction mode');
  return async () => {
    await pooler?.stop();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}
