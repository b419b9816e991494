import type { Pool } from '../../postgres/pool.ts';

/** The transactions that are running in this database. */
export async function runningTransactions(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ transaction: string }>(
    `select l.virtualtransaction as transaction
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'virtualxid' and l.granted and a.datname = current_database() and l.pid <> pg_backend_pid()
     union all
     select 'prepared ' || transaction from pg_prepared_xacts where database = current_database()`,
  );
  return rows.map(({ transaction }) => transaction);
}
