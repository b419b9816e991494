#!/usr/bin/env node
import { commandError, help } from './cli/help.ts';
import { ConfigError } from './config.ts';
import { isRefusedLogin, isUnavailable } from './store/pool.ts';

/** Each command in a file of its own, loaded only when it is asked for. */
const commands: Record<string, () => Promise<{ run(args: string[]): Promise<void> }>> = {
  serve: () => import('./cli/serve.ts'),
  dev: () => import('./cli/dev.ts'),
  migrate: () => import('./cli/migrate.ts'),
  organisations: () => import('./cli/organisations.ts'),
  keys: () => import('./cli/keys.ts'),
  audit: () => import('./cli/audit.ts'),
};

const [given = '--help', ...args] = process.argv.slice(2);
const name = ['-h', 'help'].includes(given) ? '--help' : given;
try {
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (name === '--help' || args.includes('--help') || args.includes('-h')) console.log(help(name));
  else if (load) await (await load()).run(args);
  else throw commandError(`there is no command "${name}"; intake-server --help lists them`);
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  const { code, message = '' } = error as { code?: string; message?: string };
  if (code === 'INTAKE_COMMAND' || code?.startsWith('ERR_PARSE_ARGS')) return `intake-server: ${message}`;
  const reason = explainDatabase(error, code, message);
  if (reason) return `intake-server: ${reason}`;
  return error instanceof Error ? (error.stack ?? message) : String(error);
}

function explainDatabase(error: unknown, code: string | undefined, message: string): string | undefined {
  if (isRefusedLogin(error)) return `PostgreSQL refuses DATABASE_URL: ${message}`;
  if (/does not support SSL/.test(message))
    return 'PostgreSQL does not serve TLS, which sslmode in DATABASE_URL asks for';
  if (/SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|CERT_/.test(code ?? ''))
    return `PostgreSQL's certificate cannot be verified (${message}); name its authority with sslrootcert in DATABASE_URL`;
  if (code === '42501')
    return `the role in DATABASE_URL may not do this: ${message}; migrate as the owner of the schema`;
  if (code === '55P03')
    return `a table is in use by somebody else (${message}); nothing was changed, run it again`;
  if (code === '42P01') return 'the database has no tables yet; run intake-server migrate';
  if (!isUnavailable(error)) return undefined;
  return `the database cannot be reached (${code ?? message}); check DATABASE_URL and that PostgreSQL is running`;
}
