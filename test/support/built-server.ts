import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { createTestDatabase, servingUrl, throughPooler } from './database.ts';

const builtMain = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** The built service as a process of its own, as an operator would run it. Knows nothing of the source. */
export interface BuiltServer {
  readonly url: string;
  readonly databaseUrl: string;
  readonly process: ChildProcess;
  /** What it has written to its log so far, a line each. */
  readonly log: readonly string[];
  /** Runs a command of the same program on the same database; returns what it printed. */
  run(...args: string[]): Promise<string>;
  /** Makes an organisation and a key for it; returns the key. */
  createKey(organisation: string, ...scopes: string[]): Promise<string>;
  stop(): Promise<void>;
}

/** A test sends more in a moment than a client would; the test of the limits sets them again. */
export const unlimited = {
  REQUESTS_PER_SECOND_MAX: '1000000',
  INTERACTIONS_PER_SECOND_MAX: '1000000',
  RECORDS_PER_SECOND_MAX: '1000000000',
  FAILED_KEYS_PER_MINUTE_MAX: '1000000000',
};

/** SERVE_AS names another role than the one that may do just what the service does; `main` another version's program. */
export async function startBuiltServer(
  env: Record<string, string> = {},
  main = builtMain,
): Promise<BuiltServer> {
  const databaseUrl = env.DATABASE_URL ?? (await createTestDatabase());
  const environment = {
    ...process.env,
    ...unlimited,
    DATABASE_URL: databaseUrl,
    PORT: '0',
    LOG_LEVEL: 'info',
    DATABASE_POOLER: hasPooler(databaseUrl) ? 'on' : 'off',
    ...env,
    ...(env.ADMIN_DATABASE_URL && { ADMIN_DATABASE_URL: throughPooler(env.ADMIN_DATABASE_URL) }),
  };
  const server = spawn(process.execPath, [main, 'serve'], {
    env: { ...environment, DATABASE_URL: throughPooler(servingUrl(databaseUrl, env.SERVE_AS)) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const log: string[] = [];
  const url = await listeningAddress(server, log);
  const run = async (...args: string[]) => {
    const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], { env: environment });
    return stdout;
  };
  const organisations = new Set<string>();
  return {
    url,
    databaseUrl,
    process: server,
    log,
    run,
    async createKey(organisation, ...scopes) {
      if (!organisations.has(organisation)) await run('organisations', 'create', organisation);
      organisations.add(organisation);
      const flags = scopes.flatMap((scope) => ['--scope', scope]);
      const issued = JSON.parse(
        await run('keys', 'issue', '--organisation', organisation, '--json', ...flags),
      );
      return issued.key;
    },
    async stop() {
      if (server.exitCode !== null || server.signalCode !== null) return;
      // With what it said last.
      const closed = once(server, 'close');
      server.kill('SIGTERM');
      await closed;
    },
  };
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

function listeningAddress(server: ChildProcess, log: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${log.join('\n')}`)));
    createInterface({ input: server.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      log.push(line);
      const address = /Server listening at (https?:\/\/[^"\s]+)/.exec(line)?.[1];
      if (address) resolve(address);
    });
  });
}
