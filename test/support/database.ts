import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { inject } from 'vitest';
import { cloneCitusDatabase, dropCitusDatabase } from './citus.ts';

/** The databases that the test file has made. */
const made: string[] = [];

/** A migrated, empty database of the caller's own. */
export async function createTestDatabase(): Promise<string> {
  const databaseUrl = await createSharedDatabase();
  made.push(new URL(databaseUrl).pathname.slice(1));
  return databaseUrl;
}

/** The same, for longer than the test file runs. */
export async function createSharedDatabase(): Promise<string> {
  const url = inject('postgresUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // Two files that clone at the same moment would find the template in use.
  await client.query('select pg_advisory_lock(1)');
  const citus = inject('citus');
  if (citus) await cloneCitusDatabase(citus.nodes, citus.template, name);
  else await client.query(`create database ${name} template intake_template`);
  await client.end();
  return url.replace(/\/postgres$/, `/${name}`);
}

/** A database of the caller's own that nobody has migrated. */
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

/** Whom the service logs in as: somebody who may do just what it does. The commands are the owner's. */
export const servingLogin = 'intake_test';

/** The same database, for the service. */
export function servingUrl(ownerUrl: string, login = servingLogin): string {
  const url = new URL(ownerUrl);
  if (url.username === 'postgres') url.username = login;
  return url.href;
}

/** The same database by way of the pooler, where the tests run with one (TEST_POOLER=1). */
export function throughPooler(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  const port = inject('poolerPort');
  if (port !== null && url.port === new URL(inject('postgresUrl')).port) url.port = String(port);
  return url.href;
}

/** Citus runs a process in each database of each node: those of a file that has ended would take the machine up. */
export async function dropTestDatabases(): Promise<void> {
  const { nodes } = inject('citus') ?? { nodes: [] };
  // One that Citus itself is busy in stays: no test fails for that.
  for (const name of made) await dropCitusDatabase(nodes, name).catch(() => {});
}

const fixtures = fileURLToPath(new URL('../fixtures', import.meta.url));
/** The releases of which a database is kept, oldest first. */
export const releases = readdirSync(fixtures)
  .map((file) => file.slice(0, -'.sql'.length))
  .toSorted((one, other) => one.localeCompare(other, 'en', { numeric: true }));

/** A database as a release left it, and the key of its organisation. */
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
