import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { askRunHost, type HostedServer } from './ask-run-host.ts';
import { createSharedDatabase, createTestDatabase, servingUrl, throughPooler } from './database.ts';
import { type SpawnedServer, spawnServer } from './spawn-server.ts';

const builtMain = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** The built service as a process of its own, as an operator would run it. Knows nothing of the source. */
export interface BuiltServer extends SpawnedServer {
  readonly databaseUrl: string;
  /** Runs a command of the same program on the same database; returns what it printed. */
  run(...args: string[]): Promise<string>;
  /** Makes an organisation and a key for it; returns the key. */
  createKey(organisation: string, ...scopes: string[]): Promise<string>;
}

/** A test sends more in a moment than a client would; the test of the limits sets them again. */
export const unlimited = {
  REQUESTS_PER_SECOND_MAX: '1000000',
  INTERACTIONS_PER_SECOND_MAX: '1000000',
  BROWSER_INTERACTIONS_PER_SECOND_MAX: '1000000',
  RECORDS_PER_SECOND_MAX: '1000000000',
  FAILED_KEYS_PER_MINUTE_MAX: '1000000000',
};

/** SERVE_AS names another role than the one that may do just what the service does; `main` another version's program. */
export async function startBuiltServer(
  env: Record<string, string> = {},
  main = builtMain,
): Promise<BuiltServer> {
  const databaseUrl = env.DATABASE_URL ?? (await createTestDatabase());
  const environment = environmentOf(databaseUrl, env);
  const server = await spawnServer(main, servingEnvironment(environment));
  return { ...server, databaseUrl, ...commandsOn(environment, main) };
}

/** What the commands run with. */
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

/** A server that other test files use too. It stays when the file ends. */
export interface SharedServer extends Pick<BuiltServer, 'url' | 'databaseUrl' | 'run' | 'createKey'> {
  /** The slug of an organisation that `createKey` created: no other file has it. */
  slugOf(organisation: string): string;
}

/**
 * The server of this worker, with the default settings. Only for tests that look at their own organisations, and leave
 * the server and its database as they found them.
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
 * On Citus, what a test has put between the service and the coordinator counts as a pooler: the service must not go
 * past it, straight to the workers.
 */
function hasPooler(databaseUrl: string): boolean {
  const { port, pathname } = new URL(databaseUrl);
  const isProxied = pathname.startsWith('/test_') && port !== new URL(inject('postgresUrl')).port;
  return inject('poolerPort') !== null || (inject('citus') !== null && isProxied);
}
