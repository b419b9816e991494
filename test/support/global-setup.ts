import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { embeddedBinaries, startLocalPostgres } from '../../scripts/local-postgres.ts';
import { missingTools } from '../../scripts/tools.ts';
import { distributionSteps } from '../../src/operator/distribute.ts';
import { grantRoles } from '../../src/operator/roles.ts';
import { migrate } from '../../src/postgres/schema/migrate.ts';
import { citusNodes, createCitusTemplate, dropCitusDatabase } from './citus.ts';
import { servingLogin } from './database.ts';
import { disposable } from './disposable.ts';
import { startPgBouncer } from './pgbouncer.ts';
import { startRunHost } from './run-host.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of the cluster's `postgres` database, for the superuser. */
    postgresUrl: string;
    /** The URL of the run host (see run-host.ts). */
    runHostUrl: string;
    /** PgBouncer's port, if the service should use it. */
    poolerPort: number | null;
    /** The Citus cluster that the tests run on, or null on a single PostgreSQL server. */
    citus: { readonly nodes: readonly string[]; readonly template: string } | null;
  }
}

/** The PostgreSQL versions for the tests. Version 18 comes from an npm package, and version 15 from Debian. */
const binaries: Record<string, () => string> = {
  '18': embeddedBinaries,
  '15': () => '/usr/lib/postgresql/15/bin',
};

export default async function setup(project: TestProject) {
  if (process.env.CI) requireTools();
  const stopDatabase = await useDatabase(project);
  const host = await startRunHost();
  project.provide('runHostUrl', host.url);
  return async () => {
    await stopDatabase(await host.stop());
  };
}

/** Fails before the first test if something is missing without which tests would be skipped. */
function requireTools(): void {
  const missing = missingTools();
  if (missing.length > 0) throw new Error(`missing: ${missing.join(', ')}; run .ci/install`);
}

/** Starts one cluster for the whole run, with a migrated database that every test file clones. */
async function useDatabase(project: TestProject): Promise<(used: readonly string[]) => Promise<unknown>> {
  if (process.env.CITUS_URL) return useCitus(project, process.env.CITUS_URL);
  console.log(
    'Tests of a cluster are skipped: they need CITUS_URL, the superuser on the coordinator of a Citus cluster',
  );
  project.provide('citus', null);
  const version = process.env.TEST_POSTGRES ?? '18';
  const found = binaries[version];
  if (!found) throw new Error(`TEST_POSTGRES must be ${Object.keys(binaries).join(' or ')}, not ${version}`);
  const folder = mkdtempSync(join(tmpdir(), 'intake-test-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, found(), { max_connections: '300', ...disposable });
  const client = new pg.Client({ connectionString: postgres.url('postgres') });
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('show server_version');
  console.log(`Testing on PostgreSQL ${rows[0]?.server_version}`);
  await client.query('create database intake_template');
  await client.end();
  await fill(postgres.url('intake_template'));
  project.provide('postgresUrl', postgres.url('postgres'));
  // The pool is so small that statements from one connection run in several sessions.
  const pooler = process.env.TEST_POOLER ? await startPgBouncer(postgres.url('postgres'), 5) : undefined;
  project.provide('poolerPort', pooler?.port ?? null);
  if (pooler) console.log('The service goes through PgBouncer in transaction mode');
  return async () => {
    await pooler?.stop();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}

/** Creates the tables, the roles and the service's login, which may exist from another run on the same cluster. */
async function fill(databaseUrl: string): Promise<void> {
  await migrate(databaseUrl, grantRoles);
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rowCount } = await client.query('select from pg_roles where rolname = $1', [servingLogin]);
  const { password } = new URL(databaseUrl);
  if (rowCount === 0)
    await client.query(`create role ${servingLogin} login password '${password}' in role intake_serve`);
  await client.end();
}

/**
 * Distributes the tables over few shards, because a test file has few organisations, and every shard slows down
 * cloning.
 */
async function distribute(coordinatorUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: coordinatorUrl });
  await client.connect();
  for (const step of await distributionSteps(client, 8)) await client.query(step);
  await client.end();
}

/** Uses a Citus cluster. Other runs may use it at the same time, so each run has its own template. */
async function useCitus(project: TestProject, url: string) {
  const nodes = await citusNodes(url);
  const template = `intake_template_${randomBytes(4).toString('hex')}`;
  await createCitusTemplate(nodes, template, async (coordinatorUrl) => {
    await fill(coordinatorUrl);
    await distribute(coordinatorUrl);
  });
  console.log(`Testing on a Citus cluster of ${nodes.length} nodes`);
  project.provide('postgresUrl', nodes[0] as string);
  project.provide('poolerPort', null);
  project.provide('citus', { nodes, template });
  return (used: readonly string[]) =>
    Promise.all(
      [template, ...used.map((url) => new URL(url).pathname.slice(1))].map((name) =>
        dropCitusDatabase(nodes, name),
      ),
    );
}
