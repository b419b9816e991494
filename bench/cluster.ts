import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { startLocalPostgres } from '../src/cli/database/local-postgres.ts';
import { openPsql, type Psql } from './psql.ts';

/** Debian's PostgreSQL: it has psql and pgbench beside the server, all of one version. */
const programs = '/usr/lib/postgresql/15/bin';

/**
 * Durable, like production, and the same for everyone who is measured. Checkpoints and vacuum happen when the bench asks
 * for them, between measurements: started by a timer, they would fall on whoever is measured at that moment.
 */
export const settings = {
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '1GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  max_connections: '200',
  autovacuum: 'off',
};

export interface Cluster {
  readonly url: string;
  /** For files of the bench; it goes when the cluster does. */
  readonly folder: string;
  readonly postmasterPid: number;
  query<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>;
  /** Empties the tables and writes everything out, so that nobody pays for what another left behind. */
  clean(...tables: string[]): Promise<void>;
  /** The same for tables that stay full: dead rows removed, statistics current, nothing left to write. */
  settle(...tables: string[]): Promise<void>;
  openPsql(): Promise<Psql>;
  pgbench(script: string, ...args: string[]): Promise<string>;
  stop(): Promise<void>;
}

export async function startCluster(): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-bench-'));
  chmodSync(folder, 0o755);
  const postgres = await startLocalPostgres(folder, programs, settings);
  const url = postgres.url('postgres');
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on('error', () => {}); // The server is stopped under it when a run is broken off.
  const sessions = new Set<Psql>();
  const query = async <R extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
    (await pool.query<R>(text, values)).rows;
  return {
    url,
    folder,
    postmasterPid: Number.parseInt(readFileSync(join(postgres.home, 'data', 'postmaster.pid'), 'utf8'), 10),
    query,
    async clean(...tables) {
      // To truncate a partition takes new files for it and its indexes, which a checkpoint writes: only what is not empty.
      const filled = await query<{ name: string }>(
        `select part::text as name from unnest($1::text[]) as t(name)
         left join pg_partition_tree(t.name::regclass) on isleaf, coalesce(relid, t.name::regclass) as part
         where pg_relation_size(part) > 0`,
        [tables],
      );
      if (filled.length > 0) await query(`truncate ${filled.map(({ name }) => name).join(', ')}`);
      await query('checkpoint');
    },
    async settle(...tables) {
      await query(`vacuum (analyze) ${tables.join(', ')}`);
      await query('checkpoint');
    },
    async openPsql() {
      const session = await openPsql(join(programs, 'psql'), url);
      sessions.add(session);
      return session;
    },
    async pgbench(script, ...args) {
      const file = join(folder, 'pgbench.sql');
      writeFileSync(file, script);
      const { stdout } = await promisify(execFile)(join(programs, 'pgbench'), [
        '-n',
        '-f',
        file,
        ...args,
        url,
      ]);
      return stdout;
    },
    async stop() {
      // All at once: a statement that is still running ends with the server, and its session with it.
      const closing = Array.from(sessions, (session) => session.close());
      await Promise.all([...closing, pool.end(), postgres.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
