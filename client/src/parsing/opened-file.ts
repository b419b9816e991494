import type { UploadType } from '../generated/resources.ts';
import type { ColumnPlan, PlanOptions, Problem } from './columns/plan-columns.ts';
import type { SkippedRow } from './columns/skipped-rows.ts';
import type { FileFormat } from './file-name.ts';

export interface FileRecord {
  /** The record to upload. */
  readonly record: Record<string, unknown>;
  /**
   * The record's position in its file, counting from 1 and including headers. It is a line (CSV, NDJSON), a row (.xlsx) or a
   * record number (JSON, Parquet).
   */
  readonly line: number;
  /** The cells of the original CSV row, for the file of failed records. Undefined for other formats. */
  readonly cells?: readonly string[];
  /** The keys from which the record's references were derived, by field. Undefined for CSV, whose cells contain the keys. */
  readonly keys?: Readonly<Record<string, string>> | undefined;
}

/** A record that cannot be read or converted. There is one failure per record, no matter how many of its cells are wrong. */
export interface FileFailure {
  readonly line: number;
  readonly problems: readonly Problem[];
  readonly cells?: readonly string[];
  readonly record?: unknown;
  /**
   * The record with the original text of the cells that cannot be converted. It is sent, so that the service keeps it as a
   * rejection. Undefined if the service would accept one of these texts, or if no record can be made.
   */
  readonly sendable?: Record<string, unknown> | undefined;
  /** What the file of failed records has instead of `record`: the fields with their values as far as they can be converted. */
  readonly converted?: Record<string, unknown> | undefined;
}

export interface FileChunk {
  readonly records: readonly FileRecord[];
  readonly failures: readonly FileFailure[];
  /** The file's last line if it has no line break, so that its last value may be cut off. Google Sheets writes such files. */
  readonly openLine?: number | undefined;
}

/** A spreadsheet or Parquet file. */
export interface OpenedTable {
  readonly bytes: number;
  bytesRead(): number;
  readonly header: readonly string[];
  readonly plan: ColumnPlan;
  chunks(): AsyncGenerator<FileChunk>;
  close(): Promise<void>;
  /** The sheets that are not read although they have data and no sheet was specified. */
  readonly otherSheets?: readonly string[];
  skippedRows?(): readonly SkippedRow[];
}

/** A file's records. The file's bytes may come from any source. */
export interface OpenedRecords {
  readonly type: UploadType;
  readonly format: FileFormat;
  /** A CSV file's or sheet's header, or a Parquet file's columns. */
  readonly header?: readonly string[];
  /** A CSV file's cell separator. */
  readonly separator?: string;
  /** The columns that do not match a field of the type and are not sent. */
  readonly ignoredColumns: readonly string[];
  /**
   * Returns the fields without a column, whose stored values are kept. In JSON, these are the fields that no record has, so the
   * list is empty until all records have been read.
   */
  absentFields(): readonly string[];
  readonly otherSheets?: readonly string[];
  /** Returns the column that a field is read from, or null if the file has no such column. */
  columnOf(field: string): string | null;
  /**
   * Returns the detected encoding if it is not UTF-8 and was not specified. It is unknown until a non-ASCII character has
   * been read.
   */
  detectedEncoding(): string | undefined;
  /**
   * Returns the rows above the header and below the last record that are not read. Those below are unknown until all records have
   * been read.
   */
  skippedRows?(): readonly SkippedRow[];
  /** Yields the records, a few hundred at a time. Can be called only once. Throws if the rest of the file cannot be read. */
  chunks(): AsyncIterable<FileChunk>;
}

/** The first bytes of a file, as they were read. */
export interface BytesRead {
  readonly bytes: number;
  readonly sha256: string;
}

export interface OpenedFile extends OpenedRecords {
  readonly path: string;
  /** The size on disk (undefined for standard input) and the number of bytes read, for showing the progress. */
  readonly bytes: number | undefined;
  bytesRead(): number;
  /** Returns what was read so far, if that is needed and the file is read from its start to its end. */
  hashRead?(): BytesRead;
  /** Closes the file if its records are not read. */
  close(): Promise<void>;
}

export interface FileOptions extends PlanOptions {
  readonly type?: UploadType | undefined;
  /** A text file's encoding. If undefined, the encoding is detected. */
  readonly encoding?: string | undefined;
  /** The number of records to skip at the start, counting records that failed. */
  readonly skipRecords?: number | undefined;
  /** The number of lines (of a sheet: rows) above the header, and of rows that are not empty below the last record. */
  readonly skipTop?: number | undefined;
  readonly skipBottom?: number | undefined;
  /** The name or the number, from 1, of the sheet to read. Default: the first one. */
  readonly sheet?: string | number | undefined;
  /** Whether it is a file of failed records, which is always written as UTF-8. */
  readonly isFailedFile?: boolean | undefined;
  /** Whether `hashRead` will be called. */
  readonly isHashed?: boolean | undefined;
}
