import type { Pool } from '../pool.ts';
import { selectCluster } from './extension.ts';

/**
 * One string, because Citus gathers results from several nodes only as text. Excludes autovacuum, which has no user,
 * stores no records and can run for hours.
 */
const running = `
  select coalesce(string_agg(transaction, ' '), '') as transactions from (
    select l.virtualtransaction as transaction
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'virtualxid' and l.granted and a.datname = current_database() and l.pid <> pg_backend_pid()
      and a.usesysid is not null
    union all
    select 'prepared:' || transaction from pg_prepared_xacts where database = current_database()) as t`;

export async function runningTransactions(pool: Pool): Promise<string[]> {
  const { rows: clusters } = await pool.query(selectCluster);
  const text =
    clusters.length === 0
      ? `select 'here' as node, transactions from (${running}) as t`
      : `select nodeid::text as node, result as transactions, success as is_reached from run_command_on_all_nodes($$ ${running} $$)`;
  const { rows } = await pool.query<{ node: string; transactions: string; is_reached?: boolean }>(text);
  const unreached = rows.find(({ is_reached }) => is_reached === false);
  if (unreached) throw new Error(`the transactions of node ${unreached.node} cannot be seen`);
  return rows.flatMap(({ node, transactions }) =>
    transactions
      .split(' ')
      .filter((one) => one !== '')
      .map((one) => `${node} ${one}`),
  );
}
