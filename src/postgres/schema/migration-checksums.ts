import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client, Pool } from '../pool.ts';

export const migrationsTable = 'schema_migrations';

/** Thrown if nothing was migrated. The message states what the operator should do. */
export class MigrationRefused extends Error {}

/** Thrown if the database has run migrations that were replaced before the first release. */
export class UnreleasedSchema extends MigrationRefused {
  constructor() {
    super(
      'the tables in this database come from a version before 0.1.0, which cannot be upgraded; nothing was done. Create a ' +
        'new database, set DATABASE_URL to it, run migrate, issue keys and upload the data again',
    );
  }
}

export async function migrationNames(folder: string): Promise<string[]> {
  const files = await readdir(folder);
  return files.filter((file) => file.endsWith('.sql')).map((file) => file.slice(0, -4));
}

/** The checksums do not depend on the files' line endings. */
export async function readChecksums(folder: string): Promise<Map<string, string>> {
  const checksums = new Map<string, string>();
  for (const name of await migrationNames(folder)) {
    const text = await readFile(join(folder, `${name}.sql`), 'utf8');
    checksums.set(name, createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex'));
  }
  return checksums;
}

export async function refuseChanged(pool: Pool, checksums: ReadonlyMap<string, string>): Promise<void> {
  const { rows: tables } = await pool.query<{ found: boolean }>(
    'select to_regclass($1) is not null as found',
    [migrationsTable],
  );
  if (!tables[0]?.found) return;
  const { rows } = await pool.query<{ name: string; sha256: string | null }>(
    // The column is read through JSON, because it does not exist before the first migration.
    `select name, to_jsonb(m) ->> 'sha256' as sha256 from ${migrationsTable} m order by name`,
  );
  // A newer version's migrations have higher numbers than any file here.
  const newest = Math.max(...[...checksums.keys()].map(numberOf));
  if (rows.some(({ name }) => !checksums.has(name) && numberOf(name) <= newest)) throw new UnreleasedSchema();
  const changed = rows
    .filter(({ name, sha256 }) => sha256 !== null && checksums.has(name) && checksums.get(name) !== sha256)
    .map(({ name }) => `migrations/${name}.sql`);
  if (changed.length > 0)
    throw new MigrationRefused(
      `changed since this database ran it: ${changed.join(', ')}; nothing was done. Restore the released file; a ` +
        'correction is a new migration',
    );
}

export function numberOf(name: string): number {
  return Number.parseInt(name, 10);
}

export async function noteChecksums(client: Client, checksums: ReadonlyMap<string, string>): Promise<void> {
  await client.query(
    `update ${migrationsTable} m set sha256 = f.sha256
     from unnest($1::text[], $2::text[]) as f(name, sha256) where f.name = m.name and m.sha256 is null`,
    [[...checksums.keys()], [...checksums.values()]],
  );
}
