import { type UploadType, uploadTypes } from '../../generated/resources.ts';
import type { RecordFilters, ResourceType } from '../../index.ts';
import { readInteractions } from '../../reading/read-records.ts';
import { type Command, choiceOf, textOf, UsageError, type Values } from '../options/command.ts';
import { asType } from '../options/file-options.ts';
import { connect, connectionOf, readSettings } from '../options/settings.ts';
import { interruption } from '../terminal/interruption.ts';
import { printData } from '../terminal/terminal.ts';

/** The number of lines in each write. */
const linesPerWrite = 500;

export const exportRecords: Command = {
  summary: 'write every record of a type, or every interaction, to standard output',
  help: `Usage: intake export <type> [options]

Options:
  --format <format>        ndjson (the default), csv or parquet
  --doubles                for Parquet: writes numbers as DOUBLE instead of DECIMAL(38,9), which has 9 decimal places
  --since <time>           only records created or changed, or interactions received, at this instant or later
  --include-deleted        also records that are marked as deleted

Examples:
  intake export shops --format csv > shops.csv
  intake export interactions --format parquet > interactions.parquet
  intake export transactions --format parquet > transactions.parquet
  intake export transactions --since 2026-03-14T00:00:00Z | gzip > transactions.ndjson.gz`,
  options: {
    format: { type: 'string' },
    doubles: { type: 'boolean' },
    since: { type: 'string' },
    'include-deleted': { type: 'boolean' },
  },
  words: uploadTypes,
  async run(values, [name, ...rest]) {
    if (name === undefined || rest.length > 0)
      throw new UsageError('Specify one record type. See intake export --help.');
    const type = asType(name);
    const format = choiceOf(values, 'format') ?? 'ndjson';
    if (format === 'parquet' && process.stdout.isTTY)
      throw new UsageError(`Parquet cannot be shown on a terminal. Write it to a file: > ${type}.parquet`);
    if (values.doubles && format !== 'parquet')
      throw new UsageError('--doubles only works with --format parquet.');
    const records = await recordsOf(type, values);
    await (format === 'parquet'
      ? writeParquet(type, records, values.doubles === true)
      : writeLines(format, records));
    return 0;
  },
};

async function recordsOf(type: UploadType, values: Values): Promise<AsyncIterable<object>> {
  const since = textOf(values, 'since');
  const signal = interruption();
  if (type === 'interactions') {
    if (values['include-deleted'])
      throw new UsageError('Interactions are never marked as deleted, so leave out --include-deleted.');
    return readInteractions(connectionOf(await readSettings()), { from: since }, signal);
  }
  const filters = { stored_since: since, include_deleted: values['include-deleted'] };
  return (await connect()).data.list(type, { ...filters, signal } as RecordFilters<ResourceType>);
}

async function writeParquet(
  type: UploadType,
  records: AsyncIterable<object>,
  hasDoubles: boolean,
): Promise<void> {
  const { ParquetOutput } = await import('../parquet/parquet-output.ts');
  const output = new ParquetOutput(type, hasDoubles);
  for await (const record of records) await output.add(record);
  await output.close();
}

async function writeLines(format: string, records: AsyncIterable<object>): Promise<void> {
  const lineOf = format === 'csv' ? csvLine : (record: object) => JSON.stringify(record);
  let lines: string[] = [];
  let isFirst = true;
  for await (const record of records) {
    if (isFirst && format === 'csv') lines.push(Object.keys(record).map(csvCell).join(','));
    isFirst = false;
    if (lines.push(lineOf(record)) < linesPerWrite) continue;
    await printData(lines.join('\n'));
    lines = [];
  }
  if (lines.length > 0) await printData(lines.join('\n'));
}

function csvLine(record: object): string {
  return Object.values(record).map(csvCell).join(',');
}

function csvCell(value: unknown): string {
  if (value === null) return '';
  const text = String(value);
  return /[",\r\n]/.test(text) || text === '' ? `"${text.replaceAll('"', '""')}"` : text;
}
