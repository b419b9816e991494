import { resources, type UploadType } from '../../generated/resources.ts';
import type { FileFailure, FileRecord, OpenedFile } from '../../parsing/opened-file.ts';
import type { ByteLines } from '../../uploading/byte-lines.ts';
import type { Cut } from '../../uploading/request-cutter.ts';
import type { Outcome } from '../../uploading/send-cuts.ts';
import type { Problem } from './tally.ts';

/**
 * One request's records, together with their rows, which are kept until the request is answered. Rows are stored as bytes,
 * because strings would take several times as much memory.
 */
export interface FileCut extends Cut<undefined> {
  /** The line number and cells of each sent record, and the problems of those that the service will reject. */
  readonly rows: ByteLines;
  /** The records that are not sent. */
  readonly unsent: ByteLines;
}

/** A failed record, with its problems listed by column. */
export interface Failed extends Omit<FileRecord, 'record' | 'cells'> {
  readonly cells?: readonly string[] | undefined;
  readonly record?: unknown;
  readonly problems: readonly Problem[];
}

const separator = '\u001f';

/** Packs the line number and either the cells (preceded by their count) or the keys into one string. */
export function packRow({ line, cells, keys }: FileRecord): string {
  if (cells?.some((cell) => cell.includes(separator)))
    return `${line}${separator}cells${separator}${JSON.stringify(cells)}`;
  if (cells !== undefined) return `${line}${separator}${cells.length}${separator}${cells.join(separator)}`;
  return keys === undefined ? `${line}` : `${line}${separator}keys${separator}${JSON.stringify(keys)}`;
}

interface SentRow extends Pick<Failed, 'line' | 'cells' | 'keys' | 'record'> {
  /** Why cells could not be converted. */
  readonly problems?: readonly Problem[];
}

function unpackRow(row: string): SentRow {
  const [number, what, ...rest] = row.split(separator);
  const line = Number(number);
  if (what === undefined) return { line };
  if (what === 'failure') return { line, ...JSON.parse(rest.join(separator)) };
  if (what === 'keys' || what === 'cells') return { line, [what]: JSON.parse(rest.join(separator)) };
  return { line, cells: rest };
}

export function packFailure(failure: FileFailure): string {
  const { sendable, converted, ...read } = failure;
  const others = converted === undefined ? read : { ...read, record: converted };
  if (sendable === undefined) return JSON.stringify(others);
  const { line, cells, problems, record } = others;
  // The record is kept as it is in the file, unless that is what was sent.
  const kept = record === sendable ? { cells, problems } : { cells, problems, record };
  return `${line}${separator}failure${separator}${JSON.stringify(kept)}`;
}

/**
 * Yields the failed records in file order, one at a time, because all of them together may need more memory than the rest of
 * the program.
 */
export function* failedOf(file: OpenedFile, cut: FileCut, { failed }: Outcome): Generator<Failed> {
  let next = 0;
  let unsent = unsentAt(cut, next);
  for (const { index, problems } of failed) {
    const { problems: local = [], ...row } = unpackRow(cut.rows.get(index));
    for (; unsent && unsent.line < row.line; unsent = unsentAt(cut, ++next)) yield unsent;
    // The command knows more about a cell that it could not convert than the service, such as the option that would read it.
    const named = problems.map(
      (problem) =>
        local.find(({ field }) => field != null && field === problem.field) ?? {
          ...problem,
          column: columnOf(file, problem.field),
        },
    );
    yield { record: JSON.parse(cut.parts.get(index)), ...row, problems: named };
  }
  for (; unsent; unsent = unsentAt(cut, ++next)) yield unsent;
}

function unsentAt({ unsent }: FileCut, index: number): FileFailure | undefined {
  return index < unsent.count ? JSON.parse(unsent.get(index)) : undefined;
}

/** Returns the lines of the records that passed and share an id, one list for each id. */
export function repeatedLines(type: UploadType, { parts, rows }: FileCut, { failed }: Outcome): number[][] {
  const hasFailed = new Set(failed.map(({ index }) => index));
  const lines = new Map<string, number[]>();
  for (let index = 0; index < parts.count; index++) {
    if (hasFailed.has(index)) continue;
    const id = String(JSON.parse(parts.get(index))[resources[type].idField]).toLowerCase();
    const line = Number.parseInt(rows.get(index), 10);
    const known = lines.get(id);
    if (known) known.push(line);
    else lines.set(id, [line]);
  }
  return [...lines.values()].filter(({ length }) => length > 1);
}

/** Returns the key in the file from which this field's id was derived, or the id itself if it was not derived. */
export function keyOf({ header = [], columnOf }: OpenedFile, { cells, keys }: Failed, field: string) {
  return keys?.[field] ?? cells?.[header.indexOf(columnOf(field) ?? '')]?.trim();
}

/** Returns the name that the user knows: the column in the file if there is one, otherwise the field. */
export function columnOf(file: OpenedFile, field: string | null): string | null {
  return field === null ? null : (file.columnOf(field) ?? field);
}
