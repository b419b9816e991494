import { type Dashboard, own, quantile, sumOf } from './dashboard.ts';
import { service } from './processes-dashboard.ts';

/** The Grafana dashboards in a compact form. */

const limitsHit = own('intake_request_errors_total', 'code=~"too_many_.*|overloaded"');

const postgres: Dashboard = {
  uid: 'intake-postgres',
  title: 'Intake: PostgreSQL',
  sections: [
    {
      panels: [
        {
          title: 'Time of a statement, 95 %, the five slowest',
          help: 'As a process sees it, network included.',
          unit: 's',
          queries: {
            [`topk(5, ${quantile(0.95, 'intake_statement_duration_seconds', 'le, statement')})`]:
              '{{statement}}',
          },
        },
        {
          title: 'Statements a second',
          help: 'Prepared statements of uploads, interactions and keys.',
          unit: 'short',
          queries: { [sumOf(own('intake_statement_duration_seconds_count'), 'statement')]: '{{statement}}' },
        },
        {
          title: 'Connections in use, of those there can be',
          help: 'Of all processes together. At 100 % requests wait.',
          unit: 'percentunit',
          queries: {
            [`sum by (pool) (${own('intake_pool_connections_in_use')}) / sum by (pool) (${own('intake_pool_connections_max')})`]:
              '{{pool}}',
          },
        },
        {
          title: 'Requests that wait for a connection',
          help: 'If it is never 0 for minutes, look for slow statements and locks.',
          unit: 'short',
          queries: { [`sum by (pool) (${own('intake_pool_waiting')})`]: '{{pool}}' },
        },
        {
          title: 'Sessions, by state',
          help: '"idle in transaction" for long is a session that holds locks.',
          unit: 'short',
          queries: {
            'sum by (state) (pg_stat_activity_count) > 0': '{{state}}',
            'max(pg_settings_max_connections)': 'max_connections',
          },
        },
        {
          title: 'Longest transaction',
          help: 'A long one keeps vacuum from removing dead tuples. An export has none: it reads in pages.',
          unit: 's',
          queries: {
            'max by (datname) (pg_stat_activity_max_tx_duration{datname!~"template.*"})': '{{datname}}',
          },
        },
        {
          title: 'Transactions a second',
          help: 'Rollbacks are conflicts that are retried, and dry runs.',
          unit: 'short',
          queries: {
            [sumOf('pg_stat_database_xact_commit')]: 'committed',
            [sumOf('pg_stat_database_xact_rollback')]: 'rolled back',
            [sumOf('pg_stat_database_deadlocks')]: 'deadlocks',
          },
        },
        {
          title: 'Rows a second',
          help: 'Fetched rows far above inserted ones: look at the plans.',
          unit: 'short',
          queries: {
            [sumOf('pg_stat_database_tup_inserted')]: 'inserted',
            [sumOf('pg_stat_database_tup_updated')]: 'updated',
            [sumOf('pg_stat_database_tup_deleted')]: 'deleted',
            [sumOf('pg_stat_database_tup_fetched')]: 'fetched',
          },
        },
        {
          title: 'Blocks found in memory',
          help: 'Below 99 % the indexes no longer fit: more memory, or fewer days kept.',
          unit: 'percentunit',
          queries: {
            [`${sumOf('pg_stat_database_blks_hit')} / (${sumOf('pg_stat_database_blks_hit')} + ${sumOf('pg_stat_database_blks_read')})`]:
              'share',
          },
        },
        {
          title: 'Size of each database',
          help: 'IntakeDiskNearlyFull fires if a file system has less than a tenth left.',
          unit: 'bytes',
          queries: { 'pg_database_size_bytes{datname!~"template.*"}': '{{datname}}' },
        },
        {
          title: 'Locks held, by mode',
          help: 'accessexclusivelock for long stops all who use that table.',
          unit: 'short',
          queries: { 'sum by (mode) (pg_locks_count) > 0': '{{mode}}' },
        },
        {
          title: 'PostgreSQL as its exporter sees it',
          help: '1: it answers.',
          unit: 'short',
          queries: { pg_up: '{{instance}}' },
        },
      ],
    },
  ],
};

const tenants: Dashboard = {
  uid: 'intake-limits',
  title: 'Intake: limits of organisations',
  sections: [
    {
      panels: [
        {
          title: 'Requests refused by a limit, a second',
          help: 'too_many_requests: an organisation; too_many_failed_keys: an address; overloaded: the process. The log says who.',
          unit: 'reqps',
          queries: { [sumOf(limitsHit, 'code')]: '{{code}}' },
        },
        {
          title: 'Share of requests refused by a limit',
          help: 'A client that honours Retry-After keeps this near 0.',
          unit: 'percentunit',
          queries: {
            [`(${sumOf(limitsHit)} or vector(0)) / ${sumOf(own('intake_requests_total'))}`]: 'refused',
          },
        },
        {
          title: 'Bytes in flight, of those there may be',
          help: 'At 100 %, uploads get 503 overloaded.',
          unit: 'percentunit',
          queries: {
            [`${own('intake_bytes_in_flight')} / ${own('intake_bytes_in_flight_max')}`]: '{{instance}}',
          },
        },
        {
          title: 'Bytes in flight',
          help: 'Bodies and answers in memory.',
          unit: 'bytes',
          queries: {
            [own('intake_bytes_in_flight')]: '{{instance}}',
            [`max(${own('intake_bytes_in_flight_max')})`]: 'a process may hold',
          },
        },
        {
          title: 'Records that fail, by operation, a second',
          help: 'The summary of rejections has the reasons, with a key of the organisation.',
          unit: 'short',
          queries: { [sumOf(own('intake_records_total', 'outcome="failed"'), 'operation')]: '{{operation}}' },
        },
        {
          title: 'Share of records that fail',
          help: 'IntakeRejectionsSurge fires above a quarter.',
          unit: 'percentunit',
          queries: {
            [`(${sumOf(own('intake_records_total', 'outcome="failed"'))} or vector(0)) / ${sumOf(own('intake_records_total'))}`]:
              'failed',
          },
        },
        {
          title: 'Rejections that are open, of all organisations',
          help: 'Counted by the leader, every hour.',
          unit: 'short',
          queries: { 'max(intake_rejections_open)': 'open' },
        },
        {
          title: 'Organisations that have used most of a quota',
          help: 'Organisations that have used all of it may store nothing more. organisations list shows them.',
          unit: 'short',
          queries: {
            'max(intake_quotas_nearly_used)': '80 % or more',
            'max(intake_quotas_used_up)': 'all of it',
          },
        },
        {
          title: 'Key lookups per second',
          help: 'Many looked up: clients with wrong keys, or a cache that was emptied.',
          unit: 'reqps',
          queries: { [sumOf(own('intake_key_lookups_total'), 'result')]: '{{result}}' },
        },
      ],
    },
  ],
};

export const dashboards: readonly Dashboard[] = [service, postgres, tenants];
