import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { inject } from 'vitest';
import { cloneCitusDatabase, dropCitusDatabase } from './citus.ts';

/** The databases that the test file has created. */
const made: string[] = [];

/** Creates a migrated, empty database. */
export async function createTestDatabase(): Promise<string> {
  const databaseUrl = await createSharedDatabase();
  made.push(new URL(databaseUrl).pathname.slice(1));
  return databaseUrl;
}

/** Creates a migrated, empty database that is not dropped when the test file ends. */
export async function createSharedDatabase(): Promise<string> {
  const url = inject('postgresUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // Test files take turns, because a template cannot be cloned while another clone uses it.
  await client.query('select pg_advisory_lock(1)');
  const citus = inject('citus');
  if (citus) await cloneCitusDatabase(citus.nodes, citus.template, name);
  else await client.query(`create database ${name} template intake_template`);
  await client.end();
  return url.replace(/\/postgres$/, `/${name}`);
}

/** Creates an empty database without migrations. */
export async function createEmptyDatabase(): Promise<string> {
  const url = inject('postgresUrl');
  const name = `empty_${randomBytes(8).toString('hex')}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  made.push(name);
  return url.replace(/\/postgres$/, `/${name}`);
}

/** The service's login, with minimal privileges. The commands connect as the owner. */
export const servingLogin = 'intake_test';

/** Returns the URL of the same database for the service's login. */
export function servingUrl(ownerUrl: string, login = servingLogin): string {
  const url = new URL(ownerUrl);
  if (url.username === 'postgres') url.username = login;
  return url.href;
}

/** Returns the URL of the same database through the pooler, if the tests run with one (TEST_POOLER=1). */
export function throughPooler(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  const port = inject('poolerPort');
  if (port !== null && url.port === new URL(inject('postgresUrl')).port) url.port = String(port);
  return url.href;
}

/**
 * Drops the test file's databases. Citus runs a process for each database on each node, so leftover databases would
 * exhaust the machine.
 */
export async function dropTestDatabases(): Promise<void> {
  const { nodes } = inject('citus') ?? { nodes: [] };
  // If Citus itself is using a database, keep it, because no test should fail for that reason.
  for (const name of made) await dropCitusDatabase(nodes, name).catch(() => {});
}

const fixtures = fileURLToPath(new URL('../fixtures', import.meta.url));
/** The releases that have a stored database dump, oldest first. */
export const releases = readdirSync(fixtures)
  .map((file) => file.slice(0, -'.sql'.length))
  .toSorted((one, other) => one.localeCompare(other, 'en', { numeric: true }));

/** Restores a release's database, and returns it with its organisation's key. */
export async function createReleasedDatabase(
  release: string,
): Promise<{ readonly databaseUrl: string; readonly key: string }> {
  const dump = readFileSync(join(fixtures, `${release}.sql`), 'utf8');
  const databaseUrl = await createEmptyDatabase();
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(dump);
  await client.end();
  return { databaseUrl, key: `intake_${/with intake_: (\w+)/.exec(dump)?.[1]}` };
}
