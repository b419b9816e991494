import { type FileMetaData, parquetMetadataAsync, parquetSchema, type SchemaTree } from 'hyparquet';
import type { UploadType } from '../../generated/resources.ts';
import { type ColumnPlan, convertRow, keysOf, planColumns } from '../columns/plan-columns.ts';
import { FileError } from '../file-error.ts';
import type { FileChunk, FileFailure, FileOptions, FileRecord, OpenedTable } from '../opened-file.ts';
import { type ParquetBytes, ParquetColumn, scaleOf } from './parquet-column.ts';

const rowsPerChunk = 500;

/** Reads and checks the schema. After that, `chunks` reads the rows range by range. */
export async function openParquetBytes(
  file: ParquetBytes,
  type: UploadType,
  options: FileOptions,
): Promise<Omit<OpenedTable, 'close'>> {
  const bytes = file.byteLength;
  const metadata = await parquetMetadataAsync(file).catch(explain);
  const header = parquetSchema(metadata).children.map(({ element }) => element.name);
  const plan = planParquet(type, metadata, header, options);
  const reader = new RowReader(file, metadata, header, plan);
  const rows = Number(metadata.num_rows);
  return {
    bytes,
    bytesRead: () => (rows === 0 ? bytes : Math.round((bytes * reader.rowsRead) / rows)),
    header,
    plan,
    async *chunks() {
      try {
        yield* reader.read(options.skipRecords ?? 0);
      } catch (error) {
        explain(error as Error);
      }
    },
  };
}

function explain(error: Error): never {
  if (error instanceof FileError) throw error;
  throw new FileError(`it cannot be read as Parquet (${error.message}); write it again`);
}

/** Plans the columns. Parquet's own numbers never have a decimal comma, even if numbers in the file's text columns do. */
function planParquet(
  type: UploadType,
  metadata: FileMetaData,
  header: readonly string[],
  options: FileOptions,
): ColumnPlan {
  const { children } = parquetSchema(metadata);
  const plan = planColumns(type, header, options);
  const ofNumbers = planColumns(type, header, { ...options, decimalComma: false, thousands: false });
  const isSingle = (child: SchemaTree | undefined): child is SchemaTree =>
    child?.children.length === 0 && child.element.repetition_type !== 'REPEATED';
  if (options.isPreview)
    return { ...plan, columns: plan.columns.filter(({ index }) => isSingle(children[index])) };
  const columns = plan.columns.map((column, at) => {
    const child = children[column.index];
    if (!isSingle(child))
      throw new FileError(
        `column "${column.column}" is a list or a struct, but ${column.field} is a single value; write it as a plain column`,
      );
    const isText = child.element.type === 'BYTE_ARRAY' && scaleOf(child.element) === undefined;
    const type = child.element.logical_type?.type ?? child.element.converted_type ?? child.element.type;
    if (/^(DATE|TIMESTAMP|INT96)/.test(type ?? '')) return { ...column, convert: column.convertIso };
    return isText ? column : (ofNumbers.columns[at] ?? column);
  });
  return { ...plan, columns };
}

class RowReader {
  rowsRead = 0;
  readonly #file: ParquetBytes;
  readonly #metadata: FileMetaData;
  readonly #header: readonly string[];
  readonly #plan: ColumnPlan;
  /** The indexes of the columns that are read. */
  readonly #indexes: readonly number[];

  constructor(file: ParquetBytes, metadata: FileMetaData, header: readonly string[], plan: ColumnPlan) {
    this.#file = file;
    this.#metadata = metadata;
    this.#header = header;
    this.#plan = plan;
    this.#indexes = [...new Set([...plan.columns.map(({ index }) => index), ...(plan.key?.columns ?? [])])];
  }

  async *read(skipRows: number): AsyncGenerator<FileChunk> {
    for (const group of this.#metadata.row_groups) {
      const groupEnd = this.rowsRead + Number(group.num_rows);
      if (groupEnd <= skipRows) {
        this.rowsRead = groupEnd;
        continue;
      }
      const columns = this.#openColumns(group);
      while (this.rowsRead < groupEnd) {
        const count = Math.min(rowsPerChunk, groupEnd - this.rowsRead);
        const texts: string[][] = [];
        for (const [at, index] of this.#indexes.entries())
          texts[index] = await (columns[at] as ParquetColumn).take(count);
        const skipped = Math.min(Math.max(skipRows - this.rowsRead, 0), count);
        const chunk = this.#convert(texts, this.rowsRead, skipped, count);
        this.rowsRead += count;
        if (skipped < count) yield chunk;
      }
    }
  }

  #openColumns({ columns }: FileMetaData['row_groups'][number]): ParquetColumn[] {
    const root = parquetSchema(this.#metadata);
    return this.#indexes.map((index) => {
      const name = this.#header[index] as string;
      const child = root.children[index];
      const data = columns.find(({ meta_data }) => meta_data?.path_in_schema[0] === name)?.meta_data;
      if (data === undefined || child === undefined)
        throw new FileError(`column "${name}" has no data; write the file again`);
      return new ParquetColumn(this.#file, [root, child], data);
    });
  }

  #convert(texts: readonly (readonly string[])[], first: number, from: number, to: number): FileChunk {
    const records: FileRecord[] = [];
    const failures: FileFailure[] = [];
    for (let row = from; row < to; row++) {
      const cells = this.#header.map((_, index) => texts[index]?.[row] ?? '');
      const converted = convertRow(this.#plan, cells);
      const line = first + row + 1;
      if (converted.problems !== undefined) failures.push({ line, ...converted });
      else records.push({ line, record: converted.record, keys: keysOf(this.#plan, cells) });
    }
    return { records, failures };
  }
}
