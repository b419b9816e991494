import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { embeddedBinaries, startLocalPostgres } from '../../scripts/local-postgres.ts';
import { grantRoles } from '../../src/operator/roles.ts';
import { migrate } from '../../src/postgres/schema/migrate.ts';
import { servingLogin } from './database.ts';
import { disposable } from './disposable.ts';
import { queryDatabase } from './query-database.ts';

/** A separate PostgreSQL server that counts statements, including BEGIN and COMMIT (pg_stat_statements). */
export interface CountingPostgres {
  /** The URL for connecting to a migrated database as the owner. */
  readonly url: string;
  /** Starts counting. */
  reset(): Promise<void>;
  /** Returns how often the service has run each statement since `reset`. */
  calls(): Promise<{ readonly query: string; readonly calls: number }[]>;
  stop(): Promise<void>;
}

export async function startCountingPostgres(): Promise<CountingPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-count-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, embeddedBinaries(), {
    ...disposable,
    shared_preload_libraries: 'pg_stat_statements',
  });
  const url = postgres.url('postgres');
  await migrate(url, grantRoles);
  const { password } = new URL(url);
  await queryDatabase(
    url,
    `create extension pg_stat_statements;
     create role ${servingLogin} login password '${password}' in role intake_serve`,
  );
  return {
    url,
    async reset() {
      await queryDatabase(url, 'select pg_stat_statements_reset()');
    },
    calls: () =>
      queryDatabase<{ query: string; calls: number }>(
        url,
        `select query, sum(calls)::integer as calls
         from pg_stat_statements s join pg_roles r on r.oid = s.userid
         where r.rolname = $1 group by query order by 2 desc`,
        [servingLogin],
      ),
    async stop() {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
