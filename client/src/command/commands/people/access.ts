import { open, rm } from 'node:fs/promises';
import { isCustomerId, isUserId } from '../../../erasure-requests.ts';
import { type AccessRequest, type Intake, IntakeError } from '../../../index.ts';
import { FileError, withPath } from '../../../parsing/file-error.ts';
import { readCollectedLines } from '../../../reading/read-collected.ts';
import { wait } from '../../../wait.ts';
import { type Command, countOf, textOf, textsOf, UsageError, type Values } from '../../options/command.ts';
import { connect, connectionOf, readSettings } from '../../options/settings.ts';
import { interruption } from '../../terminal/interruption.ts';
import { duration } from '../../terminal/progress.ts';
import { drawLine, grouped, printData, say } from '../../terminal/terminal.ts';
import { idOfKey, keyForm, sayKeys } from './ids-of-keys.ts';

const pollMs = 1_000;
const waitMinutes = 60;
/** The number of lines in each write. */
const linesPerWrite = 500;

export const access: Command = {
  summary: 'write everything that is stored about a person',
  help: `Usage: intake access --customer <id> [options]

Requests everything that the service stores about a person, waits until it has been collected, and writes it as a line of JSON
for each record. The service keeps the result for 7 days. Needs a key with the permission data:access.

Options:
  --customer <id>      the id of a customer, repeatable if a person has several
  --user <id>          the id of a user, as in the user_id of interactions, repeatable
  --customer-key <key> the key of a customer whose id was derived with id_from, repeatable: a text, or a JSON list such as
                       '["DE","100500"]' if id_from has several columns
  --user-key <key>     the key of a user whose id was derived, repeatable
  --request <id>       downloads an earlier request instead
  --cancel <id>        cancels an earlier request instead, and deletes what was collected
  --output <file>      a new file, which only you can read; default: standard output
  --timeout <minutes>  how long to wait, default ${waitMinutes}

Examples:
  intake access --customer c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11 --output person.ndjson
  intake access --customer-key 100500 --output person.ndjson
  intake access --request 019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f > person.ndjson

Exit code: 0 on success, 1 if collecting takes longer than --timeout. The service continues to collect; use --request later.`,
  options: {
    customer: { type: 'string', multiple: true },
    user: { type: 'string', multiple: true },
    'customer-key': { type: 'string', multiple: true },
    'user-key': { type: 'string', multiple: true },
    request: { type: 'string' },
    cancel: { type: 'string' },
    output: { type: 'string' },
    timeout: { type: 'string' },
  },
  async run(values, args) {
    const keys = new Map<string, string>();
    const customerIds = [...textsOf(values, 'customer'), ...derivedIds(values, 'customer', keys)];
    const userIds = [...textsOf(values, 'user'), ...derivedIds(values, 'user', keys)];
    const [earlier, cancelled] = [textOf(values, 'request'), textOf(values, 'cancel')];
    refuseWrong(customerIds, userIds, [earlier, cancelled], args);
    if (cancelled !== undefined) return cancel(cancelled);
    const endMs = performance.now() + countOf(values, 'timeout', waitMinutes) * 60_000;
    const connection = connectionOf(await readSettings());
    const intake = await connect();
    const signal = interruption();
    sayKeys(keys);
    // Open the output before sending the request, because the command fails if the file already exists.
    const output = await outputOf(values);
    let isWritten = false;
    try {
      const id = earlier ?? (await request(intake, { customerIds, userIds }, signal));
      const { state } = await untilDone(intake, id, endMs, signal);
      if (state === 'pending' || state === 'running') {
        say(`Collecting continues on the server. To download later: intake access --request ${id}`);
        return 1;
      }
      const count = await inLines(readCollectedLines(connection, id, signal), output.write);
      isWritten = true;
      say(count === 0 ? 'Nothing is stored about this person.' : `Records: ${grouped(count)}`);
      return 0;
    } finally {
      await output.close(isWritten);
    }
  },
};

/** Returns the ids of the keys, and adds them to `keys`. */
function derivedIds(values: Values, name: 'customer' | 'user', keys: Map<string, string>): string[] {
  return textsOf(values, `${name}-key`).map((key) => {
    const named = `${name}s` as const;
    const id = idOfKey(named, key);
    if (id === undefined) throw new UsageError(`--${name}-key is not a key; ${keyForm(named)}.`);
    keys.set(id, key.trim());
    return id;
  });
}

function refuseWrong(
  customerIds: readonly string[],
  userIds: readonly string[],
  requests: readonly (string | undefined)[],
  args: readonly string[],
): void {
  // Error messages never contain an id, because they may end up in a log.
  if (args.length > 0)
    throw new UsageError('Specify the person with --customer or --user. See intake access --help.');
  const earlier = requests.filter((id) => id !== undefined);
  const isNamed = customerIds.length + userIds.length > 0;
  if (earlier.length !== (isNamed ? 0 : 1))
    throw new UsageError(
      'Use --customer or --user, or only --request or --cancel. See intake access --help.',
    );
  if (!customerIds.every(isCustomerId))
    throw new UsageError('--customer is not a UUID. Use --customer-key for a key from an uploaded file.');
  if (!userIds.every(isUserId)) throw new UsageError('--user is empty or too long.');
  // An id in a URL path ends up in logs. Request ids are version 7 UUIDs, which people's ids rarely are.
  if (!earlier.every((id) => /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-/i.test(id)))
    throw new UsageError(`--${requests[0] ? 'request' : 'cancel'} is not the id of an access request.`);
}

async function cancel(id: string): Promise<number> {
  const { state } = await (await connect()).accessRequests.cancel(id, { signal: interruption() });
  say(state === 'cancelled' ? 'The access request is cancelled.' : 'The access request has already expired.');
  return 0;
}

interface Output {
  readonly write: (text: string) => Promise<unknown>;
  /** Deletes the file if it is incomplete, because it could be mistaken for a complete one. */
  readonly close: (isWritten: boolean) => Promise<void>;
}

async function outputOf(values: Values): Promise<Output> {
  const path = textOf(values, 'output');
  if (path === undefined) return { write: printData, close: async () => {} };
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    const message =
      error.code === 'EEXIST' ? 'The file already exists. Specify a new one.' : `${error.message}.`;
    throw withPath(path, new FileError(message));
  });
  return {
    // `appendFile` writes the whole text, but `write` may write only part of it.
    write: (text) => file.appendFile(`${text}\n`),
    async close(isWritten) {
      await file.close();
      if (!isWritten) await rm(path);
    },
  };
}

/** Writes the records as JSON lines and returns how many there were. */
async function inLines(
  records: AsyncIterable<{ readonly line: string }>,
  write: Output['write'],
): Promise<number> {
  let count = 0;
  let lines: string[] = [];
  for await (const { line } of records) {
    count++;
    if (lines.push(line) < linesPerWrite) continue;
    await write(lines.join('\n'));
    lines = [];
  }
  if (lines.length > 0) await write(lines.join('\n'));
  return count;
}

async function request(
  intake: Intake,
  people: { readonly customerIds: readonly string[]; readonly userIds: readonly string[] },
  signal: AbortSignal,
): Promise<string> {
  const { access_request_id: id } = await intake.accessRequests.request(people, { signal });
  say(`Access request ${id} has begun.`);
  return id;
}

/** Waits until the request is done or the timeout expires, and returns the request. */
async function untilDone(
  intake: Intake,
  id: string,
  endMs: number,
  signal: AbortSignal,
): Promise<AccessRequest> {
  const startedMs = performance.now();
  try {
    for (;;) {
      const found = await intake.accessRequests.get(id, { signal });
      const isOpen = found.state === 'pending' || found.state === 'running';
      if (!isOpen || performance.now() + pollMs > endMs) return found;
      const count = Object.values(found.records).reduce((sum, one) => sum + one, 0);
      if (process.stderr.isTTY)
        drawLine(`Records: ${grouped(count)}, ${duration((performance.now() - startedMs) / 1000)}`);
      await wait(pollMs, signal);
    }
  } catch (error) {
    if (signal.aborted || error instanceof IntakeError)
      say(`Collecting continues on the server. To download later: intake access --request ${id}`);
    throw error;
  } finally {
    if (process.stderr.isTTY) drawLine();
  }
}
