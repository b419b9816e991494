import { type RecordFilters, type ResourceType, resourceTypes } from '../index.ts';
import { type Command, choiceOf, textOf, UsageError } from './command.ts';
import { asType } from './file-options.ts';
import { interruption } from './interruption.ts';
import { connect } from './settings.ts';
import { printData } from './terminal.ts';

/** Lines per write. */
const linesPerWrite = 500;

export const exportRecords: Command = {
  summary: 'write every record of a type to standard output',
  help: `Usage: intake export <type> [options]

Options:
  --format <format>        ndjson (the default), csv or parquet
  --since <time>           only records created or changed at this instant or later
  --include-deleted        also those that are marked as deleted

Examples:
  intake export shops --format csv > shops.csv
  intake export transactions --format parquet > transactions.parquet
  intake export transactions --since 2026-03-14T00:00:00Z | gzip > transactions.ndjson.gz`,
  options: { format: { type: 'string' }, since: { type: 'string' }, 'include-deleted': { type: 'boolean' } },
  words: resourceTypes,
  async run(values, [name, ...rest]) {
    if (name === undefined || rest.length > 0)
      throw new UsageError('Name one record type. See intake export --help.');
    const type = asType(name);
    const format = choiceOf(values, 'format') ?? 'ndjson';
    if (format === 'parquet' && process.stdout.isTTY)
      throw new UsageError(`Parquet is not for a terminal. Add a file: > ${type}.parquet`);
    const filters = { stored_since: textOf(values, 'since'), include_deleted: values['include-deleted'] };
    const query = { ...filters, signal: interruption() } as RecordFilters<ResourceType>;
    const records = (await connect()).data.list(type, query);
    await (format === 'parquet' ? writeParquet(type, records) : writeLines(format, records));
    return 0;
  },
};

async function writeParquet(type: ResourceType, records: AsyncIterable<object>): Promise<void> {
  const { ParquetOutput } = await import('./parquet-output.ts');
  const output = new ParquetOutput(type);
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
