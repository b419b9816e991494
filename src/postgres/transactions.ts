import { limits } from '../limits.ts';
import { inOneWrite } from './one-write.ts';
import { type Client, isConflict, isUnavailable, leavesOutcomeOpen, type Pool } from './pool.ts';

/** COMMIT was sent and its answer never came: the work is stored or it is not, and only sending it again settles it. */
export class CommitUnconfirmed extends Error {
  constructor(cause: unknown) {
    super('the answer to COMMIT was lost', { cause });
  }
}

/** Asks for a statement that nothing depends on to be sent together with COMMIT: one write, and one wait for all. */
export type SendLast = (statement: (client: Client) => Promise<unknown>) => void;

/** Runs `work` in one transaction. A connection that fails to roll back is thrown away, so that no slot is poisoned. */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: Client, sendLast: SendLast) => Promise<T>,
  begin: 'begin' | 'begin read only' | 'begin isolation level repeatable read' = 'begin',
): Promise<T> {
  const client = await pool.connect();
  const last: ((client: Client) => Promise<unknown>)[] = [];
  let result: T;
  try {
    // Sent with the first statement of the work; whether it succeeded is asked before anything is committed.
    const begun = client.query(begin);
    begun.catch(() => {});
    result = await work(client, (statement) => last.push(statement));
    await begun;
  } catch (error) {
    await rollBack(client, error);
    throw error;
  }
  await commit(client, last);
  return result;
}

/**
 * Runs statements that do not need each other's results in one transaction, all sent at once: a single write, a single
 * wait, a single commit. Either every one of them is committed or, whatever failed, none.
 */
export async function inOneTransaction<T>(
  client: Client,
  statements: readonly ((client: Client) => Promise<T>)[],
): Promise<T[]> {
  client.query('begin').catch(() => {});
  const { settled, ended } = sendWithCommit(client, statements);
  const { command } = await ended;
  return refuseRollback(settled, command);
}

/** On a connection that has stopped answering, ROLLBACK would wait out a timeout of its own; closing it rolls back too. */
async function rollBack(client: Client, because: unknown): Promise<void> {
  if (isUnavailable(because)) client.release(true);
  else {
    await client.query('rollback').then(
      () => client.release(),
      () => client.release(true),
    );
  }
}

async function commit(
  client: Client,
  last: readonly ((client: Client) => Promise<unknown>)[],
): Promise<void> {
  const { settled, ended } = sendWithCommit(client, last);
  let command: string;
  try {
    ({ command } = await ended);
  } catch (error) {
    client.release(true);
    throw leavesOutcomeOpen(error) ? new CommitUnconfirmed(error) : error;
  }
  client.release();
  await refuseRollback(settled, command);
}

function sendWithCommit<T>(client: Client, last: readonly ((client: Client) => Promise<T>)[]) {
  return inOneWrite(client, () => ({
    settled: Promise.allSettled(last.map((run) => run(client))),
    ended: client.query('commit'),
  }));
}

/** PostgreSQL answers COMMIT of a failed transaction with the word ROLLBACK and no error; the statement knows why. */
async function refuseRollback<T>(settled: Promise<PromiseSettledResult<T>[]>, command: string): Promise<T[]> {
  const results = await settled;
  const failure = results.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
  if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`);
  return results.map((result) => (result as PromiseFulfilledResult<T>).value);
}

/** A transaction found something that changed under its hands: nothing of it is kept, and it is run again. */
export class BeginAgain extends Error {}

/**
 * Runs a transaction again that PostgreSQL sacrificed to another's, or that has to begin again. Written rows that were not
 * seen to be written count among the latter: what a statement should have stored and did not must never be acknowledged.
 */
export async function retryConflicts<T>(run: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run(attempt);
    } catch (error) {
      const again = error instanceof BeginAgain || isConflict(error);
      if (!again || attempt === limits.batchAttemptsMax) throw error;
    }
  }
}
