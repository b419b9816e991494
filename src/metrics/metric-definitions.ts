// metrics/: what a process tells Prometheus about itself. No label grows with the number of organisations.

export interface DescribedMetric {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Only for histograms. */
  readonly buckets?: readonly number[];
}

const requestBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60];
const statementBuckets = [0.0005, 0.002, 0.01, 0.05, 0.25, 1, 10];

/** All our own metrics. docs/metrics.md is generated from this table. */
export const described = {
  buildInfo: gauge(
    'build_info',
    'Always 1; the labels say which version runs on which Node.',
    'version',
    'node',
  ),
  ready: gauge('ready', '1 if `/health/ready` answers 200, 0 if it does not; at most one scrape old.'),
  requests: counter('requests_total', 'Requests answered, without health probes.', 'operation', 'status'),
  requestSeconds: histogram(
    'request_duration_seconds',
    'From the headers of a request to the end of its answer.',
    requestBuckets,
    'operation',
  ),
  errors: counter(
    'request_errors_total',
    'Requests refused as a whole, without health probes, by the `code` of the answer. `too_many_requests`, `too_many_failed_keys` and `overloaded` are limits that were hit.',
    'code',
  ),
  records: counter(
    'records_total',
    'Records of uploads and replays, by what became of them; `repeated` were answered from a receipt. Dry runs do not count.',
    'operation',
    'outcome',
  ),
  batchSeconds: histogram(
    'batch_duration_seconds',
    'Storing a batch of an upload, retries included.',
    requestBuckets,
  ),
  statementSeconds: histogram(
    'statement_duration_seconds',
    'A prepared statement or COMMIT, from when it is sent to its result.',
    statementBuckets,
    'statement',
  ),
  flushRows: histogram(
    'interaction_flush_rows',
    'Interactions that were written together.',
    [1, 5, 25, 100, 250, 500],
  ),
  interactionsWaiting: gauge('interactions_waiting', 'Interactions in the queue or being written.'),
  changeStreams: gauge('change_streams', 'Open streams of the change feed.'),
  poolInUse: gauge(
    'pool_connections_in_use',
    'Connections to PostgreSQL in use, in a cluster to all nodes.',
    'pool',
  ),
  poolIdle: gauge('pool_connections_idle', 'Connections to PostgreSQL that are open and free.', 'pool'),
  poolMax: gauge('pool_connections_max', 'Connections to PostgreSQL there can be.', 'pool'),
  poolWaiting: gauge('pool_waiting', 'Requests that wait for a connection.', 'pool'),
  nodeDetours: counter(
    'node_detours_total',
    'In a cluster, requests that went through the coordinator because this process cannot connect to their worker.',
    'worker',
  ),
  keyLookUps: counter('key_lookups_total', 'Keys asked for, found in the cache or looked up.', 'result'),
  keyChangesAge: gauge(
    'key_changes_age_seconds',
    'Since the poll for changed keys last succeeded. From 4 on no cached key is trusted.',
  ),
  stalled: gauge(
    'stalled_seconds',
    'For how long something has waited and nothing has ended; from 8 on the process is not ready.',
    'part',
  ),
  redisUp: gauge('redis_up', 'With `REDIS_URL`: 1 if processes count limits together, 0 if Redis is away.'),
  bytesInFlight: gauge('bytes_in_flight', 'Bytes of bodies and answers in memory.'),
  bytesInFlightMax: gauge('bytes_in_flight_max', 'What they may be: BYTES_IN_FLIGHT_MAX.'),
  leader: gauge('maintenance_leader', '1 in the process that does the maintenance.'),
  choreSuccess: gauge(
    'maintenance_last_success_timestamp_seconds',
    'When this process last finished a chore.',
    'chore',
  ),
  choreFailures: counter(
    'maintenance_failures_total',
    'Chores that failed and will be tried again.',
    'chore',
  ),
  partitionsAhead: gauge(
    'partitions_ahead_days',
    'Days for which there are partitions of interactions, as the leader last saw.',
  ),
  rejectionsOpen: gauge('rejections_open', 'Rejections of all organisations, as the leader last counted.'),
  keysExpiring: gauge(
    'keys_expiring',
    'API keys in use that expire within 7 days and have no successor in use, as the leader last counted.',
  ),
  workWaiting: gauge(
    'work_waiting',
    'Work that maintenance does in steps and has not finished, as the leader last counted: erasures, access requests, organisations with expired data (`retention`), and deleted organisations that can no longer be restored (`removals`).',
    'work',
  ),
  workOldest: gauge(
    'work_oldest_seconds',
    'For how long the oldest of it has waited: since it was requested or became due. A removal counts from its last step, because a large one takes days.',
    'work',
  ),
  quotasNearlyUsed: gauge(
    'quotas_nearly_used',
    'Organisations that have used 80 % of a quota or more, as the leader last measured.',
  ),
  quotasUsedUp: gauge(
    'quotas_used_up',
    'Those of them that have used all of a quota: their uploads and interactions are refused.',
  ),
  reportLag: gauge(
    'report_lag_seconds',
    'Age of the oldest change that a report on recommendations has not counted, as the leader last saw.',
  ),
  certificateExpires: gauge('certificate_expiry_timestamp_seconds', 'When the TLS certificate expires.'),
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
