import { limits } from './limits.ts';

const maxInteger = 2_147_483_647;

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** The settings that most installations need. docs/operating/settings.md is generated from these tables, in the same order. */
export const neededSettings = {
  databaseUrl: [
    'DATABASE_URL',
    text('required'),
    'The address of PostgreSQL, `postgres://user:password@host:5432/database`. If PostgreSQL is on another machine, append `?sslmode=verify-full`.',
  ],
  adminDatabaseUrl: [
    'ADMIN_DATABASE_URL',
    text('none'),
    "The address of PostgreSQL with the admin API's login, a member of `intake_admin`. If it is set, Intake serves [the admin API](organisations.md#admin-api).",
  ],
  host: [
    'HOST',
    text('127.0.0.1'),
    'The address to listen on. Addresses other than loopback require TLS or a trusted proxy.',
  ],
  port: ['PORT', wholeNumber(8080, 0, 65_535), 'The port to listen on. 0 chooses a free port.'],
  tlsCertFile: [
    'TLS_CERT_FILE',
    text('none'),
    'The TLS certificate (PEM). With a certificate and its key, Intake serves HTTPS.',
  ],
  tlsKeyFile: [
    'TLS_KEY_FILE',
    text('none'),
    "The certificate's private key. If you replace the files, Intake loads them without a restart.",
  ],
  trustedProxy: [
    'TRUSTED_PROXY',
    text('none'),
    'The addresses of the proxy that serves HTTPS in front of Intake, such as `10.0.0.5` or `10.0.0.0/8`, separated by commas.',
  ],
  redisUrl: [
    'REDIS_URL',
    text('none'),
    'The address of Redis, such as `redis://host:6379`. If it is set, all processes share the same rate-limit counters.',
  ],
  erasureKeys: [
    'ERASURE_KEYS',
    text('none'),
    'Secret keys for hashing the ids of [erased people](organisations.md#erasures-and-access-requests), each with at least 32 characters, separated by commas. New erasures use the first key. Append a new key in all processes before you move it to the front, and keep all keys forever.',
  ],
  lakeUrl: [
    'LAKE_URL',
    text('none'),
    'The folder or bucket to which `intake-server lake` writes [the lake](../lake.md), and from which `serve` reads it, such as `file:///srv/lake` or `s3://bucket/prefix`.',
  ],
  metricsPort: [
    'METRICS_PORT',
    wholeNumber(0, 0, 65_535),
    'The port on which this process serves [its metrics](metrics.md) for Prometheus, at `/metrics`. 0 disables them.',
  ],
  metricsHost: [
    'METRICS_HOST',
    text('127.0.0.1'),
    'The address that the metrics port listens on, without TLS.',
  ],
} as const satisfies Record<string, Setting>;

/** The settings whose defaults suit most installations. */
export const advancedSettings = {
  databasePooler: [
    'DATABASE_POOLER',
    oneOf('off', ['on', 'off']),
    '`on` means that `DATABASE_URL` points to [PgBouncer in transaction mode](setup.md#pgbouncer).',
  ],
  databaseConnectionsMax: [
    'DATABASE_CONNECTIONS_MAX',
    wholeNumber(10, 1, 1_000),
    'The maximum number of connections per process for uploads and reads. In a cluster, it covers all nodes. A process opens [more](day-two.md#connections-and-memory) for other purposes.',
  ],
  databaseTimeoutMs: [
    'DATABASE_TIMEOUT_MS',
    wholeNumber(30_000, 100, 600_000),
    'PostgreSQL cancels statements that take longer than this.',
  ],
  reusePort: [
    'REUSE_PORT',
    oneOf('off', ['on', 'off']),
    '`on` lets several processes listen on the same `PORT` and `ADMIN_PORT`. The kernel distributes new connections among them (Linux only).',
  ],
  adminHost: ['ADMIN_HOST', text('127.0.0.1'), 'The address that the admin API listens on.'],
  adminPort: [
    'ADMIN_PORT',
    wholeNumber(8081, 0, 65_535),
    "The admin API's port. It must differ from `PORT`.",
  ],
  otlpEndpoint: [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    text('none'),
    'The address of an OpenTelemetry collector, such as `http://localhost:4318`. If it is set, Intake sends [traces](day-two.md#traces).',
  ],
  otelServiceName: ['OTEL_SERVICE_NAME', text('`intake-server`'), 'The service name in traces.'],
  otelTracesSampler: [
    'OTEL_TRACES_SAMPLER',
    text('requests that a caller with a valid key traces, and 1 % of all others'),
    'Chooses the requests to trace. Example: `parentbased_traceidratio`, with the ratio in `OTEL_TRACES_SAMPLER_ARG`.',
  ],
  requestsPerSecondMax: [
    'REQUESTS_PER_SECOND_MAX',
    wholeNumber(limits.requestsPerSecondMax, 1, 1_000_000),
    'The maximum number of requests per second for each organisation. Requests that record interactions do not count.',
  ],
  interactionsPerSecondMax: [
    'INTERACTIONS_PER_SECOND_MAX',
    wholeNumber(limits.interactionsPerSecondMax, 1, 1_000_000),
    'The maximum number of interactions per second for each organisation, single or in batches.',
  ],
  browserInteractionsPerSecondMax: [
    'BROWSER_INTERACTIONS_PER_SECOND_MAX',
    wholeNumber(limits.browserInteractionsPerSecondMax, 1, 1_000_000),
    "The maximum number of interactions per second with [browser keys](organisations.md#browser-keys), for each organisation and client address. A client address can use at most a quarter of its organisation's limit.",
  ],
  recordsPerSecondMax: [
    'RECORDS_PER_SECOND_MAX',
    wholeNumber(limits.recordsPerSecondMax, 1, 1_000_000_000),
    'The maximum number of uploaded records per second for each organisation.',
  ],
  bytesInFlightPerOrganisationMax: [
    'BYTES_IN_FLIGHT_PER_ORGANISATION_MAX',
    wholeNumber(limits.bytesInFlightPerOrganisationMax, 1_024, maxInteger),
    'The maximum size in bytes of all bodies that a process holds in memory for one organisation.',
  ],
  bytesInFlightMax: [
    'BYTES_IN_FLIGHT_MAX',
    wholeNumber(limits.bytesInFlightMax, 1_024, maxInteger),
    'The maximum size in bytes of all bodies that a process holds in memory.',
  ],
  failedKeysPerMinuteMax: [
    'FAILED_KEYS_PER_MINUTE_MAX',
    wholeNumber(limits.failedKeysPerMinuteMax, 1, maxInteger),
    'The number of wrong keys per minute after which a client address gets 429 from a process.',
  ],
  recordsPerRequestMax: [
    'RECORDS_PER_REQUEST_MAX',
    wholeNumber(limits.recordsPerRequestMax, 1, 100_000),
    'The maximum number of records in an upload.',
  ],
  bodyBytesMax: [
    'BODY_BYTES_MAX',
    wholeNumber(limits.bodyBytesMax, 1_024, 256 * 1024 * 1024),
    'The maximum size of a decompressed request body in bytes.',
  ],
  headersTimeoutMs: [
    'HEADERS_TIMEOUT_MS',
    wholeNumber(limits.headersTimeoutMs, 100, 600_000),
    "The time that a client has to send a request's headers. After that it gets 408, and the connection is closed.",
  ],
  requestTimeoutMs: [
    'REQUEST_TIMEOUT_MS',
    wholeNumber(limits.requestTimeoutMs, 100, 3_600_000),
    'The time that a client has to send the headers and the body. After that it gets 408, and the connection is closed. To send 32 MiB in 120 s, a client needs 2.3 Mbit/s.',
  ],
  idleTimeoutMs: [
    'IDLE_TIMEOUT_MS',
    wholeNumber(limits.idleTimeoutMs, 100, 3_600_000),
    'The time after which a connection without traffic is closed. Between two requests it is at most 75 seconds.',
  ],
  connectionsMax: [
    'CONNECTIONS_MAX',
    wholeNumber(limits.connectionsMax, 1, 1_000_000),
    'The maximum number of client connections. Further connections are closed immediately. Raise the limit on open files (`ulimit -n`) to match.',
  ],
  stopTimeoutMs: [
    'STOP_TIMEOUT_MS',
    wholeNumber(limits.stopTimeoutMs, 100, 3_600_000),
    'The time that requests in progress have to finish after SIGTERM.',
  ],
  receiptsKeptDays: [
    'RECEIPTS_KEPT_DAYS',
    wholeNumber(limits.receiptsKeptDays, 7, 3_650),
    'The number of days for which receipts, runs and rejections are kept. Receipts and runs are deleted a week at a time, so they are kept up to 7 days longer.',
  ],
  changesKeptDays: [
    'CHANGES_KEPT_DAYS',
    wholeNumber(limits.changesKeptDays, 2, 365),
    'The number of days for which the change log is kept, which is the longest time that a feed reader can be offline. Old entries are deleted a day at a time.',
  ],
  deletedOrganisationsKeptDays: [
    'DELETED_ORGANISATIONS_KEPT_DAYS',
    wholeNumber(limits.deletedOrganisationsKeptDays, 1, 3_650),
    'The number of days for which a [deleted organisation](organisations.md#delete-an-organisation) can be restored. After that it is removed permanently.',
  ],
  lakeDelaySeconds: [
    'LAKE_DELAY_SECONDS',
    wholeNumber(3_600, 1, 86_400),
    "The longest time that an organisation's new rows wait before they are written to the lake. If there are many new rows, they wait at most a minute.",
  ],
  apiReference: [
    'API_REFERENCE',
    oneOf('on', ['on', 'off']),
    '`off` disables `/docs` and `/openapi.json` on both APIs.',
  ],
  console: [
    'CONSOLE',
    oneOf('on', ['on', 'off']),
    '`off` disables the [console](../uploading/console.md) at `/console` on both ports.',
  ],
  logLevel: [
    'LOG_LEVEL',
    oneOf('info', logLevels),
    'The lowest severity that is logged. SIGUSR2 switches to `debug` and back.',
  ],
} as const satisfies Record<string, Setting>;

/** Every setting with its variable, its type, its default and its purpose. */
export const settings = { ...neededSettings, ...advancedSettings } as const;

/** Variables that were settings in an earlier version. If one is still set, Intake logs a warning and ignores it. */
const formerSettings: Readonly<Record<string, string>> = {
  ADMIN_TOKEN:
    'issue tokens with intake-server tokens issue, and set ADMIN_DATABASE_URL to serve the admin API',
  COURSES_PER_REQUEST_MAX: `an upload of courses has at most ${limits.coursesPerRequestMax} records`,
  LOG_INTERACTIONS_ONE_IN: `one in ${limits.interactionsPerLogLine} recorded interactions is logged`,
};

export interface WholeNumber {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

export interface Choice {
  readonly fallback: string;
  readonly options: readonly string[];
}

/**
 * A text setting. `fallback` is the default that docs/operating/settings.md shows. It is a URL, or a word that describes
 * what happens if the variable is not set.
 */
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

/**
 * First words of variable names that only Intake uses. Other first words, such as DATABASE and REQUESTS, are also common
 * in other programs' variables.
 */
const ownWords = new Set(['INTERACTIONS', 'RECEIPTS', 'RECORDS']);

/** Kubernetes sets these variables for every other service in the namespace, whatever its name. */
const ofKubernetes = /_SERVICE_(HOST|PORT)(_|$)|_PORT(_\d+_(TCP|UDP)(_|$)|$)/;

/** Returns a warning for each variable that is no longer a setting. */
export function formerSettingsIn(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(formerSettings).flatMap(([name, instead]) =>
    env[name] ? [`${name} is no longer a setting and is ignored: ${instead}`] : [],
  );
}

/**
 * Returns a warning for each variable that resembles a setting but is not one. Otherwise a typo would go unnoticed, and
 * the default would apply. HOST and PORT are too short to guess from, and without DATABASE_URL the process does not start.
 */
export function misspeltSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = Object.values(settings).map(([variable]) => variable as string);
  const guessable = known.filter((name) => !['HOST', 'PORT', 'DATABASE_URL'].includes(name));
  return (
    Object.keys(env)
      // OpenTelemetry has dozens of variables that its own packages read.
      .filter((name) => !known.includes(name) && !ofKubernetes.test(name) && !name.startsWith('OTEL_'))
      .flatMap((name) => {
        const upper = name.toUpperCase();
        const [meant] = sortBySimilarity(
          upper,
          guessable.filter((setting) => isLike(upper, setting)),
        );
        // Some platforms set the same value under two names. In that case the setting has its value, so there is no need
        // for a warning.
        if (meant === undefined || env[name] === env[meant]) return [];
        return [`${name} is not a setting; did you mean ${meant}?`];
      })
  );
}

/**
 * Returns whether two names have almost the same letters or the same prefix. The prefix must have two words, or one word
 * that only Intake uses.
 */
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

/** The most similar name comes first, so that a typo is easy to spot. */
export function sortBySimilarity(given: string, names: readonly string[]): string[] {
  return names.toSorted((a, b) => editDistance(given, a) - editDistance(given, b));
}

/** Computes the Levenshtein distance. */
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
