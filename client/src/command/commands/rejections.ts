import type { Intake, RejectionFilters } from '../../index.ts';
import { type Command, countOf, textOf, UsageError, type Values } from '../options/command.ts';
import { typeOf } from '../options/file-options.ts';
import { connect } from '../options/settings.ts';
import { confirm } from '../terminal/confirm.ts';
import { grouped, print, printJson, printJsonLine, printTable, say } from '../terminal/terminal.ts';

export const rejections: Command = {
  summary: 'list, summarise, replay or discard the failed records that the service keeps',
  help: `Usage: intake rejections [list|summary|replay|discard] [options]

  list       print the failed records, oldest first (default)
  summary    count the failed records for each reason
  replay     check failed records again and store those that pass, for example after a missing shop was uploaded
  discard    delete failed records; they cannot be recovered

Options:
  --type <type>        only rejections of this type
  --code <code>        only rejections with this code, for example reference_not_found
  --field <field>      only rejections in which this field is invalid
  --request <id>       only rejections from this request
  --run <id>           only rejections from this run
  --limit <count>      for list: number of rejections, default 20
  --yes                for discard: does not ask for confirmation
  --json               prints JSON; for list, a line for each

Examples:
  intake rejections summary
  intake rejections replay --type transactions
  intake rejections --code invalid_format --limit 100000 --json | jq -c .record > wrong.ndjson
  intake rejections discard --request 019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f --yes

Exit code of replay: 0, or 1 if some records failed again.`,
  options: {
    type: { type: 'string' },
    code: { type: 'string' },
    field: { type: 'string' },
    request: { type: 'string' },
    run: { type: 'string' },
    limit: { type: 'string' },
    yes: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  words: ['list', 'summary', 'replay', 'discard'],
  async run(values, [action = 'list', ...rest]) {
    const run = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (run === undefined || rest.length > 0) {
      throw new UsageError('Use list, summary, replay or discard. See intake rejections --help.');
    }
    const filters = {
      type: typeOf(values),
      code: textOf(values, 'code'),
      field: textOf(values, 'field'),
      request_id: textOf(values, 'request'),
      run_id: textOf(values, 'run'),
    } as RejectionFilters;
    return run(await connect(), filters, values);
  },
};

type Action = (intake: Intake, filters: RejectionFilters, values: Values) => Promise<number>;

const actions: Record<string, Action> = {
  async list(intake, filters, values) {
    const limit = countOf(values, 'limit', 20);
    const rows: string[][] = [];
    let listed = 0;
    let hasMore = false;
    for await (const one of intake.rejections.list(filters)) {
      hasMore = listed === limit;
      if (hasMore) break;
      const reason = one.errors
        .map(({ field, message }) => (field === null ? message : `${field} ${message}`))
        .join('; ');
      if (values.json) await printJsonLine(one);
      else rows.push([one.rejected, one.type, one.id ?? '', reason]);
      listed++;
    }
    if (!values.json)
      await (rows.length === 0 ? print(none) : printTable(['Rejected', 'Type', 'Id', 'Reason'], rows));
    if (hasMore && !values.json)
      await print('', `${await shareOf(intake, filters, listed)}; --limit shows more`);
    return 0;
  },

  async summary(intake, filters, values) {
    const kinds = await intake.rejections.summary(filters);
    const rows = kinds.map(({ count, type, field, code, example }) => [
      count,
      type,
      field ?? '',
      code,
      example?.message ?? '',
    ]);
    if (values.json) await printJson(kinds);
    else
      await (rows.length === 0
        ? print(none)
        : printTable(['Count', 'Type', 'Field', 'Code', 'Example'], rows));
    return 0;
  },

  async replay(intake, filters, values) {
    const sum = { received: 0, failed: 0, remaining: 0 };
    let isWaiting = false;
    for await (const { batches, remaining, next_cursor } of intake.rejections.replay(filters)) {
      // The service replayed nothing although rejections remain, so another replay must be running.
      if (batches.length === 0 && next_cursor && !isWaiting) {
        isWaiting = true;
        say('Another replay of this type is running. This one waits for its turn.');
      }
      for (const { data } of batches) {
        sum.received += data.counts.received;
        sum.failed += data.counts.failed;
      }
      sum.remaining = remaining ?? sum.remaining;
    }
    const stored = sum.received - sum.failed;
    if (values.json)
      await printJson({ tried: sum.received, stored, failed: sum.failed, remaining: sum.remaining });
    else
      await print(
        `${grouped(sum.received)} tried: ${grouped(stored)} passed, ${grouped(sum.failed)} failed again.`,
      );
    return sum.failed > 0 ? 1 : 0;
  },

  async discard(intake, filters, values) {
    const hasFilter = Object.values(filters).some((value) => value !== undefined);
    const what = hasFilter ? 'the rejections that match' : 'all rejections';
    if (!values.yes)
      await confirm({
        question: `Remove ${what}? There is no other copy.`,
        withoutTerminal: `This removes ${what}, and there is no other copy.`,
        declined: 'Nothing was removed.',
      });
    const { discarded } = await intake.rejections.discard(filters);
    if (values.json) await printJson({ discarded });
    else await print(discarded === 0 ? none : `${grouped(discarded)} removed.`);
    return 0;
  },
};

const none = 'No rejections match.';

/** Describes how many rejections are listed. The service counts all rejections of a type, but not those that match a filter. */
async function shareOf(
  intake: Intake,
  { type, ...others }: RejectionFilters,
  listed: number,
): Promise<string> {
  const isCounted = Object.values(others).every((value) => value === undefined);
  const types = isCounted ? await intake.data.overview() : [];
  const total = types
    .filter((one) => type === undefined || one.type === type)
    .reduce((sum, { open_rejections }) => sum + open_rejections, 0);
  return total > listed ? `${grouped(listed)} of ${grouped(total)}` : `The first ${grouped(listed)}`;
}
