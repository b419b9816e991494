import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { limits } from './limits.ts';

/** Everything that can be set from outside, read once at start. */
export interface Config {
  readonly databaseUrl: string;
  readonly databaseConnectionsMax: number;
  readonly databaseTimeoutMs: number;
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly trustedProxy: readonly string[];
  readonly requestsPerSecondMax: number;
  readonly interactionsPerSecondMax: number;
  readonly recordsPerSecondMax: number;
  readonly recordsPerRequestMax: number;
  readonly coursesPerRequestMax: number;
  readonly bodyBytesMax: number;
  readonly receiptsKeptDays: number;
  readonly logLevel: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** What the operator reads when settings are wrong: every one of them, each with what it should be. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(`The settings cannot be used:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
  }
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
const loopback = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

/** Reads the settings from the environment; what is `given` goes before it, `fallbacks` behind. */
export function readConfig(given: Environment = {}, fallbacks: Environment = {}): Config {
  const env: Environment = { ...fallbacks, ...process.env, ...given };
  const problems: string[] = [];
  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const value = env[name];
    if (value === undefined || value === '') return fallback;
    const read = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
    if (read >= min && read <= max) return read;
    problems.push(`${name} must be a whole number from ${min} to ${max}, not "${value}"`);
    return fallback;
  };
  const config: Config = {
    databaseUrl: readDatabaseUrl(env.DATABASE_URL, problems),
    databaseConnectionsMax: integer('DATABASE_CONNECTIONS_MAX', 10, 1, 1_000),
    databaseTimeoutMs: integer('DATABASE_TIMEOUT_MS', 30_000, 100, 600_000),
    host: env.HOST || '127.0.0.1',
    port: integer('PORT', 8080, 0, 65_535),
    tls: readTls(env, problems),
    trustedProxy: readTrustedProxy(env.TRUSTED_PROXY, problems),
    requestsPerSecondMax: integer('REQUESTS_PER_SECOND_MAX', limits.requestsPerSecondMax, 1, 1_000_000),
    interactionsPerSecondMax: integer(
      'INTERACTIONS_PER_SECOND_MAX',
      limits.interactionsPerSecondMax,
      1,
      1_000_000,
    ),
    recordsPerSecondMax: integer('RECORDS_PER_SECOND_MAX', limits.recordsPerSecondMax, 1, 1_000_000_000),
    recordsPerRequestMax: integer('RECORDS_PER_REQUEST_MAX', limits.recordsPerRequestMax, 1, 100_000),
    coursesPerRequestMax: integer('COURSES_PER_REQUEST_MAX', limits.coursesPerRequestMax, 1, 100_000),
    bodyBytesMax: integer('BODY_BYTES_MAX', limits.bodyBytesMax, 1_024, 256 * 1024 * 1024),
    receiptsKeptDays: integer('RECEIPTS_KEPT_DAYS', limits.receiptsKeptDays, 7, 3_650),
    logLevel: env.LOG_LEVEL || 'info',
  };
  if (!logLevels.includes(config.logLevel)) {
    problems.push(`LOG_LEVEL must be one of ${logLevels.join(', ')}, not "${config.logLevel}"`);
  }
  if (!config.tls && config.trustedProxy.length === 0 && !loopback.test(config.host)) {
    problems.push(
      `HOST is ${config.host}, which others can reach, and nothing encrypts the traffic: set TLS_CERT_FILE and ` +
        'TLS_KEY_FILE, or TRUSTED_PROXY to the address of the proxy that does, or HOST to 127.0.0.1',
    );
  }
  const recordsMax = Math.max(config.recordsPerRequestMax, config.coursesPerRequestMax);
  const recordsPerSecondMin = Math.ceil(recordsMax / limits.limitWindowSeconds);
  if (config.recordsPerSecondMax < recordsPerSecondMin) {
    problems.push(
      `RECORDS_PER_SECOND_MAX must be ${recordsPerSecondMin} or more, or an upload of ${recordsMax} records could never pass`,
    );
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);
}

function readDatabaseUrl(value: string | undefined, problems: string[]): string {
  const shape = 'postgres://user:password@host:5432/database';
  if (!value) {
    problems.push(`DATABASE_URL is missing; it should look like ${shape}`);
    return '';
  }
  // The value is not repeated in the message: it holds a password.
  if (!/^postgres(ql)?:\/\//.test(value) || !URL.canParse(value)) {
    problems.push(`DATABASE_URL is not an address of PostgreSQL; it should look like ${shape}`);
  }
  return value;
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

function tryCertificate(certFile: string, keyFile: string, problems: string[]): void {
  const read = (name: string, file: string): Buffer | undefined => {
    try {
      return readFileSync(file);
    } catch (error) {
      const { code } = error as { code?: string };
      problems.push(`${name} is ${file}, which cannot be read (${code}); it should name a PEM file`);
      return undefined;
    }
  };
  const cert = read('TLS_CERT_FILE', certFile);
  const key = read('TLS_KEY_FILE', keyFile);
  if (!cert || !key) return;
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const { message } = error as Error;
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
