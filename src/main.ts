#!/usr/bin/env node
import { help, unknownCommand } from './cli/arguments/help.ts';
import { ConfigError, version } from './config.ts';
import { RequestError } from './errors.ts';
import { MigrationRefused } from './postgres/schema/migration-checksums.ts';

/** Each command is a separate file that is loaded only when it is needed. */
const commands: Record<string, () => Promise<{ run(args: string[]): Promise<void> }>> = {
  serve: () => import('./cli/serve.ts'),
  lake: () => import('./cli/serving/lake.ts'),
  migrate: () => import('./cli/migrate.ts'),
  organisations: () => import('./cli/organisations.ts'),
  keys: () => import('./cli/keys.ts'),
  tokens: () => import('./cli/tokens.ts'),
  console: () => import('./cli/console.ts'),
  top: () => import('./cli/top.ts'),
  audit: () => import('./cli/audit.ts'),
  erasures: () => import('./cli/restoring/erasures.ts'),
  'backup-log': () => import('./cli/restoring/backup-log.ts'),
  'after-restore': () => import('./cli/restoring/after-restore.ts'),
  distribute: () => import('./cli/cluster/distribute.ts'),
  cluster: () => import('./cli/cluster/cluster.ts'),
};

const [name = 'help', ...args] = process.argv.slice(2);
// A reader such as `head` may close the pipe early. Like a program that SIGPIPE ends, exit without a message, but not with 0,
// because the output may have been meant for a backup.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(141);
});
try {
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (['help', '--help', '-h'].includes(name)) showHelp(args[0]);
  else if (name === '--version') console.log(version());
  else if (!load) throw unknownCommand(name);
  else if (args.includes('--help') || args.includes('-h')) showHelp(name);
  else await (await load()).run(args);
} catch (error) {
  console.error(explain(error));
  // After a login that failed on our side, PostgreSQL closes the connection only after a minute. Do not wait for that.
  process.exit(1);
}

function showHelp(topic?: string): void {
  const text = help(topic);
  if (text === undefined) throw unknownCommand(topic ?? '');
  console.log(text);
}

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  const { code, message = '' } = error as { code?: string; message?: string };
  if (error instanceof MigrationRefused || error instanceof RequestError || code === 'INTAKE_COMMAND')
    return `intake-server: ${message}`;
  // The first sentence of Node's message explains what is wrong with the options.
  if (code?.startsWith('ERR_PARSE_ARGS'))
    return `intake-server: ${message.split('. ')[0]}; run intake-server ${name} --help for its options`;
  return error instanceof Error ? (error.stack ?? message) : String(error);
}
