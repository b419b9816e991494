import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { resources } from '../../../../../client/src/generated/resources.ts';
import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import { IdSet } from '../../../../../client/src/uploading/id-set.ts';
import { type DescribedFile, describeFile, type Settings } from './describe-file.ts';
import { FailedRows, type FailedSnapshot } from './failed-rows.ts';
import { openBlob, unreadable } from './open-blob.ts';
import { type Row, RowChecker } from './row-checker.ts';

/** This file runs in a worker. It reads a file and checks its rows. */

interface Reading {
  readonly described: DescribedFile;
  readonly settings: Settings;
  /** The corrected rows, keyed by line. */
  readonly corrections: ReadonlyMap<number, Row>;
}

/** The page's request, which is sent once. After a request to read rows, the page sends `next` for each further chunk. */
export type Asked =
  | { readonly wants: 'description'; readonly file: File; readonly encoding: string | undefined }
  | { readonly wants: 'hash'; readonly file: File }
  | ({ readonly wants: 'check' } & Reading)
  | ({ readonly wants: 'rows'; readonly skip: number } & Reading);

export interface ReadRows {
  readonly rows: readonly Row[];
  readonly openLine: number | undefined;
  /** How much of the file has been read, from 0 to 1. */
  readonly share: number;
}

/**
 * The result of a check. It does not contain the valid rows, because copying them to the page would take longer than
 * checking them.
 */
export interface Checked {
  readonly rows: number;
  readonly failed: FailedSnapshot;
  /** The number of rows with the same id as an earlier row. */
  readonly repeatedIds: number;
  readonly firstRepeated: number | undefined;
  /** The last line if it has no line break. */
  readonly openLine: number | undefined;
}

/** Errors are sent as strings, because class instances do not survive the transfer. */
export type Answered =
  | { readonly is: 'described'; readonly described: DescribedFile }
  | { readonly is: 'hashed'; readonly sha256: string }
  | { readonly is: 'progress'; readonly rows: number; readonly share: number }
  | ({ readonly is: 'checked' } & Checked)
  | ({ readonly is: 'rows' } & ReadRows)
  | { readonly is: 'end' }
  | { readonly is: 'unreadable'; readonly lines: readonly string[] }
  | { readonly is: 'failed'; readonly message: string };

const idsComparedMax = 1_000_000;
const progressMs = 100;

let resume = () => {};

addEventListener('message', ({ data }: MessageEvent<Asked | 'next'>) => {
  if (data === 'next') resume();
  else answer(data).then(() => send({ is: 'end' }), report);
});

async function answer(asked: Asked): Promise<void> {
  if (asked.wants === 'description')
    return send({ is: 'described', described: await describeFile(asked.file, asked.encoding) });
  if (asked.wants === 'hash') return send({ is: 'hashed', sha256: await hash(asked.file) });
  if (asked.wants === 'check') return send({ is: 'checked', ...(await check(asked)) });
  for await (const read of readRows(asked, asked.skip)) {
    const wanted = new Promise<void>((resolve) => {
      resume = resolve;
    });
    send({ is: 'rows', ...read });
    await wanted;
  }
}

function report(error: unknown): void {
  if (error instanceof FileError) send({ is: 'unreadable', lines: error.lines });
  else send({ is: 'failed', message: String(error) });
}

function send(answered: Answered): void {
  postMessage(answered);
}

/** The browser's own SHA-256 needs the whole file in memory, and is only available over HTTPS and on localhost. */
async function hash(file: File): Promise<string> {
  const reader = file.stream().getReader();
  const hashing = sha256.create();
  let bytesRead = 0;
  let shownAtMs = performance.now();
  for (;;) {
    const { value, done } = await reader.read().catch(unreadable);
    if (done) return bytesToHex(hashing.digest());
    hashing.update(value);
    bytesRead += value.length;
    if (performance.now() - shownAtMs < progressMs) continue;
    shownAtMs = performance.now();
    send({ is: 'progress', rows: 0, share: bytesRead / file.size });
  }
}

/** Runs all checks that need neither the service nor other records. */
async function check(reading: Reading): Promise<Checked> {
  const { idField } = resources[reading.settings.type];
  const failed = new FailedRows();
  const ids = new IdSet();
  let [rows, compared, repeatedIds] = [0, 0, 0];
  let firstRepeated: number | undefined;
  let openLine: number | undefined;
  let shownAtMs = performance.now();
  for await (const { rows: chunk, share, openLine: open } of readRows(reading, 0)) {
    openLine = open;
    for (const row of chunk) {
      rows++;
      if (row.problems.length > 0) failed.add(row);
      const id = row.record?.[idField];
      if (typeof id !== 'string' || row.problems.length > 0) continue;
      if (ids.batchOf(id) !== undefined) {
        repeatedIds++;
        firstRepeated ??= row.line;
      } else if (compared++ < idsComparedMax) ids.add(id, 0);
    }
    if (performance.now() - shownAtMs < progressMs) continue;
    shownAtMs = performance.now();
    send({ is: 'progress', rows, share });
  }
  return { rows, failed: failed.snapshot(), repeatedIds, firstRepeated, openLine };
}

/** Reads the file's rows after the first `skip`, with corrections applied. */
async function* readRows(
  { described, settings, corrections }: Reading,
  skip: number,
): AsyncGenerator<ReadRows> {
  const { file } = described;
  const checker = new RowChecker(described, settings);
  const opened = await openBlob(file, settings.type, { ...settings, skipRecords: skip });
  for await (const { records, failures, openLine } of opened.chunks()) {
    const rows = [
      ...records.map((record) => corrections.get(record.line) ?? checker.ofRecord(record)),
      ...failures.map((failure) => corrections.get(failure.line) ?? checker.ofFailure(failure)),
    ];
    // Restore the file order, because a later record with the same id replaces an earlier one.
    if (failures.length > 0) rows.sort((one, other) => one.line - other.line);
    yield { rows, openLine, share: opened.bytesRead() / file.size };
  }
}
