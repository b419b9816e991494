// The parsing/ folder turns a file's bytes into checked records. It imports nothing from Node, so that the console can use
// it as well.

import type { UploadType } from '../generated/resources.ts';
import type { ColumnPlan } from './columns/plan-columns.ts';
import { FileError } from './file-error.ts';
import type { FileFormat } from './file-name.ts';
import type { FileOptions, OpenedRecords } from './opened-file.ts';
import { openCsv } from './text/read-csv.ts';
import { JsonReader, readJsonArray, readNdjson } from './text/read-json.ts';
import type { TextSource } from './text/text-source.ts';

/** Opens a text file and reads its header. If no format is given, it is detected from the first characters. */
export async function openRecords(
  source: TextSource,
  format: FileFormat | undefined,
  type: UploadType,
  options: FileOptions,
): Promise<OpenedRecords> {
  const opened = format === undefined ? await sniff(source) : { format, text: source };
  const { detectedEncoding } = source;
  const file = { type, format: opened.format, detectedEncoding };
  if (opened.format !== 'csv') {
    const read = opened.format === 'json' ? readJsonArray : readNdjson;
    const reader = new JsonReader(type, options);
    const records = read(opened.text, reader);
    const absentFields = () => reader.absentFields();
    return { ...file, ignoredColumns: [], absentFields, columnOf: () => null, chunks: () => records };
  }
  const { plan, ...csv } = await openCsv(opened.text, type, options);
  return { ...file, ...csv, ...columnsOf(plan) };
}

export function columnsOf({ columns, key, ignored, absent }: ColumnPlan) {
  const names = new Map(columns.map(({ field, column }) => [field, column]));
  if (key !== undefined) names.set(key.field, key.name);
  return {
    ignoredColumns: ignored,
    absentFields: () => absent,
    columnOf: (field: string) => names.get(field) ?? null,
  };
}

/** Detects the format of standard input, which has no file name, from its first characters. */
async function sniff(text: TextSource): Promise<{ format: FileFormat; text: TextSource }> {
  let first: string | undefined = await text.next();
  const start = first?.trimStart() ?? '';
  if (start.startsWith('PAR1'))
    throw new FileError(
      'Parquet is read from its end, so it cannot be read from here; save it as a .parquet file',
    );
  const next = async () => {
    if (first === undefined) return text.next();
    const piece = first;
    first = undefined;
    return piece;
  };
  return { format: formatOfText(start), text: { ...text, next } };
}

function formatOfText(start: string): FileFormat {
  if (start.startsWith('[')) return 'json';
  if (!start.startsWith('{')) return 'csv';
  try {
    return Array.isArray(JSON.parse(start.split('\n', 1)[0] as string).records) ? 'json' : 'ndjson';
  } catch {
    return 'json';
  }
}
