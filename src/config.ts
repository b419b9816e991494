import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { limits } from './limits.ts';
import {
  type Choice,
  formerSettingsIn,
  misspeltSettings,
  type Setting,
  settings,
  type WholeNumber,
} from './settings.ts';

/** The integer settings, except the admin API's port, which is read together with the other admin settings. */
type WholeNumberName = Exclude<
  {
    [Name in keyof typeof settings]: (typeof settings)[Name][1] extends WholeNumber ? Name : never;
  }[keyof typeof settings],
  'adminPort'
>;

/** All settings, read once at startup. */
export interface Config extends Readonly<Record<WholeNumberName, number>> {
  readonly databaseUrl: string;
  /** Whether connections go through a pooler in transaction mode. If so, they must not leave any session state behind. */
  readonly databasePooler: boolean;
  readonly host: string;
  /**
   * Whether other processes may listen on the same ports. The metrics port is never shared, because each process reports
   * its own metrics.
   */
  readonly reusePort: boolean;
  readonly metricsHost: string;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly trustedProxy: readonly string[];
  readonly redisUrl: string | null;
  /** Empty if erasures are disabled. */
  readonly erasureKeys: readonly string[];
  /** Null if there is no lake. */
  readonly lakeUrl: string | null;
  /** Null if tracing is off. The OpenTelemetry packages themselves read all other `OTEL_` variables. */
  readonly traces: { readonly hasSampler: boolean } | null;
  readonly admin: AdminConfig | null;
  /** Whether `/docs` and `/openapi.json` are served on both APIs. */
  readonly apiReference: boolean;
  /** Whether `/console` is served on both ports. */
  readonly console: boolean;
  readonly logLevel: string;
  /** Warnings about settings that work but should not be used. */
  readonly warnings: readonly string[];
}

export type DatabaseConfig = Pick<
  Config,
  'databaseUrl' | 'databasePooler' | 'databaseConnectionsMax' | 'databaseTimeoutMs'
>;

export interface AdminConfig {
  readonly host: string;
  readonly port: number;
  readonly databaseUrl: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Lists every invalid setting together with the value it should have. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(`The settings cannot be used:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
  }
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/**
 * Reads the settings from the environment. Values in `given` override the environment, and `fallbacks` apply to variables
 * that are not set.
 */
export function readConfig(given: Environment = {}, fallbacks: Environment = {}): Config {
  const env: Environment = { ...fallbacks, ...withoutEmpty(process.env), ...withoutEmpty(given) };
  const problems: string[] = [];
  const warnings: string[] = [];
  const numbers = Object.entries<Setting>(settings).flatMap(([name, setting]) =>
    isWholeNumber(setting) && name !== 'adminPort' ? [[name, readWholeNumber(env, setting, problems)]] : [],
  );
  const config: Config = {
    ...(Object.fromEntries(numbers) as Record<WholeNumberName, number>),
    databaseUrl: readDatabaseUrl('DATABASE_URL', env, problems, warnings),
    databasePooler: readChoice(env, settings.databasePooler, problems) === 'on',
    host: env.HOST || settings.host[1].fallback,
    reusePort: readChoice(env, settings.reusePort, problems) === 'on',
    metricsHost: env.METRICS_HOST || settings.metricsHost[1].fallback,
    tls: readTls(env, problems),
    trustedProxy: readTrustedProxy(env.TRUSTED_PROXY, problems),
    redisUrl: readRedisUrl(env.REDIS_URL, problems),
    erasureKeys: readErasureKeys(env.ERASURE_KEYS, problems),
    lakeUrl: readLakeUrl(env.LAKE_URL, problems),
    traces: readTraces(env, problems),
    admin: readAdmin(env, problems, warnings),
    apiReference: readChoice(env, settings.apiReference, problems) === 'on',
    console: readChoice(env, settings.console, problems) === 'on',
    logLevel: readChoice(env, settings.logLevel, problems),
    warnings,
  };
  problems.push(...contradictions(config));
  warnings.push(...formerSettingsIn(env));
  const misspelt = misspeltSettings(env);
  if (problems.length > 0) throw new ConfigError([...problems, ...misspelt]);
  warnings.push(...misspelt);
  return Object.freeze(config);
}

/** An empty variable counts as unset, because Compose and units cannot leave one out, only leave it empty. */
function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim()));
}

/**
 * Reads the settings for a command that does not serve requests. In an emergency, such a command must not fail because of
 * an invalid setting that only the server needs.
 */
export function readDatabaseConfig(): DatabaseConfig {
  const problems: string[] = [];
  const env = withoutEmpty(process.env);
  const config = {
    databaseUrl: readDatabaseUrl('DATABASE_URL', env, problems, []),
    databasePooler: readChoice(env, settings.databasePooler, problems) === 'on',
    databaseConnectionsMax: readWholeNumber(env, settings.databaseConnectionsMax, problems),
    databaseTimeoutMs: readWholeNumber(env, settings.databaseTimeoutMs, problems),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** The settings for a command that reads or stores an organisation's data and writes audit log entries as the operator. */
export interface MoveConfig extends DatabaseConfig {
  readonly adminDatabaseUrl: string;
  readonly erasureKeys: readonly string[];
}

export function readMoveConfig(): MoveConfig {
  const problems: string[] = [];
  const adminDatabaseUrl = readDatabaseUrl('ADMIN_DATABASE_URL', process.env, problems, []);
  const erasureKeys = readErasureKeys(process.env.ERASURE_KEYS, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return { ...readDatabaseConfig(), adminDatabaseUrl, erasureKeys };
}

/**
 * Reads one setting for a command that only displays it. If the value is invalid, which would keep the server from
 * starting, the default is returned.
 */
export function readSetting(setting: Setting<WholeNumber>): number {
  return readWholeNumber(process.env, setting, []);
}

function isWholeNumber(setting: Setting): setting is Setting<WholeNumber> {
  return 'min' in setting[1];
}

function readWholeNumber(
  env: Environment,
  [variable, { fallback, min, max }]: Setting<WholeNumber>,
  problems: string[],
): number {
  const value = env[variable];
  if (value === undefined || value === '') return fallback;
  const read = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (read >= min && read <= max) return read;
  problems.push(`${variable} must be a whole number from ${min} to ${max}, not "${value}"`);
  return fallback;
}

function readChoice(
  env: Environment,
  [variable, { fallback, options }]: Setting<Choice>,
  problems: string[],
): string {
  const value = env[variable] || fallback;
  if (!options.includes(value))
    problems.push(`${variable} must be one of ${options.join(', ')}, not "${value}"`);
  return value;
}

/** Returns the problems with settings that are valid on their own but not in combination. */
function contradictions(config: Config): string[] {
  const problems: string[] = [];
  if (!config.tls && config.trustedProxy.length === 0) {
    if (!isLoopback(config.host)) problems.push(inTheClear('HOST', config.host));
    if (config.admin && !isLoopback(config.admin.host))
      problems.push(inTheClear('ADMIN_HOST', config.admin.host));
  }
  if (config.admin && config.admin.port !== 0 && config.admin.port === config.port)
    problems.push('ADMIN_PORT must not be PORT: the admin API has its own port');
  if (config.metricsPort !== 0 && [config.port, config.admin?.port].includes(config.metricsPort))
    problems.push('METRICS_PORT must be neither PORT nor ADMIN_PORT: the metrics have their own port');
  const recordsPerSecondMin = Math.ceil(config.recordsPerRequestMax / limits.limitWindowSeconds);
  if (config.recordsPerSecondMax < recordsPerSecondMin) {
    problems.push(
      `RECORDS_PER_SECOND_MAX must be ${recordsPerSecondMin} or more, or an upload of ${config.recordsPerRequestMax} records could never pass`,
    );
  }
  if (config.bodyBytesMax > Math.min(config.bytesInFlightMax, config.bytesInFlightPerOrganisationMax)) {
    problems.push(
      'BYTES_IN_FLIGHT_MAX and BYTES_IN_FLIGHT_PER_ORGANISATION_MAX must be BODY_BYTES_MAX or more, or the largest body could never pass',
    );
  }
  return problems;
}

function readAdmin(env: Environment, problems: string[], warnings: string[]): AdminConfig | null {
  if (!env.ADMIN_DATABASE_URL) return null;
  return {
    host: env.ADMIN_HOST || settings.adminHost[1].fallback,
    port: readWholeNumber(env, settings.adminPort, problems),
    databaseUrl: readDatabaseUrl('ADMIN_DATABASE_URL', env, problems, warnings),
  };
}

function inTheClear(name: string, host: string): string {
  return (
    `${name} is ${host}, which others can reach, and nothing encrypts the traffic: set TLS_CERT_FILE and ` +
    `TLS_KEY_FILE, or TRUSTED_PROXY to the address of the proxy that does, or ${name} to 127.0.0.1`
  );
}

function readDatabaseUrl(
  name: 'DATABASE_URL' | 'ADMIN_DATABASE_URL',
  { [name]: value, PGHOST: defaultHost }: Environment,
  problems: string[],
  warnings: string[],
): string {
  const shape = 'postgres://user:password@host:5432/database';
  if (!value) {
    problems.push(`${name} is missing; it should look like ${shape}`);
    return '';
  }
  // The message does not repeat the value, because it contains a password.
  if (!/^postgres(ql)?:\/\//.test(value) || !URL.canParse(value)) {
    problems.push(`${name} is not an address of PostgreSQL; it should look like ${shape}`);
    return value;
  }
  const { hostname, searchParams } = new URL(value);
  // If the URL has no host, the driver uses a default.
  const hosts = [...searchParams.getAll('host'), decodeURIComponent(hostname) || (defaultHost ?? '')];
  const modes = new Set(searchParams.getAll('sslmode'));
  const [sslmode] = modes.size === 1 ? modes : [];
  if (hosts.every(isHere) || sslmode === 'verify-full') return value;
  if (sslmode === 'disable')
    warnings.push(`${name} has sslmode=disable: anyone on the network path can read everything`);
  else {
    problems.push(
      `${name} points at another machine and does not require its certificate to be verified: add ` +
        'sslmode=verify-full (and sslrootcert=<file> for your own certificate authority), or sslmode=disable on a network ' +
        'that nobody else can reach',
    );
  }
  return value;
}

/** Returns whether the host is a Unix socket or a loopback address. */
function isHere(host: string): boolean {
  return host === '' || host.startsWith('/') || isLoopback(host.replace(/^\[|\]$/g, ''));
}

function readRedisUrl(value: string | undefined, problems: string[]): string | null {
  if (!value) return null;
  if (!/^rediss?:\/\//.test(value) || !URL.canParse(value))
    problems.push('REDIS_URL is not an address of Redis or Valkey; it should look like redis://host:6379');
  return value;
}

function readErasureKeys(value: string | undefined, problems: string[]): string[] {
  const keys = value?.trim() ? value.split(',').map((key) => key.trim()) : [];
  if (keys.some((key) => key.length < 32))
    problems.push(
      'ERASURE_KEYS has a key of fewer than 32 characters; make one with: openssl rand -base64 32',
    );
  return keys;
}

function readLakeUrl(value: string | undefined, problems: string[]): string | null {
  if (!value) return null;
  problems.push(...lakeUrlProblems(value));
  return value;
}

/** The problems do not repeat the value, because it could contain credentials. */
export function lakeUrlProblems(value: string): string[] {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isFolder = url?.protocol === 'file:' && url.host === '' && url.pathname.length > 1;
  const isBucket = url?.protocol === 's3:' && url.hostname !== '' && url.host === url.hostname;
  if (!url || !(isFolder || isBucket) || url.username || url.password || url.hash)
    return ['LAKE_URL must be a folder, such as file:///srv/lake, or s3://bucket/prefix'];
  const names = [...url.searchParams.keys()];
  if (isFolder && names.length > 0) return ['LAKE_URL has parameters, but a folder has none'];
  const problems = names
    .filter((name) => name !== 'endpoint' && name !== 'region')
    .map((name) => `LAKE_URL has the parameter ${name}; it can only have endpoint and region`);
  if (new Set(names).size < names.length) problems.push('LAKE_URL has a parameter twice');
  if (url.searchParams.get('region') === '')
    problems.push('LAKE_URL has an empty region; give it or leave it out');
  const endpoint = url.searchParams.get('endpoint');
  if (endpoint !== null && !isEndpoint(endpoint))
    problems.push(
      'LAKE_URL must have an endpoint such as https://host:9000, without a user name, password or parameters; set ' +
        'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead',
    );
  return problems;
}

function isEndpoint(value: string): boolean {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  return (
    /^https?:$/.test(url?.protocol ?? '') && !(url?.username || url?.password || url?.search || url?.hash)
  );
}

const samplers = ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]);

function readTraces(env: Environment, problems: string[]): Config['traces'] {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER: sampler } = env;
  if (!endpoint) return null;
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint))
    problems.push(
      'OTEL_EXPORTER_OTLP_ENDPOINT is not an address of a collector; it should look like http://localhost:4318',
    );
  // If the sampler's name were unknown, the library would trace everything.
  if (sampler && !samplers.includes(sampler))
    problems.push(`OTEL_TRACES_SAMPLER must be one of ${samplers.join(', ')}`);
  return { hasSampler: Boolean(sampler) };
}

function readTls(env: Environment, problems: string[]): Config['tls'] {
  const { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } = env;
  if (certFile && keyFile) {
    tryCertificate(certFile, keyFile, problems);
    return { certFile, keyFile };
  }
  if (certFile)
    problems.push('TLS_KEY_FILE is missing; TLS_CERT_FILE needs the private key that belongs to it');
  if (keyFile)
    problems.push('TLS_CERT_FILE is missing; TLS_KEY_FILE needs the certificate that belongs to it');
  return null;
}

/**
 * Throws unless the certificate is currently valid and matches the key. Without this check, a mismatch would only show up
 * later.
 */
export function checkCertificate(cert: Buffer, key: Buffer): void {
  createSecureContext({ cert, key });
  const certificate = new X509Certificate(cert);
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    throw new Error('the key does not belong to the certificate');
  const { validFromDate: from, validToDate: to } = certificate;
  if (to.getTime() <= Date.now())
    throw new OutOfDate(`the certificate expired at ${to.toISOString()}; renew it`);
  if (from.getTime() > Date.now())
    throw new OutOfDate(
      `the certificate is not valid before ${from.toISOString()}; use the current one until then, or correct the clock`,
    );
}

/** Thrown if the certificate has expired or is not valid yet, because clients would refuse it. */
export class OutOfDate extends Error {}

function tryCertificate(certFile: string, keyFile: string, problems: string[]): void {
  const read = (name: string, file: string): Buffer | undefined => {
    try {
      return readFileSync(file);
    } catch (error) {
      const { code } = error as { code?: string };
      problems.push(`${name} is ${file}, which cannot be read (${code}); it should be a PEM file`);
      return undefined;
    }
  };
  const cert = read('TLS_CERT_FILE', certFile);
  const key = read('TLS_KEY_FILE', keyFile);
  if (!cert || !key) return;
  try {
    checkCertificate(cert, key);
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof OutOfDate) problems.push(`TLS_CERT_FILE is ${certFile}: ${message}`);
    else
      problems.push(
        `TLS_CERT_FILE and TLS_KEY_FILE must be a certificate and the key that belongs to it, both PEM (${message})`,
      );
  }
}

function readTrustedProxy(value: string | undefined, problems: string[]): string[] {
  const addresses = (value ?? '').split(',').map((address) => address.trim());
  const given = addresses.filter((address) => address !== '');
  for (const address of given) {
    const [ip = '', bits = '0', ...rest] = address.split('/');
    if (
      isIP(ip) === 0 ||
      !/^\d{1,3}$/.test(bits) ||
      Number(bits) > (isIP(ip) === 4 ? 32 : 128) ||
      rest.length > 0
    ) {
      problems.push(
        `TRUSTED_PROXY must be addresses such as 10.0.0.5 or 10.0.0.0/8, separated by commas, not "${address}"`,
      );
    }
  }
  return given;
}

/**
 * Returns the package's version and, in a build, the commit. The path of package.json is the same from `src/` and from
 * `dist/`.
 */
export function version(): string {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
  const commit = existsSync(new URL('commit', import.meta.url)) ? read('commit') : '';
  return JSON.parse(read('../package.json')).version + (commit && `+${commit}`);
}
