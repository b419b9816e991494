import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { startLocalPostgres } from '../scripts/local-postgres.ts';
import { openPsql, type Psql } from './psql.ts';

/** Debian's PostgreSQL, which includes the matching psql and pgbench. */
const programs = '/usr/lib/postgresql/15/bin';

/**
 * PostgreSQL's settings. They are as durable as in production, and the same for everything that is measured. The bench
 * runs checkpoints and vacuum itself between measurements, because on a timer they would slow down a random
 * measurement.
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
  /** A folder for the bench's files, which is deleted with the cluster. */
  readonly folder: string;
  readonly postmasterPid: number;
  query<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>;
  /** Empties the tables and flushes everything to disk, so that earlier work does not slow down a measurement. */
  clean(...tables: string[]): Promise<void>;
  /** Prepares tables that keep their rows: removes dead rows, updates the statistics and flushes everything to disk. */
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
  pool.on('error', () => {}); // If a run is interrupted, the server stops before the connection is closed.
  const sessions = new Set<Psql>();
  const query = async <R extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
    (await pool.query<R>(text, values)).rows;
  return {
    url,
    folder,
    postmasterPid: Number.parseInt(readFileSync(join(postgres.home, 'data', 'postmaster.pid'), 'utf8'), 10),
    query,
    async clean(...tables) {
      // Truncate only partitions that are not empty, because truncating creates new files for a partition and its indexes,
      // and a checkpoint has to write these files.
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
      // Close all sessions in parallel. A statement that is still running ends when the server stops, and so does its
      // session.
      const closing = Array.from(sessions, (session) => session.close());
      await Promise.all([...closing, pool.end(), postgres.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
