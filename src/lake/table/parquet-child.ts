import { DuckDBInstance } from '@duckdb/node-api';

/**
 * Runs DuckDB in a separate process, so that the lake process survives if DuckDB runs out of memory. parquet-writer.ts
 * starts this process and sends it one list of statements at a time. The process exits together with its parent.
 */

export type Row = Readonly<Record<string, string | null>>;

/** The rows of the last statement, or the kind of error. DuckDB's messages quote values, so they are not passed on. */
export type Outcome = { readonly rows: readonly Row[] } | { readonly failed: string };

const [folder = '', memoryMb = '', threads = ''] = process.argv.slice(2);

const instance = await DuckDBInstance.create(':memory:', {
  memory_limit: `${memoryMb}MB`,
  threads,
  temp_directory: `${folder}/spilled`,
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
});
const connection = await instance.connect();
// From here on, statements can only read and write files in this folder.
for (const setting of [
  `timezone = 'UTC'`,
  `allowed_directories = ['${folder.replaceAll("'", "''")}/']`,
  'enable_external_access = false',
  'lock_configuration = true',
])
  await connection.run(`set ${setting}`);

process.on('disconnect', () => process.exit());
process.on('message', async (statements: readonly string[]) => {
  process.send?.(await outcomeOf(statements));
});

async function outcomeOf(statements: readonly string[]): Promise<Outcome> {
  let rows: readonly Row[] = [];
  try {
    for (const statement of statements)
      rows = (await connection.runAndReadAll(statement)).getRowObjectsJson() as unknown as readonly Row[];
    return { rows };
  } catch (error) {
    return { failed: /^[A-Za-z ]{1,40}Error/.exec((error as Error).message)?.[0] ?? 'Error' };
  }
}
