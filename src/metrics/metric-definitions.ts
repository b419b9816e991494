// metrics/: each process's Prometheus metrics. No label grows with the number of organisations.

export interface DescribedMetric {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
}

const requestBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60];
const statementBuckets = [0.0005, 0.002, 0.01, 0.05, 0.25, 1, 10];

/**
 * All metrics that we define. Each one is used by an alert or by a panel of a dashboard. docs/operating/metrics.md is generated
 * from this table.
 */
export const described = {
  buildInfo: gauge(
    'build_info',
    'Always 1. The labels contain the versions of Intake and Node.',
    'version',
    'node',
  ),
  ready: gauge(
    'ready',
    '1 if `/health/ready` returns 200, otherwise 0. The value is at most one scrape old.',
  ),
  requests: counter('requests_total', 'Answered requests, except health checks.', 'operation', 'status'),
  requestSeconds: histogram(
    'request_duration_seconds',
    "Time from receiving a request's headers to the end of its response.",
    requestBuckets,
    'operation',
  ),
  errors: counter(
    'request_errors_total',
    'Refused requests by the `code` in the response, except health checks. `too_many_requests`, `too_many_failed_keys` and `overloaded` mean that a limit was hit.',
    'code',
  ),
  records: counter(
    'records_total',
    'Uploaded and replayed records by outcome, except dry runs. The outcome `repeated` means that the record was answered from a receipt.',
    'operation',
    'outcome',
  ),
  batchSeconds: histogram(
    'batch_duration_seconds',
    'Time to store one batch of an upload, including retries.',
    requestBuckets,
  ),
  statementSeconds: histogram(
    'statement_duration_seconds',
    'Time from sending a prepared statement or COMMIT to receiving its result.',
    statementBuckets,
    'statement',
  ),
  flushRows: histogram(
    'interaction_flush_rows',
    'Number of interactions that were written in one flush.',
    [1, 5, 25, 100, 250, 500],
  ),
  interactionsWaiting: gauge('interactions_waiting', 'Interactions that are queued or being written.'),
  poolInUse: gauge(
    'pool_connections_in_use',
    'Connections to PostgreSQL that are in use. In a cluster, the sum over all nodes.',
    'pool',
  ),
  poolMax: gauge('pool_connections_max', 'Maximum number of connections to PostgreSQL.', 'pool'),
  poolWaiting: gauge('pool_waiting', 'Requests that are waiting for a connection.', 'pool'),
  keyLookUps: counter(
    'key_lookups_total',
    'Key lookups. The result is `hit` if the key was cached, and `miss` if PostgreSQL was queried.',
    'result',
  ),
  keyChangesAge: gauge(
    'key_changes_age_seconds',
    'Time since the last successful poll for changed keys. After 4 seconds, cached keys are no longer trusted.',
  ),
  stalled: gauge(
    'stalled_seconds',
    'Time for which tasks have been waiting and none has finished. After 8 seconds, the process is not ready.',
    'part',
  ),
  redisUp: gauge(
    'redis_up',
    '1 if this process counts rate limits in Redis, 0 if Redis cannot be reached. Exists only with `REDIS_URL`.',
  ),
  bytesInFlight: gauge('bytes_in_flight', 'Size of the request and response bodies in memory.'),
  bytesInFlightMax: gauge(
    'bytes_in_flight_max',
    'Maximum of `intake_bytes_in_flight`, from `BYTES_IN_FLIGHT_MAX`.',
  ),
  leader: gauge('maintenance_leader', '1 in the process that does the maintenance, 0 in all others.'),
  choreSuccess: gauge(
    'maintenance_last_success_timestamp_seconds',
    'Time at which this process last finished the chore.',
    'chore',
  ),
  choreFailures: counter(
    'maintenance_failures_total',
    'Failed runs of the chore. The chore runs again later.',
    'chore',
  ),
  partitionsAhead: gauge(
    'partitions_ahead_days',
    'Number of days in the future for which partitions for interactions exist, as last seen by the leader.',
  ),
  rejectionsOpen: gauge('rejections_open', "All organisations' rejections, as last counted by the leader."),
  keysExpiring: gauge(
    'keys_expiring',
    'API keys in use that expire within 7 days and have no successor in use, as last counted by the leader.',
  ),
  workWaiting: gauge(
    'work_waiting',
    'Unfinished background work, as last counted by the leader: `erasures`, erasures that `intake-server lake` has not yet applied to files (`lake erasures`), `access requests`, batches of uploads whose rejections have to be settled (`settling`), organisations with user ids to rewrite (`rewriting`), expired data (`retention`), old rejections (`purging`) or collected records to delete (`expired access requests`), and deleted organisations that can no longer be restored (`removals`).',
    'work',
  ),
  workOldest: gauge(
    'work_oldest_seconds',
    'Time since the oldest unfinished work was requested or became due. For a removal, it is the time since the last step, because a large removal takes days.',
    'work',
  ),
  quotasNearlyUsed: gauge(
    'quotas_nearly_used',
    'Organisations that have used at least 80 % of a quota, as last measured by the leader.',
  ),
  quotasUsedUp: gauge(
    'quotas_used_up',
    'Organisations that have used up a quota. Their uploads and interactions are refused.',
  ),
  reportLag: gauge(
    'report_lag_seconds',
    'Age of the oldest change that a report on recommendations has not counted, as last seen by the leader.',
  ),
  logBackupAge: gauge(
    'log_backup_age_seconds',
    'Time since `intake-server backup-log` last wrote the audit log and the ledger of erased people, or, if it never has, since the database has had this version, as last seen by the leader.',
  ),
  lakeLag: gauge(
    'lake_lag_seconds',
    "Age of the oldest change that is missing from its organisation's lake, as last seen by the leader. Up to `LAKE_DELAY_SECONDS` is normal.",
  ),
  certificateExpires: gauge(
    'certificate_expiry_timestamp_seconds',
    'Time at which the TLS certificate expires.',
  ),
} as const satisfies Record<string, DescribedMetric>;

function counter(name: string, help: string, ...labels: string[]) {
  return { kind: 'counter', name: `intake_${name}`, help, labels } as const;
}

function gauge(name: string, help: string, ...labels: string[]) {
  return { kind: 'gauge', name: `intake_${name}`, help, labels } as const;
}

function histogram(name: string, help: string, buckets: readonly number[], ...labels: string[]) {
  return { kind: 'histogram', name: `intake_${name}`, help, labels, buckets } as const;
}
