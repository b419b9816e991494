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

/** Throws `MigrationRefused` before changing anything. */
export async function migrate(
  databaseUrl: string,
  grantRoles: (client: Client, isNew: boolean) => Promise<readonly string[]>,
): Promise<{ readonly applied: readonly string[]; readonly missingRoles: readonly string[] }> {
  // The only purpose of this option is to detect a pooler, because a pooler would refuse it.
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1, options: '-c statement_timeout=0' });
  // Without a listener, a broken idle connection would end the process. The next statement opens a new connection.
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
      // Errors are also thrown, and the command reports them once. Logging would report them twice.
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

/** Only a table's owner may alter it, and creating a schema requires a privilege on the database. */
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
