import { consequencesOf } from '../../../erasure-consequences.ts';
import { peoplePerErasure } from '../../../erasure-requests.ts';
import {
  type CountedErasure,
  type Erasure,
  type Intake,
  IntakeError,
  type People,
  type RequestedErasure,
} from '../../../index.ts';
import { wait } from '../../../wait.ts';
import { type Command, countOf, UsageError, type Values } from '../../options/command.ts';
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
import { sayKeys } from './ids-of-keys.ts';
import { type GivenPeople, readPeople } from './read-ids.ts';

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
without their ids unless you add --delete. On a terminal, the command shows what it will erase, and which id each key has, and
asks first. Needs a key with the permission data:erase. This cannot be undone.

Ids that you type stay in the history of your shell, so a file is better. Messages contain no ids, except that on a terminal
the command lists ids that are not stored, and the ids of keys.

Options:
  --file <file>        reads the ids from a file, one per line; - is standard input and needs --yes
  --users              the ids are user ids, as in the user_id of interactions, not customer ids
  --customer-key <key> the key of a customer whose id was derived with id_from, repeatable: a text, or a JSON list such as
                       '["DE","100500"]' if id_from has several columns
  --user-key <key>     the key of a user whose id was derived, repeatable
  --keys               the arguments and the file are keys, not ids
  --delete             deletes transactions and interactions too
  --dry-run            counts what would be erased, and erases nothing
  --yes                does not ask for confirmation
  --no-wait            does not wait for the sweep
  --timeout <minutes>  how long to wait for it, default ${waitMinutes}
  --json               a line of JSON for each erasure

Examples:
  intake erase --file people.txt --dry-run
  intake erase --file people.txt
  intake erase --customer-key 100500
  intake erase --file visitors.txt --users --delete
  psql -Atc 'select customer_id from leavers' | intake erase --file - --yes --no-wait --json

Exit code: 0 on success, 1 if the sweep takes longer than --timeout. The sweep continues; intake erasures shows its state.`,
  options: {
    file: { type: 'string' },
    users: { type: 'boolean' },
    'customer-key': { type: 'string', multiple: true },
    'user-key': { type: 'string', multiple: true },
    keys: { type: 'boolean' },
    delete: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
    yes: { type: 'boolean' },
    'no-wait': { type: 'boolean' },
    timeout: { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(values, args) {
    const endMs = performance.now() + countOf(values, 'timeout', waitMinutes) * 60_000;
    if (values.file === '-' && !values.yes && !values['dry-run'])
      throw new UsageError('The ids come from standard input, where nobody can answer. Add --yes.');
    const people = await readPeople(args, values);
    if (people.customerIds.length + people.userIds.length === 0)
      throw new UsageError('There are no ids. See intake erase --help.');
    const intake = await connect();
    const signal = interruption();
    const mode = values.delete ? 'delete' : 'anonymise';
    sayKeys(people.keys);
    const count = () => intake.erasures.count({ ...people, mode }, { signal });
    if (values['dry-run']) return printCounts(await count(), values);
    if (!values.yes) {
      const question = async () =>
        `Erase ${countsOf(people)}? ${consequencesOf(await count())} This cannot be undone.`;
      const withoutTerminal = `This erases ${countsOf(people)}, and cannot be undone.`;
      await confirm({ question, withoutTerminal, declined: 'Nothing was erased.' });
    }
    const requested = await request(intake, people, mode, signal);
    const erased = values['no-wait'] ? requested : await untilSwept(intake, requested, endMs, signal);
    await report(erased, requested, people, values);
    if (values['no-wait'] || erased.every(isSwept)) return 0;
    say('The sweep is not finished, and continues on the server. intake erasures shows its state.');
    return 1;
  },
};

function countsOf({ customerIds, userIds }: Pick<GivenPeople, 'customerIds' | 'userIds'>): string {
  const counts = [
    [customerIds.length, 'customer'],
    [userIds.length, 'user'],
  ] as const;
  return counts
    .flatMap(([count, name]) => (count === 0 ? [] : `${grouped(count)} ${name}${count === 1 ? '' : 's'}`))
    .join(' and ');
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
  { customerIds, userIds }: GivenPeople,
  mode: NonNullable<People['mode']>,
  signal: AbortSignal,
): Promise<RequestedErasure[]> {
  const requested: RequestedErasure[] = [];
  for (const part of peoplePerErasure(customerIds, userIds))
    for (const erasure of await intake.erase({ ...part, mode }, { signal })) {
      requested.push(erasure);
      say(`Erasure ${erasure.erasure_id} of ${countsOf(part)} has begun.`);
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
  { customerIds, keys }: GivenPeople,
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
    customerIds.length === 0 ? '' : (unknownIds[at]?.length ?? 0),
    rowsOf(erasure),
    erasure.state,
  ]);
  await printTable(['Erasure', 'Ids', 'Unknown', 'Rows', 'State'], rows);
  const unknown = unknownIds.flat();
  if (!process.stdout.isTTY || unknown.length === 0) return;
  await printTitle('Customers that are not stored');
  const shown = unknown.slice(0, unknownShownMax);
  await print(...shown.map((id) => (keys.has(id) ? `${id}, from the key ${keys.get(id)}` : id)));
  if (unknown.length > unknownShownMax) await print(`and ${grouped(unknown.length - unknownShownMax)} more`);
}
