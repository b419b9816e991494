import { type UploadType, uploadTypes } from '../../generated/resources.ts';
import { type Command, textOf, UsageError } from '../options/command.ts';
import { connect } from '../options/settings.ts';
import { interruption } from '../terminal/interruption.ts';
import { printJsonLine, say } from '../terminal/terminal.ts';

const types: readonly string[] = uploadTypes;

export const changes: Command = {
  summary: 'follow created and changed records',
  help: `Usage: intake changes [options]

Prints the current version of each created or changed record as a line of JSON, until Ctrl-C. To continue later, pass the cursor of
the last line as --after. A line with expired_before means that everything of its type received before that time has expired.

Options:
  --types <types>    only these types, separated by commas; default: all, including interactions
  --after <cursor>   continues after this cursor; default: starts with the oldest change that the service keeps

Examples:
  intake changes --types shops,tags
  intake changes --types transactions | jq -c .record`,
  options: { types: { type: 'string' }, after: { type: 'string' } },
  async run(values, positionals) {
    if (positionals.length > 0)
      throw new UsageError('Specify types with --types. See intake changes --help.');
    const asked = textOf(values, 'types')?.split(',');
    const unknown = asked?.find((type) => !types.includes(type));
    if (unknown !== undefined)
      throw new UsageError(`There is no type ${unknown}. The types are ${types.join(', ')}.`);
    const intake = await connect();
    const signal = interruption();
    let cursor = textOf(values, 'after');
    try {
      const options = { ...(asked && { types: asked as UploadType[] }), signal };
      for await (const event of intake.changes({
        ...options,
        ...(cursor !== undefined && { after: cursor }),
      })) {
        if (event.type) await printJsonLine(event);
        cursor = event.cursor;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      if (cursor !== undefined) say(`Continue with --after ${cursor}`);
    }
    return 0;
  },
};
