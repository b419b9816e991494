import type { Erasure } from '../../../index.ts';
import { type Command, countOf, UsageError } from '../../options/command.ts';
import { connect } from '../../options/settings.ts';
import { confirm } from '../../terminal/confirm.ts';
import { grouped, print, printJson, printJsonLine, printTable } from '../../terminal/terminal.ts';

export const erasures: Command = {
  summary: 'list erasures of people, show one or its certificate, or accept its people again',
  help: `Usage: intake erasures [list|show|certificate|lift] [<erasure id>] [options]

  list          the newest first (the default)
  show          one erasure, as JSON
  certificate   what a swept erasure removed and what remains, signed, as JSON
  lift          accepts records of the people of a swept erasure again

Options:
  --limit <count>   for list: number of erasures, default 20
  --yes             for lift: does not ask for confirmation
  --json            prints JSON; for list, a line for each

Examples:
  intake erasures
  intake erasures show 019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f
  intake erasures --limit 1000 --json | jq -r 'select(.swept == null).erasure_id'
  intake erasures lift 019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f`,
  options: { limit: { type: 'string' }, yes: { type: 'boolean' }, json: { type: 'boolean' } },
  words: ['list', 'show', 'certificate', 'lift'],
  async run(values, [action = 'list', id, ...rest]) {
    const isList = action === 'list';
    if (
      !['list', 'show', 'certificate', 'lift'].includes(action) ||
      (id === undefined) !== isList ||
      rest.length > 0
    )
      throw new UsageError(
        'Use list, or show, certificate or lift with the id of an erasure. See intake erasures --help.',
      );
    // An id in a URL path ends up in logs, and users may pass a person's id by mistake. Erasure ids are version 7 UUIDs.
    if (id !== undefined && !/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-/i.test(id))
      throw new UsageError('That is not the id of an erasure. See intake erasures.');
    const intake = await connect();
    if (id === undefined) await list(intake.erasures, countOf(values, 'limit', 20), values.json === true);
    else if (action === 'show') await printJson(await intake.erasures.get(id));
    else if (action === 'certificate') await printJson(await intake.erasures.certificate(id));
    else {
      if (!values.yes) await confirm(confirmation);
      const { lifted } = await intake.erasures.liftSuppression(id);
      if (values.json) await printJson({ lifted });
      else await print(`${grouped(lifted)} ids are accepted again.`);
    }
    return 0;
  },
};

const confirmation = {
  question: 'Accept records of these people again?',
  withoutTerminal: 'This accepts records of erased people again.',
  declined: 'Nothing was lifted.',
};

async function list(
  of: { list(filters: { limit: number }): AsyncIterable<Erasure> },
  limit: number,
  isJson: boolean,
): Promise<void> {
  const rows: (string | number)[][] = [];
  let listed = 0;
  for await (const one of of.list({ limit: Math.min(limit, 100) })) {
    if (isJson) await printJsonLine(one);
    else rows.push([one.requested, one.mode, one.state, one.people, one.known, rowsOf(one), one.erasure_id]);
    if (++listed >= limit) break;
  }
  if (isJson) return;
  const header = ['Requested', 'Mode', 'State', 'Ids', 'Known', 'Rows', 'Erasure'];
  await (rows.length === 0 ? print('There are no erasures.') : printTable(header, rows));
}

/** Returns the number of rows changed or deleted in all tables. */
export function rowsOf({ rows }: Erasure): number {
  return Object.values(rows).reduce((sum, count) => sum + count, 0);
}
