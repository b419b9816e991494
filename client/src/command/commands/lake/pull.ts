import { onFirstLimit } from '../../../connection.ts';
import { notWritten } from '../../../files/write-whole.ts';
import type { PulledTable, PullProgress } from '../../../index.ts';
import { PullFolderError } from '../../../lake/disk.ts';
import { type Command, UsageError } from '../../options/command.ts';
import { connect } from '../../options/settings.ts';
import { interruption } from '../../terminal/interruption.ts';
import { Progress } from '../../terminal/progress.ts';
import { printJson, printTable, say, warn } from '../../terminal/terminal.ts';

export const pull: Command = {
  summary: 'copy the lake to a folder, or update a copy',
  help: `Usage: intake pull <folder> [--json]

Copies each table of your organisation's lake to the folder, as Parquet files and a Delta Lake log that DuckDB, pandas, Polars and
others can read. Run it again to update the copy. It downloads only new files, continues interrupted downloads, and removes
files that are no longer part of a table. It verifies the checksum of every file, and replaces a table only when the new
version is complete. While the lake is empty or being copied from the database, it changes nothing and exits with 2. The copy
contains personal data.

Options:
  --json    prints what was copied as JSON

Examples:
  intake pull ./lake
  duckdb -c "select count(*) from read_parquet('lake/interactions/*/*.parquet')"`,
  options: { json: { type: 'boolean' } },
  takesFiles: true,
  async run(values, [folder, ...rest]) {
    if (folder === undefined || rest.length > 0)
      throw new UsageError('Specify one folder. See intake pull --help.');
    const progress = new Progress();
    const onRetry = onFirstLimit((notice) => {
      progress.clear();
      warn(notice);
    });
    const intake = await connect({ onRetry });
    const onProgress = (state: PullProgress) => progress.show(shown(state));
    try {
      const pulled = await intake.lake.pull(folder, { onProgress, signal: interruption() });
      progress.clear();
      await (values.json ? printJson(pulled) : printPulled(pulled));
      return 0;
    } catch (error) {
      progress.clear();
      if (error instanceof PullFolderError) throw new UsageError(error.message);
      if ((error as Error).name === 'AbortError')
        say('Downloaded files are kept. Run the same command again to continue.');
      // Only system errors have an `errno`.
      throw (error as NodeJS.ErrnoException).errno === undefined ? error : notWritten(folder, error);
    }
  },
};

function shown({ table, bytes, bytesDone, rowsDone }: PullProgress) {
  return { path: table, bytesRead: bytesDone, bytes, records: rowsDone, failed: 0 };
}

async function printPulled(pulled: readonly PulledTable[]): Promise<void> {
  await printTable(
    ['Table', 'Rows', 'Files', 'Downloaded', 'Removed', 'As of'],
    pulled.map((one) => [
      one.table,
      one.rows,
      one.files,
      one.filesDownloaded,
      one.filesRemoved,
      one.as_of ?? 'unknown',
    ]),
  );
}
