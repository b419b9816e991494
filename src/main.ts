#!/usr/bin/env node
import { commandError, help } from './cli/help.ts';
import { ConfigError } from './config.ts';
import { isUnavailable } from './store/pool.ts';

/** Each command in a file of its own, loaded only when it is asked for. */
const commands: Record<string, () => Promise<{ run(args: string[]): Promise<void> }>> = {
  serve: () => import('./cli/serve.ts'),
  dev: () => import('./cli/dev.ts'),
  migrate: () => import('./cli/migrate.ts'),
  organisations: () => import('./cli/organisations.ts'),
  keys: () => import('./cli/keys.ts'),
};

const [name = '--help', ...args] = process.argv.slice(2);
try {
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (name === '--help' || args.includes('--help')) console.log(help(name));
  else if (load) await (await load()).run(args);
  else throw commandError(`there is no command "${name}"; intake-server --help lists them`);
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (isUnavailable(error)) {
    const { code } = error as { code?: string };
    return `intake-server: the database cannot be reached (${code ?? 'no answer'}); check DATABASE_URL and that PostgreSQL is running`;
  }
  const { code, message, address, port } = error as {
    code?: string;
    message?: string;
    address?: string;
    port?: number;
  };
  if (code === 'EADDRINUSE') return `intake-server: port ${port} of ${address} is taken; set PORT to another`;
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL') {
    return `intake-server: cannot listen on port ${port} of ${address} (${code}); check HOST and PORT`;
  }
  if (code === 'INTAKE_COMMAND' || code?.startsWith('ERR_PARSE_ARGS')) return `intake-server: ${message}`;
  if (code === '42P01') return 'intake-server: the database has no tables yet; run intake-server migrate';
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
