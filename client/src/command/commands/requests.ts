import type { RequestFilters } from '../../index.ts';
import { type Command, choiceOf, countOf, textOf } from '../options/command.ts';
import { typeOf } from '../options/file-options.ts';
import { connect } from '../options/settings.ts';
import { print, printJson, printJsonLine, printTable } from '../terminal/terminal.ts';

export const requests: Command = {
  summary: 'list answered requests, or show one',
  help: `Usage: intake requests [<request id>] [options]

Lists requests, the newest first. With an id, it prints the complete receipt of that request as JSON.

Options:
  --type <type>     only uploads of this type
  --status <code>   only requests with this status: 200, 207 or 400
  --idempotency-key <key>  only the upload with this key
  --run <id>        only requests of this run
  --from <time>     only requests received at this time or later
  --to <time>       only requests received before this time
  --limit <count>   number of requests, default 20
  --json            prints a line of JSON for each

Examples:
  intake requests --status 207
  intake requests 019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f
  intake requests --from 2026-03-14T00:00:00Z --limit 1000 --json | jq .counts.failed`,
  options: {
    type: { type: 'string' },
    status: { type: 'string' },
    'idempotency-key': { type: 'string' },
    run: { type: 'string' },
    from: { type: 'string' },
    to: { type: 'string' },
    limit: { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(values, [id]) {
    if (id !== undefined) {
      await printJson(await (await connect()).requests.get(id));
      return 0;
    }
    const limit = countOf(values, 'limit', 20);
    const type = typeOf(values);
    const filters = {
      status: choiceOf(values, 'status'),
      idempotency_key: textOf(values, 'idempotency-key'),
      run_id: textOf(values, 'run'),
      from: textOf(values, 'from'),
      to: textOf(values, 'to'),
    };
    const query = { ...filters, type, limit: Math.min(limit, 100) } as RequestFilters;
    const intake = await connect();
    const rows: (string | number)[][] = [];
    let listed = 0;
    for await (const one of intake.requests.list(query)) {
      if (values.json) await printJsonLine(one);
      else
        rows.push([
          one.received,
          one.type ?? 'several',
          one.operation,
          one.status,
          one.counts.received,
          one.counts.failed,
          one.request_id,
        ]);
      if (++listed >= limit) break;
    }
    if (!values.json) {
      const header = ['Received', 'Type', 'Operation', 'Status', 'Records', 'Failed', 'Request'];
      await (rows.length === 0 ? print('There are no such requests.') : printTable(header, rows));
    }
    return 0;
  },
};
