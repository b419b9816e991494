import { parseArgs } from 'node:util';
import { type Measure, measures } from '../activity/activity-counts.ts';
import { busiestOrganisations } from '../activity/find-activity.ts';
import { limits } from '../limits.ts';
import { commandError } from './arguments/help.ts';
import { headerOf } from './arguments/operator.ts';
import { withPool } from './database/with-pool.ts';

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      by: { type: 'string', default: 'requests' },
      minutes: { type: 'string', default: String(limits.busiestMinutesDefault) },
      limit: { type: 'string', default: String(limits.busiestDefault) },
      json: { type: 'boolean', default: false },
    },
  });
  const by = measures.find((measure) => measure === values.by);
  if (by === undefined) throw commandError(`--by must be one of ${measures.join(', ')}`);
  const minutes = wholeNumber('--minutes', values.minutes, limits.busiestMinutesMax);
  const count = wholeNumber('--limit', values.limit, limits.busiestOrganisationsMax);
  const busiest = await withPool((pool) => busiestOrganisations(pool, { by, minutes, count }));
  if (values.json) return console.log(JSON.stringify(busiest));
  const columns: readonly Measure[] = [by, ...measures.filter((measure) => measure !== by)];
  console.log(headerOf(['organisation', ...columns.map((column) => column.replace('_', ' '))]));
  for (const organisation of busiest.organisations)
    console.log(
      [
        organisation.slug ?? organisation.organisation_id,
        ...columns.map((column) => organisation[column]),
      ].join('\t'),
    );
}

function wholeNumber(option: string, text: string, maximum: number): number {
  const number = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > maximum)
    throw commandError(`${option} must be a whole number from 1 to ${maximum}`);
  return number;
}
