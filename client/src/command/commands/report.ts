import type { ReportFilters } from '../../index.ts';
import { type Command, textOf, UsageError } from '../options/command.ts';
import { connect } from '../options/settings.ts';
import { interruption } from '../terminal/interruption.ts';
import { print, printJsonLine, printTable } from '../terminal/terminal.ts';

export const report: Command = {
  summary: 'show what recommendations earn',
  help: `Usage: intake report [options]

Prints a line for each group: the recommendations that students followed (touches), students, discount codes, and the credited
transactions, revenue and savings. The operator has to switch the report on for your organisation.

Options:
  --from <day>         the first day, in UTC; default 30 days before --to
  --to <day>           the day after the last one; default tomorrow
  --window <window>    for how long a touch is credited: 1h, 24h (the default) or 7d
  --group-by <field>   day (the default), item_type, item, platform, country or recommendation
  --json               prints each page of the report as a line of JSON, with browsing for comparison and with definitions

Examples:
  intake report --from 2026-03-01 --to 2026-04-01
  intake report --group-by item --json | jq -c '.groups[]'`,
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    window: { type: 'string' },
    'group-by': { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(values, positionals) {
    if (positionals.length > 0)
      throw new UsageError('This command only takes options. See intake report --help.');
    const filters = {
      from: textOf(values, 'from'),
      to: textOf(values, 'to'),
      window: textOf(values, 'window'),
      group_by: textOf(values, 'group-by'),
      limit: 1000,
    } as ReportFilters;
    const intake = await connect();
    const rows: (string | number)[][] = [];
    let lines: string[] = [];
    for await (const page of intake.reports.recommendations({ ...filters, signal: interruption() })) {
      if (values.json) {
        await printJsonLine(page);
        continue;
      }
      for (const { group, recommendations } of page.groups)
        rows.push([Object.values(group ?? {}).join(' '), ...figuresOf(recommendations)]);
      if (page.next_cursor === null) rows.push(['total', ...figuresOf(page.total.recommendations)]);
      lines = [
        `As of ${page.as_of ?? 'not known yet: older data is still being counted'}. ${page.correlation}`,
      ];
    }
    if (values.json) return 0;
    await printTable(header, rows);
    await print(...lines);
    return 0;
  },
};

const figures = ['touches', 'students', 'discount_codes', 'transactions', 'revenue', 'savings'] as const;
const header = ['Group', 'Touches', 'Students', 'Codes', 'Transactions', 'Revenue', 'Savings'];

function figuresOf(of: Readonly<Record<(typeof figures)[number], number>>): number[] {
  return figures.map((figure) => of[figure]);
}
