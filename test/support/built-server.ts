import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { askRunHost, type HostedServer } from './ask-run-host.ts';
import { createSharedDatabase, createTestDatabase, servingUrl, throughPooler } from './database.ts';
import { type SpawnedServer, spawnServer } from './spawn-server.ts';

const builtMain = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** The built service as a separate process, as an operator would run it. This file imports nothing from src/. */
export interface BuiltServer extends SpawnedServer {
  readonly databaseUrl: string;
  /** Runs one of the program's commands on the same database, and returns its output. */
  run(...args: string[]): Promise<string>;
  /** Creates an organisation and a key for it, and returns the key. */
  createKey(organisation: string, ...scopes: string[]): Promise<string>;
}

/** Tests send requests faster than clients do, so limits are off by default. Tests that need a limit set it themselves. */
export const unlimited = {
  REQUESTS_PER_SECOND_MAX: '1000000',
  INTERACTIONS_PER_SECOND_MAX: '1000000',
  BROWSER_INTERACTIONS_PER_SECOND_MAX: '1000000',
  RECORDS_PER_SECOND_MAX: '1000000000',
  FAILED_KEYS_PER_MINUTE_MAX: '1000000000',
};

/** Starts the built server. SERVE_AS replaces the role with minimal privileges. `main` is another version's entry point. */
export async function startBuiltServer(
  env: Record<string, string> = {},
  main = builtMain,
): Promise<BuiltServer> {
  const databaseUrl = env.DATABASE_URL ?? (await createTestDatabase());
  const environment = environmentOf(databaseUrl, env);
  const server = await spawnServer(main, servingEnvironment(environment));
  return { ...server, databaseUrl, ...commandsOn(environment, main) };
}

/** Returns the environment for the commands. */
function environmentOf(databaseUrl: string, env: Record<string, string>): Environment {
  return {
    ...process.env,
    ...unlimited,
    ERASURE_KEYS: 'a key of 32 characters or more for tests',
    PORT: '0',
    LOG_LEVEL: 'info',
    DATABASE_POOLER: hasPooler(databaseUrl) ? 'on' : 'off',
    ...env,
    ...(env.ADMIN_DATABASE_URL && { ADMIN_DATABASE_URL: throughPooler(env.ADMIN_DATABASE_URL) }),
    DATABASE_URL: databaseUrl,
  };
}

interface Environment extends Record<string, string | undefined> {
  readonly DATABASE_URL: string;
  readonly DATABASE_POOLER: string;
}

function servingEnvironment(environment: Environment): Environment {
  const { DATABASE_URL, SERVE_AS } = environment;
  return { ...environment, DATABASE_URL: throughPooler(servingUrl(DATABASE_URL, SERVE_AS)) };
}

function commandsOn(environment: Environment, main: string): Pick<BuiltServer, 'run' | 'createKey'> {
  const { DATABASE_URL, DATABASE_POOLER } = environment;
  return {
    async run(...args) {
      return (await promisify(execFile)(process.execPath, [main, ...args], { env: environment })).stdout;
    },
    createKey: (organisation, ...scopes) =>
      askRunHost('key', { database: { DATABASE_URL, DATABASE_POOLER }, organisation, scopes }),
  };
}

/** A server that several test files use. It keeps running after each of them. */
export interface SharedServer extends Pick<BuiltServer, 'url' | 'databaseUrl' | 'run' | 'createKey'> {
  /** Returns the slug of an organisation that `createKey` created, which is unique to this test file. */
  slugOf(organisation: string): string;
}

/**
 * Returns the test worker's server, which has the default settings. It is only for tests that read and write their own
 * organisations, and that do not reconfigure the server or its database.
 */
export async function sharedServer(): Promise<SharedServer> {
  const name = process.env.VITEST_POOL_ID ?? '';
  const { url, databaseUrl } =
    (await askRunHost<HostedServer | null>('find-server', { name })) ?? (await startSharedServer(name));
  const suffix = randomBytes(4).toString('hex');
  const slugOf = (organisation: string) => `${organisation}-${suffix}`;
  const { run, createKey } = commandsOn(environmentOf(databaseUrl, {}), builtMain);
  return {
    url,
    databaseUrl,
    run,
    slugOf,
    createKey: (organisation, ...scopes) => createKey(slugOf(organisation), ...scopes),
  };
}

async function startSharedServer(name: string): Promise<HostedServer> {
  const databaseUrl = await createSharedDatabase();
  const env = servingEnvironment(environmentOf(databaseUrl, {}));
  return askRunHost('start-server', { name, databaseUrl, main: builtMain, env });
}

/**
 * Returns whether the service should be configured for a pooler. On Citus, a proxy between the service and the
 * coordinator also counts as a pooler. Otherwise the service would bypass the proxy and connect to the workers.
 */
function hasPooler(databaseUrl: string): boolean {
  const { port, pathname } = new URL(databaseUrl);
  const isProxied = pathname.startsWith('/test_') && port !== new URL(inject('postgresUrl')).port;
  return inject('poolerPort') !== null || (inject('citus') !== null && isProxied);
}
