import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import type { Pool } from './pool.ts';

const folder = fileURLToPath(new URL('../../migrations', import.meta.url));
const table = 'schema_migrations';

/** Brings the schema up to date and returns the names of the migrations that were run. */
export async function migrate(databaseUrl: string): Promise<string[]> {
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
  return run.map((migration) => migration.name);
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
