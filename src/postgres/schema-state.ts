import { fileURLToPath } from 'node:url';
import { migrationNames } from './migration-checksums.ts';

export const migrationsFolder = fileURLToPath(new URL('../../migrations', import.meta.url));

/**
 * How the schema of the database relates to this code. `newer`: migrations have run that this code does not know, and it
 * works with them, as it must while a new version is rolled out. `ahead`: it no longer does.
 */
export type SchemaState = 'current' | 'newer' | 'behind' | 'ahead';

interface Asked {
  query<R extends object>(text: string, values: unknown[]): Promise<{ rows: R[] }>;
}

/** Rejects for a database that was restored and not confirmed. In one statement: `/health/ready` asks it too, and often. */
export async function schemaState(database: Asked, names?: readonly string[]): Promise<SchemaState> {
  const expected = names ?? (await migrationNames(migrationsFolder));
  try {
    const { rows } = await database.query<{ known: number; all: number; oldest_code: number }>(
      `select (select count(*)::integer from schema_migrations where name = any($1)) as known,
         (select count(*)::integer from schema_migrations) as all, oldest_code
       from schema_compatibility where keys_can_be_trusted()`,
      [expected],
    );
    const [row] = rows;
    if (!row || row.known < expected.length) return 'behind';
    if (row.oldest_code > levelOf(expected)) return 'ahead';
    return row.all > expected.length ? 'newer' : 'current';
  } catch (error) {
    // There are no such tables, and no such function, before the first migrations.
    if (['42P01', '42883'].includes(String((error as { code?: unknown }).code))) return 'behind';
    throw error;
  }
}

/** The level of code: the number of the newest migration that it brings along. */
function levelOf(names: readonly string[]): number {
  return Math.max(...names.map((name) => Number.parseInt(name, 10)));
}
