import { unexpected } from '../../errors.ts';
import type { Interaction } from '../../index.ts';
import { wait } from '../../wait.ts';
import { type Command, countOf, UsageError } from '../options/command.ts';
import { connect } from '../options/settings.ts';
import { interruption } from '../terminal/interruption.ts';
import { print, printJsonLine } from '../terminal/terminal.ts';

const pollMs = 2_000;
/** The maximum number of interactions from recent polls that are kept in memory. */
const followedMax = 100_000;
/** The list is sorted only roughly by time of receipt, so each poll overlaps the previous one by this much time. */
const overlapMs = 30_000;

export const interactions: Command = {
  summary: 'follow interactions as they are recorded',
  help: `Usage: intake interactions tail [options]

Prints the newest interactions and then each new one, until Ctrl-C.

Options:
  --limit <count>   number of past interactions, default 10
  --json            prints a line of JSON for each

Examples:
  intake interactions tail
  intake interactions tail --json | jq -r .item_id`,
  options: { limit: { type: 'string' }, json: { type: 'boolean' } },
  words: ['tail'],
  async run(values, [action, ...rest]) {
    if (action !== 'tail' || rest.length > 0)
      throw new UsageError('The only action is tail. See intake interactions --help.');
    const intake = await connect();
    const signal = interruption();
    const limit = countOf(values, 'limit', 10);
    /** The interactions that a later poll may return again, as a map from id to time of receipt. */
    const seen = new Map<string, number>();
    let newestMs = 0;
    const show = async (found: readonly Interaction[]) => {
      for (const one of found.toReversed()) {
        const createdMs = createdMsOf(one);
        newestMs = Math.max(newestMs, createdMs);
        seen.set(one.interaction_id, createdMs);
        await (values.json ? printJsonLine(one) : print(lineOf(one)));
      }
      for (const [id, createdMs] of seen) if (createdMs < newestMs - overlapMs) seen.delete(id);
    };
    try {
      const past: Interaction[] = [];
      for await (const one of intake.interactions.list({ limit: 1000, signal })) {
        const createdMs = createdMsOf(one);
        const newest = past[0] ?? one;
        refuseTooMany(seen.size);
        if (past.length < limit) past.push(one);
        // Later polls will return these interactions again, so remember that they are not new.
        else if (createdMs >= Date.parse(newest.created) - overlapMs) seen.set(one.interaction_id, createdMs);
        else break;
      }
      await show(past);
      for (;;) {
        await wait(pollMs, signal);
        const from = new Date(Math.max(0, newestMs - overlapMs)).toISOString();
        const found: Interaction[] = [];
        for await (const one of intake.interactions.list({ from, limit: 1000, signal })) {
          if (!seen.has(one.interaction_id)) found.push(one);
          refuseTooMany(found.length);
        }
        await show(found);
      }
    } catch (error) {
      if (signal.aborted) return 0;
      throw error;
    }
  },
};

function createdMsOf({ created }: Interaction): number {
  const ms = Date.parse(created);
  if (Number.isNaN(ms)) throw unexpected('An interaction has no time of receipt');
  return ms;
}

function refuseTooMany(count: number): void {
  if (count <= followedMax) return;
  throw new UsageError(
    `More than ${followedMax} interactions within ${overlapMs / 1000} seconds cannot be followed here. Read GET /v1/changes instead.`,
  );
}

function lineOf({
  created,
  interaction_type,
  item_type,
  item_id,
  platform,
  city,
  country,
}: Interaction): string {
  const place = [platform, city, country].filter((each) => each !== null).join(', ');
  return `${created}  ${interaction_type}  ${item_type} ${item_id}  ${place}`.trimEnd();
}
