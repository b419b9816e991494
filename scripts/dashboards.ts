/** The Grafana dashboards, as short as they can be said; `npm run generate` writes deploy/observability/dashboards/ from it. */

/** Series with these names are red, here and in Grafana: they are what one looks for. */
export const alarming = /^5\d\d$|^(failed|share of 5xx|database_unavailable|internal|overloaded)$/;

export interface Panel {
  readonly title: string;
  /** What a person should look for. */
  readonly help: string;
  /** As Grafana calls it. */
  readonly unit: 'reqps' | 's' | 'd' | 'bytes' | 'percentunit' | 'short';
  /** Each expression with the text of its legend. */
  readonly queries: Readonly<Record<string, string>>;
}

export interface Dashboard {
  /** Also the name of its file. */
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

const perSecond = (metric: string) => `rate(${metric}[$__rate_interval])`;
const quantile = (share: number, metric: string, by = 'le') =>
  `histogram_quantile(${share}, sum by (${by}) (${perSecond(`${metric}_bucket`)}))`;
const limitsHit = 'intake_request_errors_total{code=~"too_many_.*|overloaded"}';
const sumOf = (metric: string, by?: string) => `sum${by ? ` by (${by})` : ''} (${perSecond(metric)})`;

const service: Dashboard = {
  uid: 'intake-service',
  title: 'Intake: service',
  panels: [
    {
      title: 'Requests a second, by status',
      help: '5xx is ours, 4xx the clients’. 207 is an upload of which some records failed.',
      unit: 'reqps',
      queries: { [sumOf('intake_requests_total', 'status')]: '{{status}}' },
    },
    {
      title: 'Requests that fail for a reason of ours',
      help: 'IntakeServerErrors fires above 1 %.',
      unit: 'percentunit',
      queries: {
        [`(${sumOf('intake_requests_total{status=~"5.."}')} or vector(0)) / ${sumOf('intake_requests_total')}`]:
          'share of 5xx',
      },
    },
    {
      title: 'Errors a second, by code',
      help: 'The codes are in the API reference, with what to do.',
      unit: 'reqps',
      queries: { [sumOf('intake_request_errors_total', 'code')]: '{{code}}' },
    },
    {
      title: 'Records a second, by outcome',
      help: 'Many that failed or are stale: an export has changed. IntakeRejectionsSurge fires above a quarter failed.',
      unit: 'short',
      queries: { [sumOf('intake_records_total', 'outcome')]: '{{outcome}}' },
    },
    {
      title: 'Time to store a batch',
      help: 'IntakeUploadsSlow fires where one in 20 takes over a second.',
      unit: 's',
      queries: Object.fromEntries(
        [0.5, 0.95, 0.99].map((share) => [
          quantile(share, 'intake_batch_duration_seconds'),
          `${share * 100} %`,
        ]),
      ),
    },
    {
      title: 'Time of a request, 95 %, the five slowest operations',
      help: 'An export, and a client that is slow to send or read, may take long.',
      unit: 's',
      queries: {
        [`topk(5, ${quantile(0.95, 'intake_request_duration_seconds', 'le, operation')})`]: '{{operation}}',
      },
    },
    {
      title: 'Interactions written a second',
      help: 'The more that are written together, the less each costs.',
      unit: 'short',
      queries: {
        [sumOf('intake_interaction_flush_rows_sum')]: 'written',
        [`${sumOf('intake_interaction_flush_rows_sum')} / ${sumOf('intake_interaction_flush_rows_count')}`]:
          'written together',
        'sum(intake_interactions_waiting)': 'waiting now',
      },
    },
    {
      title: 'Since PostgreSQL was last reached',
      help: 'From 4 seconds on requests get 503; IntakeDatabaseAway fires above 10.',
      unit: 's',
      queries: { 'max by (instance) (intake_key_changes_age_seconds)': '{{instance}}' },
    },
    {
      title: 'CPU of each process, in cores',
      help: 'Near 1 a process is full: add one. Threads that check uploads can take it above.',
      unit: 'short',
      queries: { [perSecond('process_cpu_seconds_total{job="intake"}')]: '{{instance}}' },
    },
    {
      title: 'Event loop delay, 99 %',
      help: 'IntakeEventLoopSlow fires above half a second.',
      unit: 's',
      queries: { 'nodejs_eventloop_lag_p99_seconds{job="intake"}': '{{instance}}' },
    },
    {
      title: 'Memory of each process',
      help: '125 to 133 MB with nothing to do, 465 MB with 64 uploads of 5,000 records at once.',
      unit: 'bytes',
      queries: { 'process_resident_memory_bytes{job="intake"}': '{{instance}}' },
    },
    {
      title: 'Since each chore of the maintenance was done',
      help: 'Counts every 10 seconds, the others every hour. IntakeMaintenanceStuck fires above 2 minutes and 3 hours.',
      unit: 's',
      queries: {
        'time() - max by (chore) (intake_maintenance_last_success_timestamp_seconds)': '{{chore}}',
      },
    },
    {
      title: 'Leaders',
      help: 'One process does the maintenance. None for a moment when it changes.',
      unit: 'short',
      queries: { 'sum(intake_maintenance_leader)': 'leaders', 'count(up{job="intake"} == 1)': 'processes' },
    },
    {
      title: 'Days left',
      help: 'IntakePartitionsRunOut fires below 7 days, IntakeCertificateExpires below 14.',
      unit: 'd',
      queries: {
        'max(intake_partitions_ahead_days)': 'partitions of interactions',
        '(min(intake_certificate_expiry_timestamp_seconds) - time()) / 86400': 'TLS certificate',
      },
    },
  ],
};

const postgres: Dashboard = {
  uid: 'intake-postgres',
  title: 'Intake: PostgreSQL',
  panels: [
    {
      title: 'Time of a statement, 95 %, the five slowest',
      help: 'As a process sees it, network included.',
      unit: 's',
      queries: {
        [`topk(5, ${quantile(0.95, 'intake_statement_duration_seconds', 'le, statement')})`]: '{{statement}}',
      },
    },
    {
      title: 'Statements a second',
      help: 'Prepared statements of uploads, interactions and keys.',
      unit: 'short',
      queries: { [sumOf('intake_statement_duration_seconds_count', 'statement')]: '{{statement}}' },
    },
    {
      title: 'Connections in use, of those there can be',
      help: 'Of all processes together. At 100 % requests wait.',
      unit: 'percentunit',
      queries: {
        'sum by (pool) (intake_pool_connections_in_use) / sum by (pool) (intake_pool_connections_max)':
          '{{pool}}',
      },
    },
    {
      title: 'Requests that wait for a connection',
      help: 'IntakePoolExhausted fires where it is never 0 for minutes.',
      unit: 'short',
      queries: { 'sum by (pool) (intake_pool_waiting)': '{{pool}}' },
    },
    {
      title: 'Sessions, by state',
      help: '"idle in transaction" for long is somebody who holds locks.',
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
      help: 'IntakeDiskNearlyFull fires where a file system has less than a tenth left.',
      unit: 'bytes',
      queries: { 'pg_database_size_bytes{datname!~"template.*"}': '{{datname}}' },
    },
    {
      title: 'Locks held, by mode',
      help: 'accessexclusivelock for long stops everyone who uses that table.',
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
};

const tenants: Dashboard = {
  uid: 'intake-limits',
  title: 'Intake: limits of organisations',
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
      queries: { [`(${sumOf(limitsHit)} or vector(0)) / ${sumOf('intake_requests_total')}`]: 'refused' },
    },
    {
      title: 'Bytes in flight, of those there may be',
      help: 'IntakeMemoryHeld fires above 80 %.',
      unit: 'percentunit',
      queries: { 'intake_bytes_in_flight / intake_bytes_in_flight_max': '{{instance}}' },
    },
    {
      title: 'Bytes in flight',
      help: 'Bodies and answers in memory.',
      unit: 'bytes',
      queries: {
        intake_bytes_in_flight: '{{instance}}',
        'max(intake_bytes_in_flight_max)': 'a process may hold',
      },
    },
    {
      title: 'Records that fail, by operation, a second',
      help: 'The summary of rejections says why, with a key of the organisation.',
      unit: 'short',
      queries: { [sumOf('intake_records_total{outcome="failed"}', 'operation')]: '{{operation}}' },
    },
    {
      title: 'Share of records that fail',
      help: 'IntakeRejectionsSurge fires above a quarter.',
      unit: 'percentunit',
      queries: {
        [`(${sumOf('intake_records_total{outcome="failed"}')} or vector(0)) / ${sumOf('intake_records_total')}`]:
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
      title: 'Keys asked for, a second',
      help: 'Many looked up: clients with wrong keys, or a cache that was emptied.',
      unit: 'reqps',
      queries: { [sumOf('intake_key_lookups_total', 'result')]: '{{result}}' },
    },
  ],
};

export const dashboards: readonly Dashboard[] = [service, postgres, tenants];
