import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { type Client, inTransaction, type Pool } from './pool.ts';
import { grantRoles } from './roles.ts';

const folder = fileURLToPath(new URL('../../migrations', import.meta.url));
const table = 'schema_migrations';

export interface Migrated {
  /** The names of the migrations that were run. */
  readonly applied: readonly string[];
  /** The roles that could not be made. */
  readonly missingRoles: readonly string[];
}

/** Brings the schema up to date, and what the roles may do in it. */
export async function migrate(databaseUrl: string): Promise<Migrated> {
  const run = await runner({
    databaseUrl,
    dir: folder,
    direction: 'up',
    migrationsTable: table,
    advisoryLockMode: 'wait',
    checkOrder: true,
    // What fails is thrown as well, and told once, by the command.
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  });
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    const missingRoles = await inTransaction(pool, (client: Client) => grantRoles(client));
    return { applied: run.map((migration) => migration.name), missingRoles };
  } finally {
    await pool.end();
  }
}

export type SchemaState = 'current' | 'behind' | 'ahead';

/** A program of one version must not serve the schema of another. */
export async function schemaState(pool: Pool): Promise<SchemaState> {
  const expected = (await readdir(folder))
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -4));
  const { rows: tables } = await pool.query<{ found: boolean }>(
    'select to_regclass($1) is not null as found',
    [table],
  );
  if (!tables[0]?.found) return 'behind';
  const { rows } = await pool.query<{ name: string }>(`select name from ${table}`);
  const applied = new Set(rows.map((row) => row.name));
  if (expected.some((name) => !applied.has(name))) return 'behind';
  return applied.size > expected.length ? 'ahead' : 'current';
}
