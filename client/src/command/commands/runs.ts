import type { Intake, RunFilters } from '../../index.ts';
import { type Command, countOf, textOf, UsageError } from '../options/command.ts';
import { connect } from '../options/settings.ts';
import { print, printJson, printJsonLine, printTable, printTitle } from '../terminal/terminal.ts';

type Run = Awaited<ReturnType<Intake['runs']['get']>>;

export const runs: Command = {
  summary: 'list runs of intake upload, or show one',
  help: `Usage: intake runs [<run id>] [options]

Lists runs, the newest first. With an id, it shows the files of that run, why records failed, and what to do.
A run is interrupted if it has not ended and nothing was heard of it for 15 minutes.

Options:
  --name <name>     only runs with this name
  --from <time>     only runs opened at this time or later
  --to <time>       only runs opened before this time
  --limit <count>   number of runs, default 20
  --json            prints JSON; for the list, a line for each

Examples:
  intake runs --name exports
  intake runs 019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f`,
  options: {
    name: { type: 'string' },
    from: { type: 'string' },
    to: { type: 'string' },
    limit: { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(values, [id, ...rest]) {
    if (rest.length > 0) throw new UsageError('Specify one run. See intake runs --help.');
    if (id !== undefined) {
      const run = await (await connect()).runs.get(id);
      await (values.json ? printJson(run) : printRun(run));
      return 0;
    }
    const limit = countOf(values, 'limit', 20);
    const filters = { name: textOf(values, 'name'), from: textOf(values, 'from'), to: textOf(values, 'to') };
    const intake = await connect();
    const rows: (string | number)[][] = [];
    let listed = 0;
    for await (const one of intake.runs.list({ ...filters, limit: Math.min(limit, 100) } as RunFilters)) {
      const { counts, not_sent, not_kept } = one;
      if (values.json) await printJsonLine(one);
      else
        rows.push([
          one.opened,
          one.name,
          one.status,
          one.file_count,
          counts.received + not_sent + not_kept,
          counts.failed,
          not_sent,
          not_kept,
          one.run_id,
        ]);
      if (++listed >= limit) break;
    }
    const header = ['Opened', 'Name', 'Status', 'Files', 'Records', 'Failed', 'Not sent', 'Not kept', 'Run'];
    if (!values.json) await (rows.length === 0 ? print('There are no such runs.') : printTable(header, rows));
    return 0;
  },
};

async function printRun(run: Run): Promise<void> {
  const until = run.ended === null ? `last request or heartbeat ${run.last_activity}` : `ended ${run.ended}`;
  await print(`Run ${run.name}: ${run.status}, opened ${run.opened}, ${until}`, '');
  const header = ['File', 'Type', 'Records', 'Created', 'Updated', 'Unchanged', 'Stale', 'Failed'];
  await printTable(
    [...header, 'Not sent', 'Not kept'],
    run.files.map(({ name, type, counts, not_sent, not_kept }) => [
      name,
      type,
      counts.received + not_sent + not_kept,
      counts.created,
      counts.updated,
      counts.unchanged,
      counts.stale,
      counts.failed,
      not_sent,
      not_kept,
    ]),
  );
  const reasons = run.reasons ?? [];
  if (reasons.length > 0) {
    await printTitle('Failed records that are kept as rejections');
    await printTable(
      ['Count', 'Type', 'Field', 'Code'],
      reasons.map(({ count, type, field, code }) => [count, type, field ?? '', code]),
    );
  }
  const advice = adviceFor(run);
  if (advice.length > 0) await print('', ...advice);
}

function adviceFor({ run_id, status, not_sent, not_kept, reasons = [] }: Run): string[] {
  return [
    ...(status === 'interrupted' ? ['To continue it, run the same intake upload again with --resume.'] : []),
    ...(reasons.length > 0
      ? [
          `To see the rejections: intake rejections --run ${run_id}`,
          'If only referenced records were missing, upload these, and add replay. Otherwise correct the failed files and upload them.',
        ]
      : []),
    ...(not_sent + not_kept > 0
      ? [
          'The service does not have the records that were not sent or not kept. They are in the failed files next to the uploaded files, with the reason.',
        ]
      : []),
  ];
}
