import pg from 'pg';
import { readDatabaseConfig } from '../../config.ts';
import { ClusterRefused, type Coordinator } from '../../operator/distribute.ts';
import { causeOf } from '../../postgres/loggable-error.ts';
import { isUnavailable } from '../../postgres/pool.ts';
import { commandError } from '../arguments/help.ts';
import { explaining } from './explain-database.ts';

/** There is no statement timeout, because a statement may take hours. */
export async function onCoordinator<T>(
  command: string,
  work: (coordinator: Coordinator) => Promise<T>,
): Promise<T> {
  const { databaseUrl, databasePooler } = readDatabaseConfig();
  if (databasePooler)
    throw commandError(
      `${command} cannot use a pooler; set DATABASE_URL to the coordinator itself, and DATABASE_POOLER=off`,
    );
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: `intake-server ${command}`,
    options: '-c statement_timeout=0 -c idle_in_transaction_session_timeout=0',
  });
  // The running statement reports a broken connection. Without a listener, the error would also end the process.
  client.on('error', () => {});
  try {
    return await explaining({ setting: 'DATABASE_URL', url: databaseUrl, command }, async () => {
      await client.connect();
      return work(client).catch((error: unknown) => {
        throw explainLoss(error, client);
      });
    });
  } catch (error) {
    throw error instanceof ClusterRefused ? commandError(`${error.message}; nothing was done`) : error;
  } finally {
    await client.end();
  }
}

/** Completed work is kept, and every command here skips it on the next run. */
function explainLoss(error: unknown, { host, port }: pg.Client): unknown {
  if (!isLost(error)) return error;
  return commandError(
    `the connection to PostgreSQL at ${host}:${port} was lost (${causeOf(error)}); when it is running again, run the command ` +
      'again: it continues where it stopped',
  );
}

/** The last condition is for Citus, which reports an internal error when its own server has died. */
function isLost(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return isUnavailable(error);
  const { code = '', severity, message } = error;
  return severity === 'FATAL' || code.startsWith('57P') || /^postmaster was shut down/.test(message);
}
