import type { Command } from '../options/command.ts';
import { connect } from '../options/settings.ts';
import { print, printJson, printTable } from '../terminal/terminal.ts';

export const status: Command = {
  summary: 'count the records and rejections of each type',
  help: `Usage: intake status [--json]

Examples:
  intake status
  intake status --json | jq '.[] | select(.open_rejections > 0)'`,
  options: { json: { type: 'boolean' } },
  async run(values) {
    const types = await (await connect()).data.overview();
    if (values.json) await printJson(types);
    else {
      const rows = types.map((one) => [one.type, one.records, one.open_rejections, one.last_upload ?? '']);
      await (rows.length === 0
        ? print('Nothing has been uploaded yet.')
        : printTable(['Type', 'Records', 'Rejections', 'Last upload'], rows));
    }
    return 0;
  },
};
