#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { nearest } from '../parsing/columns/nearest.ts';
import { clientVersion } from './client-version.ts';
import { commands } from './commands.ts';
import { explain } from './explain.ts';
import { type Command, UsageError } from './options/command.ts';
import { handleOutputErrors, print, printData, sayError } from './terminal/terminal.ts';

// By default, V8 grows the heap before it collects garbage, and an upload uses 300 MB. With these flags it uses 170 MB.
setFlagsFromString('--semi-space-growth-factor=1');
setFlagsFromString('--heap-growing-percent=150');

const help = `Usage: intake <command> [options]

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(14)}${summary}`)
  .join('\n')}

Run intake <command> --help for its options and examples, and intake --version for the version.

Examples:
  intake login https://intake.example.com
  intake check exports/
  intake upload exports/`;

const deleteAdvice =
  'To mark records as deleted, upload them with is_deleted set to true. To erase a person, see intake erase --help.';

async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    await printData(help);
    return name === undefined ? 2 : 0;
  }
  if (name === '--version') {
    await print(clientVersion());
    return 0;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined)
    throw new UsageError(
      `There is no command ${name}.${meant(name, Object.keys(commands), '')} See intake --help.`,
      ...(/^(delete|remove|rm)$/.test(name) ? [deleteAdvice] : []),
    );
  const { values, positionals } = parse(name, command, args);
  if (values.help) {
    await printData(command.help);
    return 0;
  }
  return command.run(values, positionals);
}

function parse(name: string, { options }: Command, args: string[]) {
  try {
    const help = { type: 'boolean', short: 'h' } as const;
    return parseArgs({ args, options: { ...options, help }, allowPositionals: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const option = /'(-[^' ]*)/.exec(message)?.[1] ?? '';
    throw new UsageError(
      code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION'
        ? `intake ${name} has no option ${option}.${meant(option.replace(/^-+/, ''), Object.keys(options), '--')} See intake ${name} --help.`
        : `${message.replace(/\.$/, '')}. See intake ${name} --help.`,
    );
  }
}

function meant(typed: string, known: readonly string[], before: string): string {
  const found = nearest(typed, known, 2) ?? known.find((each) => each.startsWith(`${typed}-`));
  return found === undefined ? '' : ` Did you mean ${before}${found}?`;
}

handleOutputErrors();

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  sayError(...explain(error));
  process.exitCode = 2;
}
