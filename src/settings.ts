import { limits } from './limits.ts';

const maxInteger = 2_147_483_647;

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/**
 * Every setting: its variable, its kind with the default, and its purpose. docs/settings.md is generated from this
 * table, in this order.
 */
export const settings = {
  databaseUrl: [
    'DATABASE_URL',
    text('required'),
    'address of PostgreSQL, `postgres://user:password@host:5432/database`. For another machine add `?sslmode=verify-full`',
  ],
  databasePooler: [
    'DATABASE_POOLER',
    oneOf('off', ['on', 'off']),
    '`on`: `DATABASE_URL` leads to [PgBouncer in transaction mode](operating.md#pgbouncer)',
  ],
  databaseConnectionsMax: [
    'DATABASE_CONNECTIONS_MAX',
    wholeNumber(10, 1, 1_000),
    'connections for uploads and reads, per process, in a cluster over all nodes. [Thirteen more](operating.md#costs) serve the rest, in a cluster another two to each worker',
  ],
  databaseTimeoutMs: [
    'DATABASE_TIMEOUT_MS',
    wholeNumber(30_000, 100, 600_000),
    'PostgreSQL ends a statement that takes longer',
  ],
  host: ['HOST', text('127.0.0.1'), 'address to listen on. Beyond loopback it needs TLS or a trusted proxy'],
  port: ['PORT', wholeNumber(8080, 0, 65_535), 'port to listen on. 0 takes a free one'],
  reusePort: [
    'REUSE_PORT',
    oneOf('off', ['on', 'off']),
    '`on`: several processes listen on `PORT`, and on `ADMIN_PORT`; the kernel spreads new connections (Linux)',
  ],
  tlsCertFile: ['TLS_CERT_FILE', text('none'), 'certificate (PEM). With it and its key Intake serves HTTPS'],
  tlsKeyFile: [
    'TLS_KEY_FILE',
    text('none'),
    'its private key. Replaced files are picked up without a restart',
  ],
  trustedProxy: [
    'TRUSTED_PROXY',
    text('none'),
    'addresses of the proxy that serves HTTPS in front, such as `10.0.0.5` or `10.0.0.0/8`, separated by commas',
  ],
  adminDatabaseUrl: [
    'ADMIN_DATABASE_URL',
    text('none'),
    'login of the admin API, a member of `intake_admin`. With it Intake serves [the admin API](operating.md#admin-api)',
  ],
  adminHost: ['ADMIN_HOST', text('127.0.0.1'), 'address that the admin API listens on'],
  adminPort: ['ADMIN_PORT', wholeNumber(8081, 0, 65_535), 'port of the admin API; never `PORT`'],
  metricsPort: [
    'METRICS_PORT',
    wholeNumber(0, 0, 65_535),
    'port on which Prometheus finds [the metrics](metrics.md) of this process, at `/metrics`. 0: they are off',
  ],
  metricsHost: ['METRICS_HOST', text('127.0.0.1'), 'address that the metrics are served on, without TLS'],
  otlpEndpoint: [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    text('none'),
    'address of an OpenTelemetry collector, such as `http://localhost:4318`. With it Intake sends [traces](operating.md#traces)',
  ],
  otelServiceName: ['OTEL_SERVICE_NAME', text('`intake-server`'), 'what the traces call this service'],
  otelTracesSampler: [
    'OTEL_TRACES_SAMPLER',
    text('those that a caller with a valid key traces, and 1 % of the rest'),
    'which requests are traced, such as `parentbased_traceidratio`, with the share in `OTEL_TRACES_SAMPLER_ARG`',
  ],
  redisUrl: [
    'REDIS_URL',
    text('none'),
    '`redis://host:6379`. With it all processes share the counts of the limits',
  ],
  erasureKeys: [
    'ERASURE_KEYS',
    text('none'),
    'secrets of at least 32 characters, separated by commas, that [erased people](privacy.md) are remembered by: the first for new erasures. Keep each for ever',
  ],
  requestsPerSecondMax: [
    'REQUESTS_PER_SECOND_MAX',
    wholeNumber(limits.requestsPerSecondMax, 1, 1_000_000),
    'requests a second, per organisation',
  ],
  interactionsPerSecondMax: [
    'INTERACTIONS_PER_SECOND_MAX',
    wholeNumber(limits.interactionsPerSecondMax, 1, 1_000_000),
    'interactions a second, one by one or in batches, per organisation',
  ],
  browserInteractionsPerSecondMax: [
    'BROWSER_INTERACTIONS_PER_SECOND_MAX',
    wholeNumber(limits.browserInteractionsPerSecondMax, 1, 1_000_000),
    'interactions a second with [browser keys](operating.md#browser-keys), per organisation and client address; at most a quarter of what the organisation may send',
  ],
  recordsPerSecondMax: [
    'RECORDS_PER_SECOND_MAX',
    wholeNumber(limits.recordsPerSecondMax, 1, 1_000_000_000),
    'records uploaded a second, per organisation',
  ],
  bytesInFlightPerOrganisationMax: [
    'BYTES_IN_FLIGHT_PER_ORGANISATION_MAX',
    wholeNumber(limits.bytesInFlightPerOrganisationMax, 1_024, maxInteger),
    'bytes of bodies in memory at once, per organisation and process',
  ],
  bytesInFlightMax: [
    'BYTES_IN_FLIGHT_MAX',
    wholeNumber(limits.bytesInFlightMax, 1_024, maxInteger),
    'bytes of bodies in memory at once, per process',
  ],
  failedKeysPerMinuteMax: [
    'FAILED_KEYS_PER_MINUTE_MAX',
    wholeNumber(limits.failedKeysPerMinuteMax, 1, maxInteger),
    'wrong keys a minute, per client address and process',
  ],
  recordsPerRequestMax: [
    'RECORDS_PER_REQUEST_MAX',
    wholeNumber(limits.recordsPerRequestMax, 1, 100_000),
    'records in an upload',
  ],
  coursesPerRequestMax: [
    'COURSES_PER_REQUEST_MAX',
    wholeNumber(limits.coursesPerRequestMax, 1, 100_000),
    'records in an upload of `courses`',
  ],
  bodyBytesMax: [
    'BODY_BYTES_MAX',
    wholeNumber(limits.bodyBytesMax, 1_024, 256 * 1024 * 1024),
    'bytes of a body, decompressed',
  ],
  headersTimeoutMs: [
    'HEADERS_TIMEOUT_MS',
    wholeNumber(limits.headersTimeoutMs, 100, 600_000),
    'until the headers of a request are complete. Then 408, and the connection is closed',
  ],
  requestTimeoutMs: [
    'REQUEST_TIMEOUT_MS',
    wholeNumber(limits.requestTimeoutMs, 100, 3_600_000),
    'until headers and body are complete. Then the same. At 120 s a body of 32 MiB needs 2.3 Mbit/s',
  ],
  idleTimeoutMs: [
    'IDLE_TIMEOUT_MS',
    wholeNumber(limits.idleTimeoutMs, 100, 3_600_000),
    'until a connection on which no byte moves is closed',
  ],
  connectionsMax: [
    'CONNECTIONS_MAX',
    wholeNumber(limits.connectionsMax, 1, 1_000_000),
    'client connections at once; one more is closed at once. Raise the limit on open files (`ulimit -n`) to match',
  ],
  stopTimeoutMs: [
    'STOP_TIMEOUT_MS',
    wholeNumber(limits.stopTimeoutMs, 100, 3_600_000),
    'after SIGTERM, time for requests under way to finish',
  ],
  receiptsKeptDays: [
    'RECEIPTS_KEPT_DAYS',
    wholeNumber(limits.receiptsKeptDays, 7, 3_650),
    'days that receipts and rejections are kept. Receipts are dropped by the week, so up to 7 days later',
  ],
  changesKeptDays: [
    'CHANGES_KEPT_DAYS',
    wholeNumber(limits.changesKeptDays, 2, 365),
    'days that the change log is kept: for so long a reader of the feed can stay away. Dropped by the day',
  ],
  deletedOrganisationsKeptDays: [
    'DELETED_ORGANISATIONS_KEPT_DAYS',
    wholeNumber(limits.deletedOrganisationsKeptDays, 1, 3_650),
    'days for which a [deleted organisation](operating.md#delete-an-organisation) can be restored. Then it is removed',
  ],
  apiReference: [
    'API_REFERENCE',
    oneOf('on', ['on', 'off']),
    '`off`: no `/docs` and no `/openapi.json`, on either API',
  ],
  console: [
    'CONSOLE',
    oneOf('on', ['on', 'off']),
    '`off`: no [console](console.md) at `/console`, on either port',
  ],
  logLevel: [
    'LOG_LEVEL',
    oneOf('info', logLevels),
    'the least severe lines that are logged. SIGUSR2 switches to `debug` and back',
  ],
  logInteractionsOneIn: [
    'LOG_INTERACTIONS_ONE_IN',
    wholeNumber(100, 1, 1_000_000),
    'one in so many interactions that were recorded has a line in the log, the others only at `debug`. Those that failed or took a second or more always have one. The metrics count all',
  ],
} as const satisfies Record<string, Setting>;

export interface WholeNumber {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

export interface Choice {
  readonly fallback: string;
  readonly options: readonly string[];
}

/** The default as docs/settings.md shows it: an address, or a word for what applies without one. */
interface Text {
  readonly fallback: string;
}

export type Setting<Kind = WholeNumber | Choice | Text> = readonly [
  variable: string,
  kind: Kind,
  purpose: string,
];

function wholeNumber(fallback: number, min: number, max: number): WholeNumber {
  return { fallback, min, max };
}

function oneOf(fallback: string, options: readonly string[]): Choice {
  return { fallback, options };
}

function text(fallback: string): Text {
  return { fallback };
}

/** First words that only Intake uses; others, such as DATABASE and REQUESTS, also begin variables of other programs. */
const ownWords = new Set(['COURSES', 'INTERACTIONS', 'RECEIPTS', 'RECORDS']);

/** Kubernetes sets these for every other service in the namespace, whatever its name. */
const ofKubernetes = /_SERVICE_(HOST|PORT)(_|$)|_PORT(_\d+_(TCP|UDP)(_|$)|$)/;

/**
 * A warning for each variable that resembles a setting but is none: a typo would go unnoticed, and the default would
 * apply. HOST and PORT are too short for a guess, and without DATABASE_URL the process does not start.
 */
export function misspeltSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = Object.values(settings).map(([variable]) => variable as string);
  const guessable = known.filter((name) => !['HOST', 'PORT', 'DATABASE_URL'].includes(name));
  return (
    Object.keys(env)
      // OpenTelemetry has dozens of variables, which its packages read.
      .filter((name) => !known.includes(name) && !ofKubernetes.test(name) && !name.startsWith('OTEL_'))
      .flatMap((name) => {
        const upper = name.toUpperCase();
        const [meant] = likestFirst(
          upper,
          guessable.filter((setting) => isLike(upper, setting)),
        );
        // Some platforms set one value under two names; then nothing is lost.
        if (meant === undefined || env[name] === env[meant]) return [];
        return [`${name} is not a setting; did you mean ${meant}?`];
      })
  );
}

/** Nearly the same letters, or the same beginning: two words, or one that only Intake uses. */
function isLike(name: string, setting: string): boolean {
  if (
    Math.abs(name.length - setting.length) <= 2 &&
    editDistance(name, setting) <= (setting.length < 12 ? 1 : 2)
  )
    return true;
  const [first = '', second] = name.split('_');
  const [settingFirst, settingSecond] = setting.split('_');
  return first === settingFirst && (ownWords.has(first) || second === settingSecond);
}

/** Sorts names by their similarity to the given one, so that a typo is seen at a glance. */
export function likestFirst(given: string, names: readonly string[]): string[] {
  return names.toSorted((a, b) => editDistance(given, a) - editDistance(given, b));
}

/** The Levenshtein distance. */
export function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...one].entries()) {
    const above = row;
    row = [i + 1];
    for (let j = 0; j < other.length; j++) {
      const replaced = (above[j] as number) + (letter === other[j] ? 0 : 1);
      row.push(Math.min(replaced, (above[j + 1] as number) + 1, (row[j] as number) + 1));
    }
  }
  return row[other.length] as number;
}
