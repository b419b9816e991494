import { consequencesOf } from '../../../erasure-consequences.ts';
import {
  type CountedErasure,
  type Erasure,
  type Intake,
  IntakeError,
  type People,
  type RequestedErasure,
} from '../../../index.ts';
import { limits } from '../../../limits.ts';
import { wait } from '../../../wait.ts';
import { type Command, countOf, textOf, UsageError, type Values } from '../../options/command.ts';
import { connect } from '../../options/settings.ts';
import { confirm } from '../../terminal/confirm.ts';
import { interruption } from '../../terminal/interruption.ts';
import { duration } from '../../terminal/progress.ts';
import {
  drawLine,
  grouped,
  print,
  printJsonLine,
  printTable,
  printTitle,
  say,
} from '../../terminal/terminal.ts';
import { rowsOf } from './erasures.ts';
import { readIds } from './read-ids.ts';

const pollMs = 2_000;
/** The interval between progress lines when the output is a log. */
const logLineMs = 60_000;
const waitMinutes = 60;
const unknownShownMax = 20;

export const erase: Command = {
  summary: 'erase customers, or users of interactions',
  help: `Usage: intake erase [<id>...] [--file <file>] [options]

Erases customers by their ids. As soon as the service has answered, nobody can read their data, and records that refer to
them are refused. The command waits until they are removed from all tables. Their transactions and interactions are kept
without their ids unless you add --delete. On a terminal, the command shows what it will erase and asks first. Needs a key
with the permission data:erase. This cannot be undone.

Ids that you type stay in the history of your shell, so a file is better. Messages contain no ids, except that on a terminal
the command lists the ids that are not stored.

Options:
  --file <file>        reads the ids from a file, one per line; - is standard input and needs --yes
  --users              the ids are user ids, as in the user_id of interactions, not customer ids
  --delete             deletes transactions and interactions too
  --dry-run            counts what would be erased, and erases nothing
  --yes                does not ask for confirmation
  --no-wait            does not wait for the sweep
  --timeout <minutes>  how long to wait for it, default ${waitMinutes}
  --json               a line of JSON for each erasure

Examples:
  intake erase --file people.txt --dry-run
  intake erase --file people.txt
  intake erase --file visitors.txt --users --delete
  psql -Atc 'select customer_id from leavers' | intake erase --file - --yes --no-wait --json

Exit code: 0 on success, 1 if the sweep takes longer than --timeout. The sweep continues; intake erasures shows its state.`,
  options: {
    file: { type: 'string' },
    users: { type: 'boolean' },
    delete: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
    yes: { type: 'boolean' },
    'no-wait': { type: 'boolean' },
    timeout: { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(values, args) {
    const file = textOf(values, 'file');
    const endMs = performance.now() + countOf(values, 'timeout', waitMinutes) * 60_000;
    if (file === '-' && !values.yes && !values['dry-run'])
      throw new UsageError('The ids come from standard input, where nobody can answer. Add --yes.');
    const ids = await readIds(args, file, values.users === true);
    if (ids.length === 0) throw new UsageError('There are no ids. See intake erase --help.');
    const intake = await connect();
    const signal = interruption();
    if (values['dry-run']) return printCounts(await count(intake, ids, values, signal), values);
    if (!values.yes) {
      const question = async () => questionOf(await count(intake, ids, values, signal), ids.length, values);
      await confirm({ question, ...refusalsOf(ids.length, values) });
    }
    const requested = await request(intake, ids, values, signal);
    const erased = values['no-wait'] ? requested : await untilSwept(intake, requested, endMs, signal);
    await report(erased, requested, values);
    if (values['no-wait'] || erased.every(isSwept)) return 0;
    say('The sweep is not finished, and continues on the server. intake erasures shows its state.');
    return 1;
  },
};

function peopleOf(count: number, { users }: Values): string {
  return `${grouped(count)} ${users ? 'user' : 'customer'}${count === 1 ? '' : 's'}`;
}

function questionOf(counted: readonly CountedErasure[], ids: number, values: Values): string {
  return `Erase ${peopleOf(ids, values)}? ${consequencesOf(counted)} This cannot be undone.`;
}

function refusalsOf(ids: number, values: Values) {
  return {
    withoutTerminal: `This erases ${peopleOf(ids, values)}, and cannot be undone.`,
    declined: 'Nothing was erased.',
  };
}

function toErase(ids: readonly string[], values: Values): People {
  const mode = values.delete ? 'delete' : 'anonymise';
  return values.users ? { userIds: ids, mode } : { customerIds: ids, mode };
}

function count(
  intake: Intake,
  ids: readonly string[],
  values: Values,
  signal: AbortSignal,
): Promise<CountedErasure[]> {
  return intake.erasures.count(toErase(ids, values), { signal });
}

async function printCounts(counted: readonly CountedErasure[], values: Values): Promise<number> {
  if (!values.json) await print(`${consequencesOf(counted)} Nothing was erased.`);
  else
    for (const { unknown_customer_ids: unknown, ...rest } of counted)
      await printJsonLine({ ...rest, unknown_customers: unknown.length });
  return 0;
}

/** Sends the requests one after another, so that the user has already seen the earlier erasure ids if a request fails. */
async function request(
  intake: Intake,
  ids: readonly string[],
  values: Values,
  signal: AbortSignal,
): Promise<RequestedErasure[]> {
  const requested: RequestedErasure[] = [];
  for (let at = 0; at < ids.length; at += limits.idsPerErasureMax) {
    const part = ids.slice(at, at + limits.idsPerErasureMax);
    for (const erasure of await intake.erase(toErase(part, values), { signal })) {
      requested.push(erasure);
      say(`Erasure ${erasure.erasure_id} of ${peopleOf(part.length, values)} has begun.`);
    }
  }
  return requested;
}

function isSwept({ state }: Erasure): boolean {
  return state === 'swept' || state === 'done';
}

/**
 * Waits until all erasures are swept or the timeout expires, and returns them. The service sweeps erasures in list order.
 */
async function untilSwept(
  intake: Intake,
  requested: readonly Erasure[],
  endMs: number,
  signal: AbortSignal,
): Promise<Erasure[]> {
  const erasures = [...requested];
  const progress = new SweepProgress();
  try {
    for (const [at, { erasure_id }] of requested.entries())
      for (;;) {
        const erasure = await intake.erasures.get(erasure_id, { signal });
        erasures[at] = erasure;
        progress.show(erasures);
        if (isSwept(erasure)) break;
        if (performance.now() + pollMs > endMs) return erasures;
        await wait(pollMs, signal);
      }
    return erasures;
  } catch (error) {
    progress.clear();
    if (signal.aborted || error instanceof IntakeError)
      say('The erasure continues on the server. intake erasures shows its state.');
    throw error;
  } finally {
    progress.clear();
  }
}

/** Shows the progress on one line that is redrawn on a terminal, or prints a line per minute to a log. */
class SweepProgress {
  readonly #startedMs = performance.now();
  #shownMs = this.#startedMs;
  #isDrawn = false;

  show(erasures: readonly Erasure[]): void {
    const nowMs = performance.now();
    const swept = `${grouped(erasures.filter(isSwept).length)} of ${grouped(erasures.length)} swept`;
    const rows = erasures.reduce((sum, erasure) => sum + rowsOf(erasure), 0);
    const line = `${swept}, rows changed or deleted: ${grouped(rows)}, ${duration((nowMs - this.#startedMs) / 1000)}`;
    if (process.stderr.isTTY) {
      drawLine(line);
      this.#isDrawn = true;
    } else if (nowMs - this.#shownMs >= logLineMs) {
      this.#shownMs = nowMs;
      say(line);
    }
  }

  clear(): void {
    if (this.#isDrawn) drawLine();
    this.#isDrawn = false;
  }
}

async function report(
  erasures: readonly Erasure[],
  requested: readonly RequestedErasure[],
  values: Values,
): Promise<void> {
  const unknownIds = requested.map((one) => one.unknown_customer_ids);
  if (values.json) {
    for (const [at, erasure] of erasures.entries()) {
      const { unknown_customer_ids: _, ...rest } = erasure as RequestedErasure;
      await printJsonLine({ ...rest, unknown_customers: unknownIds[at]?.length });
    }
    return;
  }
  const rows = erasures.map((erasure, at) => [
    erasure.erasure_id,
    erasure.people,
    // The service knows users only from their interactions, so it cannot count unknown users.
    values.users ? '' : (unknownIds[at]?.length ?? 0),
    rowsOf(erasure),
    erasure.state,
  ]);
  await printTable(['Erasure', 'Ids', 'Unknown', 'Rows', 'State'], rows);
  const unknown = unknownIds.flat();
  if (!process.stdout.isTTY || unknown.length === 0) return;
  await printTitle('Customers that are not stored');
  await print(...unknown.slice(0, unknownShownMax));
  if (unknown.length > unknownShownMax) await print(`and ${grouped(unknown.length - unknownShownMax)} more`);
}
