import { fileURLToPath } from 'node:url';
import { migrationNames, numberOf } from './migration-checksums.ts';

export const migrationsFolder = fileURLToPath(new URL('../../../migrations', import.meta.url));

/** `newer`: this code works with unknown migrations that have run, as during an upgrade. `ahead`: it does not. */
export type SchemaState = 'current' | 'newer' | 'behind' | 'ahead';

/** Rejects after an unconfirmed restore. Runs a single statement, because `/health/ready` calls this often. */
export async function schemaState(
  database: { query<R extends object>(text: string, values: unknown[]): Promise<{ rows: R[] }> },
  names?: readonly string[],
): Promise<SchemaState> {
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
    if (row.oldest_code > Math.max(...expected.map(numberOf))) return 'ahead';
    return row.all > expected.length ? 'newer' : 'current';
  } catch (error) {
    // These tables and the function do not exist before the first migrations.
    if (['42P01', '42883'].includes(String((error as { code?: unknown }).code))) return 'behind';
    throw error;
  }
}
