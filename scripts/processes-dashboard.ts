import { type Dashboard, own, type Panel, perSecond, quantile, type Section, sumOf } from './dashboard.ts';

const processes = own('up', 'job="intake"');
const failing = `(${sumOf(own('intake_requests_total', 'status=~"5.."'))} or vector(0)) / ${sumOf(own('intake_requests_total'))}`;
const firing = 'ALERTS{alertstate="firing",alertname=~"Intake.*"}';

/** Panels that show the current health at a glance, without charts. */
const now: readonly Panel[] = [
  {
    title: 'Not ready',
    help: 'Processes that answer 503 to /health/ready, or do not answer at all.',
    unit: 'short',
    queries: { [`count(${processes}) - (sum(${own('intake_ready')}) or vector(0))`]: 'not ready' },
    tile: { steps: [1, 1] },
  },
  {
    title: 'Processes',
    help: 'That Prometheus has metrics of.',
    unit: 'short',
    queries: { [`count(${processes} == 1) or vector(0)`]: 'processes' },
    tile: {},
  },
  {
    title: 'Alerts',
    help: 'How many fire; their names are below.',
    unit: 'short',
    queries: { [`count(count by (alertname) (${firing})) or vector(0)`]: 'alerts' },
    tile: { steps: [1, 1] },
  },
  {
    title: 'Requests that fail',
    help: 'With 5xx: the reason is not the data. IntakeServerErrors fires above 1 %.',
    unit: 'percentunit',
    queries: { [failing]: 'of all requests' },
    tile: { steps: [0.001, 0.01] },
  },
  {
    title: '99 % within',
    help: 'Of all requests; an export, and a client that is slow to send or read, may take long.',
    unit: 's',
    queries: { [quantile(0.99, 'intake_request_duration_seconds')]: '99 %' },
    tile: { steps: [1, 5] },
  },
  {
    title: 'Nothing stored for',
    help: 'Something waits and nothing has got further. A process is not ready above 8 seconds, and IntakeStalled fires.',
    unit: 's',
    queries: { [`max(${own('intake_stalled_seconds')})`]: 'stalled' },
    tile: { steps: [4, 8] },
  },
  {
    title: 'PostgreSQL silent for',
    help: 'Since it last answered. From 4 seconds on requests get 503; IntakeDatabaseAway fires above 10.',
    unit: 's',
    queries: { [`max(${own('intake_key_changes_age_seconds')})`]: 'silent' },
    tile: { steps: [4, 10] },
  },
  {
    title: 'Versions',
    help: 'More than one while a new version is rolled out.',
    unit: 'short',
    queries: { [`count by (version) (${own('intake_build_info')})`]: '{{version}}' },
    tile: { name: true },
  },
];

const alerts: Panel = {
  title: 'Alerts that fire',
  help: 'docs/operating/runbook.md has a section for each.',
  unit: 'short',
  queries: {
    [`max by (alertname, part, chore, code, work) (${firing})`]:
      '{{alertname}} {{part}}{{chore}}{{code}}{{work}}',
  },
  width: 24,
  bars: true,
};

const clients: Section = {
  title: 'What clients see',
  panels: [
    {
      title: 'Requests a second, by status',
      help: '5xx is ours, 4xx the clients’. 207 is an upload of which some records failed.',
      unit: 'reqps',
      queries: { [sumOf(own('intake_requests_total'), 'status')]: '{{status}}' },
    },
    {
      title: 'Errors a second, by code',
      help: 'The codes are in the API reference, with what to do.',
      unit: 'reqps',
      queries: {
        [`${sumOf(own('intake_request_errors_total'), 'code')} or label_replace(vector(0), "code", "no error", "", "")`]:
          '{{code}}',
      },
    },
  ],
};

const waiting: Section = {
  title: 'What it waits for',
  panels: [
    {
      title: 'Nothing has moved for',
      help: 'By the part that waits. "PostgreSQL" is the time since it last answered: if only that is 0, look for a lock or a full disk.',
      unit: 's',
      queries: {
        [`max by (part) (${own('intake_stalled_seconds', 'part!="keys"')})`]: '{{part}}',
        [`max(${own('intake_key_changes_age_seconds')})`]: 'PostgreSQL',
      },
    },
    {
      title: 'Requests that wait for a connection',
      help: 'If it is never 0 for minutes, look for slow statements and locks.',
      unit: 'short',
      queries: { [`sum by (pool) (${own('intake_pool_waiting')})`]: '{{pool}}' },
    },
    {
      title: 'Time to store a batch',
      help: 'IntakeUploadsSlow fires if one in 20 takes over a second. No line: nothing is being stored.',
      unit: 's',
      queries: Object.fromEntries(
        [0.5, 0.95, 0.99].map((share) => [
          quantile(share, 'intake_batch_duration_seconds'),
          `${share * 100} %`,
        ]),
      ),
    },
    {
      title: 'Records a second, by outcome',
      help: 'Many that failed or are stale: an export has changed. IntakeRejectionsSurge fires above a quarter failed.',
      unit: 'short',
      queries: { [sumOf(own('intake_records_total'), 'outcome')]: '{{outcome}}' },
    },
  ],
};

const details: readonly Section[] = [
  {
    title: 'Operations and interactions',
    isClosed: true,
    panels: [
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
          [sumOf(own('intake_interaction_flush_rows_sum'))]: 'written',
          [`${sumOf(own('intake_interaction_flush_rows_sum'))} / ${sumOf(own('intake_interaction_flush_rows_count'))}`]:
            'written together',
          [`sum(${own('intake_interactions_waiting')})`]: 'waiting now',
        },
      },
    ],
  },
  {
    title: 'Processes',
    isClosed: true,
    panels: [
      {
        title: 'CPU of each process, in cores',
        help: 'Near 1 a process is full: add one. Threads that check uploads can take it above.',
        unit: 'short',
        queries: { [perSecond(own('process_cpu_seconds_total', 'job="intake"'))]: '{{instance}}' },
        width: 8,
      },
      {
        title: 'Event loop delay, 99 %',
        help: 'Above half a second, the process or its machine needs more CPU.',
        unit: 's',
        queries: { [own('nodejs_eventloop_lag_p99_seconds', 'job="intake"')]: '{{instance}}' },
        width: 8,
      },
      {
        title: 'Memory of each process',
        help: '125 to 133 MB with nothing to do, 465 MB with 64 uploads of 5,000 records at once.',
        unit: 'bytes',
        queries: { [own('process_resident_memory_bytes', 'job="intake"')]: '{{instance}}' },
        width: 8,
      },
    ],
  },
  {
    title: 'Maintenance',
    isClosed: true,
    panels: [
      {
        title: 'Since each chore of the maintenance was done',
        help: 'Counts every 10 seconds, the others every hour. IntakeMaintenanceStuck fires above 2 minutes and 3 hours.',
        unit: 's',
        queries: {
          'time() - max by (chore) (intake_maintenance_last_success_timestamp_seconds)': '{{chore}}',
        },
        width: 8,
      },
      {
        title: 'Leaders',
        help: 'One process does the maintenance. There is none for a moment when it changes.',
        unit: 'short',
        queries: { 'sum(intake_maintenance_leader)': 'leaders' },
        width: 8,
      },
      {
        title: 'Days left',
        help: 'Partitions are made 35 days ahead. IntakeCertificateExpires fires below 14 days.',
        unit: 'd',
        queries: {
          'max(intake_partitions_ahead_days)': 'partitions of interactions',
          '(min(intake_certificate_expiry_timestamp_seconds) - time()) / 86400': 'TLS certificate',
        },
        width: 8,
      },
    ],
  },
  {
    title: 'Erasure, access, retention and removal',
    isClosed: true,
    panels: [
      {
        title: 'Waiting or under way',
        help: 'Erasures, also those that wait for the lake, access requests, organisations with expired data, and deleted ones that can no longer be restored.',
        unit: 'short',
        queries: { 'max by (work) (intake_work_waiting)': '{{work}}' },
      },
      {
        title: 'Longest wait',
        help: 'Since it was requested or became due; of a removal since its last step. IntakeWorkLate fires above a day.',
        unit: 's',
        queries: { 'max by (work) (intake_work_oldest_seconds)': '{{work}}' },
      },
    ],
  },
];

export const service: Dashboard = {
  uid: 'intake-service',
  title: 'Intake: service',
  sections: [{ panels: [...now, alerts] }, clients, waiting, ...details],
};
