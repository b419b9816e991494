import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** A migrated, empty database of the caller's own. */
export async function createTestDatabase(): Promise<string> {
  const url = inject('postgresUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // Two files that clone at the same moment would find the template in use.
  await client.query('select pg_advisory_lock(1)');
  await client.query(`create database ${name} template intake_template`);
  await client.end();
  return url.replace(/\/postgres$/, `/${name}`);
}
