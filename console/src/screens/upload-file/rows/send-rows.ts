import type { Connection } from '../../../../../client/src/connection.ts';
import type { UploadType } from '../../../../../client/src/generated/resources.ts';
import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import { type Cut, RequestCutter } from '../../../../../client/src/uploading/request-cutter.ts';
import { type Outcome, sendCuts } from '../../../../../client/src/uploading/send-cuts.ts';
import type { Row } from './row-checker.ts';

/** As in the command: requests under way have to fit in memory, and an interrupted upload sends them again. */
const perRequest = { recordsMax: 2_000, bytesMax: 1_000_000 };

interface RowCut extends Cut<Row> {
  /** Rows that cannot be sent. */
  readonly unsent: readonly Row[];
}

export interface Sending {
  readonly connection: Connection;
  readonly type: UploadType;
  /** The prefix of every Idempotency-Key. The same rows under the same key are stored once. */
  readonly key: string;
  readonly dryRun: boolean;
  /** How many rows were answered before an interruption. */
  readonly done: number;
  readonly signal: AbortSignal;
}

export interface Answered {
  /** How many rows are answered now, in the order of the file. */
  readonly done: number;
  readonly outcome: Outcome;
  readonly sent: readonly Row[];
  readonly unsent: readonly Row[];
}

/** Sends rows in requests, several at once, and yields their answers in the order of the rows. */
export async function* sendRows(
  rows: AsyncIterable<readonly Row[]>,
  { connection, type, key, dryRun, done, signal }: Sending,
): AsyncGenerator<Answered> {
  const cutter = new RequestCutter<Row>(type, { first: done, ...perRequest });
  const reading: Reading = { broken: undefined };
  for await (const { cut, outcome } of sendCuts(connection, type, cutsOf(rows, cutter, reading), {
    key,
    dryRun,
    signal,
  }))
    yield { done: cut.end, outcome, sent: cut.items, unsent: cut.unsent };
  if (reading.broken) throw reading.broken;
}

interface Reading {
  /** Why the file cannot be read to its end. */
  broken: FileError | undefined;
}

/** The same rows are always cut in the same way, so that a retry has the same keys. */
async function* cutsOf(
  rows: AsyncIterable<readonly Row[]>,
  cutter: RequestCutter<Row>,
  reading: Reading,
): AsyncGenerator<RowCut> {
  let unsent: Row[] = [];
  const whole = (cut: Cut<Row>): RowCut => {
    const complete = { ...cut, unsent };
    unsent = [];
    return complete;
  };
  try {
    for await (const chunk of rows) {
      for (const row of chunk) {
        const isSent = row.problems.length === 0 && row.record !== undefined;
        const cut = isSent ? cutter.add(row, row.record) : cutter.skip();
        if (cut) yield whole(cut);
        if (!isSent) unsent.push(row);
      }
    }
  } catch (error) {
    // The rows read so far are uploaded; the error is reported when they are answered.
    if (!(error instanceof FileError)) throw error;
    reading.broken = error;
  }
  const last = cutter.take();
  if (last) yield whole(last);
}
