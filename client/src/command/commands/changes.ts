import { type UploadType, uploadTypes } from '../../generated/resources.ts';
import { type Command, textOf, UsageError } from '../options/command.ts';
import { connect } from '../options/settings.ts';
import { interruption } from '../terminal/interruption.ts';
import { printJsonLine, say } from '../terminal/terminal.ts';

const types: readonly string[] = uploadTypes;

export const changes: Command = {
  summary: 'follow what is created or changed',
  help: `Usage: intake changes [options]

Prints a line of JSON for each record that was created or changed, in its current form, and continues until Ctrl-C. The field cursor
of a line says where to continue. A line with expired_before says that everything of its type that was received before is gone.

Options:
  --types <types>    only these types, separated by commas; without it all, interactions included
  --after <cursor>   continues after this cursor; without it from the oldest change that the service keeps

Examples:
  intake changes --types shops,tags
  intake changes --types transactions | jq -c .record`,
  options: { types: { type: 'string' }, after: { type: 'string' } },
  async run(values, positionals) {
    if (positionals.length > 0) throw new UsageError('Name types with --types. See intake changes --help.');
    const asked = textOf(values, 'types')?.split(',');
    const unknown = asked?.find((type) => !types.includes(type));
    if (unknown !== undefined)
      throw new UsageError(`There is no type ${unknown}. Use some of ${types.join(', ')}.`);
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
