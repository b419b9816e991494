import pg from 'pg';
import { readDatabaseConfig } from '../config.ts';
import { ClusterRefused, type Coordinator } from '../operator/distribute.ts';
import { explaining } from './explain-database.ts';
import { commandError } from './help.ts';

/** Runs a command on one connection to the coordinator without a statement timeout: a statement may take hours. */
export async function onCoordinator<T>(
  command: string,
  work: (coordinator: Coordinator) => Promise<T>,
): Promise<T> {
  const { databaseUrl, databasePooler } = readDatabaseConfig();
  if (databasePooler)
    throw commandError(
      `${command} cannot go through a pooler; set DATABASE_URL to the coordinator itself, and DATABASE_POOLER=off`,
    );
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: `intake-server ${command}`,
    options: '-c statement_timeout=0 -c idle_in_transaction_session_timeout=0',
  });
  try {
    return await explaining({ setting: 'DATABASE_URL', url: databaseUrl }, async () => {
      await client.connect();
      return work(client);
    });
  } catch (error) {
    throw error instanceof ClusterRefused ? commandError(`${error.message}; nothing was done`) : error;
  } finally {
    await client.end();
  }
}
