import type { UploadType } from '../generated/resources.ts';
import type { ColumnPlan, PlanOptions, Problem } from './columns/plan-columns.ts';
import type { FileFormat } from './file-name.ts';

export interface FileRecord {
  /** The record to upload. */
  readonly record: Record<string, unknown>;
  /** Line (CSV, NDJSON), row (.xlsx) or number (JSON, Parquet) of the record in its file, from 1, headers included. */
  readonly line: number;
  /** The original CSV row, for the file of failed records; undefined for other formats. */
  readonly cells?: readonly string[];
  /** The keys from which its references were derived, by field; undefined for CSV, whose cells have them. */
  readonly keys?: Readonly<Record<string, string>> | undefined;
}

/** A record that cannot be read or converted: one per record, however many of its cells are wrong. */
export interface FileFailure {
  readonly line: number;
  readonly problems: readonly Problem[];
  readonly cells?: readonly string[];
  readonly record?: unknown;
}

export interface FileChunk {
  readonly records: readonly FileRecord[];
  readonly failures: readonly FileFailure[];
}

/** A file with columns that is not a text. */
export interface OpenedTable {
  readonly bytes: number;
  bytesRead(): number;
  readonly header: readonly string[];
  readonly plan: ColumnPlan;
  chunks(): AsyncGenerator<FileChunk>;
  close(): Promise<void>;
}

/** The records of a file, wherever its bytes come from. */
export interface OpenedRecords {
  readonly type: UploadType;
  readonly format: FileFormat;
  /** The header of a CSV or a sheet, or the columns of Parquet. */
  readonly header?: readonly string[];
  /** The separator between the cells of a CSV. */
  readonly separator?: string;
  /** Columns that are no field of the type and are not sent. */
  readonly ignoredColumns: readonly string[];
  /** Which column a field is read from; null if none. */
  columnOf(field: string): string | null;
  /** The encoding, if it is not UTF-8 and nobody named it; known once such a character has been read. */
  detectedEncoding(): string | undefined;
  /** The records, some hundreds at a time. Can be called once. Throws if the file cannot be read any further. */
  chunks(): AsyncIterable<FileChunk>;
}

export interface OpenedFile extends OpenedRecords {
  readonly path: string;
  /** Size on disk, undefined for standard input, and how much has been read, for progress. */
  readonly bytes: number | undefined;
  bytesRead(): number;
  /** For a file that is not read. */
  close(): Promise<void>;
}

export interface FileOptions extends PlanOptions {
  readonly type?: UploadType | undefined;
  /** The encoding of a text file; detected if undefined. */
  readonly encoding?: string | undefined;
  /** How many records, failures included, are skipped at the start. */
  readonly skipRecords?: number | undefined;
}
