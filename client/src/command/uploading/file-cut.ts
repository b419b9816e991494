import type { FileFailure, FileRecord, OpenedFile } from '../../parsing/opened-file.ts';
import type { ByteLines } from '../../uploading/byte-lines.ts';
import type { Cut } from '../../uploading/request-cutter.ts';
import type { Outcome } from '../../uploading/send-cuts.ts';
import type { Problem } from './tally.ts';

/**
 * The records of one request, and what is kept of each until it is answered: as bytes, because strings take several
 * times as much.
 */
export interface FileCut extends Cut<undefined> {
  /** For each sent record: its line and cells. */
  readonly rows: ByteLines;
  /** The records that are not sent. */
  readonly unsent: ByteLines;
}

/** A failed record, with its problems by column. */
export interface Failed extends Omit<FileRecord, 'record' | 'cells'> {
  readonly cells?: readonly string[] | undefined;
  readonly record?: unknown;
  readonly problems: readonly Problem[];
}

const separator = '\u001f';

/** The line, and the number of cells and the cells, or the keys, as one string. */
export function packRow({ line, cells, keys }: FileRecord): string {
  if (cells !== undefined) return `${line}${separator}${cells.length}${separator}${cells.join(separator)}`;
  return keys === undefined ? `${line}` : `${line}${separator}keys${separator}${JSON.stringify(keys)}`;
}

/** Leaves the cells out if one of them contains the separator, because they cannot be told apart. */
function unpackRow(row: string): Pick<Failed, 'line' | 'cells' | 'keys'> {
  const [line, count, ...cells] = row.split(separator);
  if (count === 'keys') return { line: Number(line), keys: JSON.parse(cells.join(separator)) };
  return cells.length === Number(count) ? { line: Number(line), cells } : { line: Number(line) };
}

export function packFailure(failure: FileFailure | undefined): string {
  return JSON.stringify(failure);
}

/**
 * The failed records in the order of the file, one at a time: together they may take more memory than everything else.
 */
export function* failedOf(file: OpenedFile, cut: FileCut, { failed }: Outcome): Generator<Failed> {
  let next = 0;
  let unsent = unsentAt(cut, next);
  for (const { index, problems } of failed) {
    const row = unpackRow(cut.rows.get(index));
    for (; unsent && unsent.line < row.line; unsent = unsentAt(cut, ++next)) yield unsent;
    const named = problems.map((problem) => ({ ...problem, column: columnOf(file, problem.field) }));
    yield { ...row, record: JSON.parse(cut.parts.get(index)), problems: named };
  }
  for (; unsent; unsent = unsentAt(cut, ++next)) yield unsent;
}

function unsentAt({ unsent }: FileCut, index: number): FileFailure | undefined {
  return index < unsent.count ? JSON.parse(unsent.get(index)) : undefined;
}

/** The key in the file from which the id in this field was derived; the id itself if it was not. */
export function keyOf({ header = [], columnOf }: OpenedFile, { cells, keys }: Failed, field: string) {
  return keys?.[field] ?? cells?.[header.indexOf(columnOf(field) ?? '')]?.trim();
}

/** The name that people know: the column of their file, or else the field. */
export function columnOf(file: OpenedFile, field: string | null): string | null {
  return field === null ? null : (file.columnOf(field) ?? field);
}
