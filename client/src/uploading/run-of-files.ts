import type { UploadType } from '../generated/resources.ts';
import type { RunEnding, RunOpening } from '../runs.ts';

/** A run has at most this many files, and a name of at most this many characters. */
export const runFilesMax = 100;
const nameCodePointsMax = 200;
const fileNameCodePointsMax = 255;

export type FileInRun = RunOpening['files'][number];

/** Describes a file for the run. Only the last part of its path is sent, because folders can contain the names of people. */
export function fileInRun(path: string, bytes: number, sha256: string, type: UploadType): FileInRun {
  return { name: baseNameOf(path), bytes, sha256, type };
}

/** Returns the name of a file or folder without its extensions. `shops.csv.gz` becomes `shops`. */
export function runNameOf(path: string): string {
  const name = baseNameOf(path);
  const bare = name.replace(/(?<=.)(\.(csv|tsv|txt|ndjson|jsonl|json|parquet|xlsx|gz|zst))+$/i, '');
  return shortened(bare, nameCodePointsMax);
}

/** The service refuses NUL and lone surrogates, and a page can get files with such names, and with longer ones than disks have. */
function baseNameOf(path: string): string {
  const name = path.replace(/[/\\]+$/, '').replace(/^.*[/\\]/s, '') || 'upload';
  return shortened(name.toWellFormed().replaceAll('\0', '\ufffd'), fileNameCodePointsMax);
}

function shortened(name: string, codePointsMax: number): string {
  return Array.from(name).slice(0, codePointsMax).join('');
}

/** What became of a file, apart from what its receipts count. */
export interface FileEnd {
  /** The file's index in the run. */
  readonly file: number;
  /** The number of records that no request contained, because they could not be read or converted. */
  readonly notSent: number;
  /** The number of records that the service refused and has no receipt of, because they are too large for a request. */
  readonly notKept: number;
  /** Whether the file was read to its end. */
  readonly isWhole: boolean;
}

/**
 * Returns how the run ends. It has failed if a part of a file stays with the client. Records that the service has rejected
 * are the service's, so they do not make a run fail.
 */
export function endingOf(files: readonly FileEnd[]): RunEnding {
  const isFinished = files.every(({ notSent, isWhole }) => isWhole && notSent === 0);
  return {
    status: isFinished ? 'finished' : 'failed',
    files: files.map(({ file, notSent, notKept }) => ({ file, not_sent: notSent, not_kept: notKept })),
  };
}
