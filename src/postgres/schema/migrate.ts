import { runner } from 'node-pg-migrate';
import pg from 'pg';
import type { Client, Pool } from '../pool.ts';
import { inTransaction } from '../transactions.ts';
import {
  MigrationRefused,
  migrationsTable,
  noteChecksums,
  numberOf,
  readChecksums,
  refuseChanged,
} from './migration-checksums.ts';
import { migrationsFolder as folder } from './schema-state.ts';

export interface Migrated {
  /** The names of the migrations that were run. */
  readonly applied: readonly string[];
  /** Roles that could not be created. */
  readonly missingRoles: readonly string[];
}

/** Brings the schema up to date, then calls `grantRoles`, also with whether it made the first tables. Throws `MigrationRefused` before it changes anything. */
export async function migrate(
  databaseUrl: string,
  grantRoles: (client: Client, isNew: boolean) => Promise<readonly string[]>,
): Promise<Migrated> {
  // The option changes nothing, but a pooler refuses it, which reveals the pooler.
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1, options: '-c statement_timeout=0' });
  // A broken idle connection would end the process; the next statement opens another.
  pool.on('error', () => {});
  try {
    await refuseOtherLogin(pool);
    const checksums = await readChecksums(folder);
    await refuseChanged(pool, checksums);
    const run = await runner({
      databaseUrl,
      dir: folder,
      direction: 'up',
      migrationsTable,
      advisoryLockMode: 'wait',
      checkOrder: true,
      // Failures are thrown as well, and the command reports them once.
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    });
    const missingRoles = await inTransaction(pool, async (client: Client) => {
      await noteChecksums(client, checksums);
      const isNew = run.some(({ name }) => numberOf(name) === 1);
      return grantRoles(client, isNew);
    });
    return { applied: run.map((migration) => migration.name), missingRoles };
  } finally {
    await pool.end();
  }
}

/** Migrations alter tables, which needs their owner, and create a schema, which needs a right on the database. */
async function refuseOtherLogin(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{
    login: string;
    database_owner: string;
    owner: string | null;
    may: boolean;
  }>(
    `select quote_ident(current_user) as login,
       (select quote_ident(pg_get_userbyid(datdba)) from pg_database where datname = current_database()) as database_owner,
       quote_ident(pg_get_userbyid(c.relowner)) as owner,
       coalesce(pg_has_role(c.relowner, 'usage'), has_schema_privilege('public', 'create')
         and has_database_privilege(current_database(), 'create')) as may
     from (select) as one left join pg_class c on c.oid = to_regclass($1)`,
    [migrationsTable],
  );
  const [row] = rows;
  if (!row || row.may) return;
  throw new MigrationRefused(
    row.owner === null
      ? `the login ${row.login} may not create tables in this database; run migrate as the owner of the database, ` +
          row.database_owner
      : `the login ${row.login} does not own the tables; run migrate as their owner, ${row.owner}`,
  );
}
