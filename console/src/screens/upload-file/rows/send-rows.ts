import type { Connection } from '../../../../../client/src/connection.ts';
import type { UploadType } from '../../../../../client/src/generated/resources.ts';
import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import { type Cut, RequestCutter } from '../../../../../client/src/uploading/request-cutter.ts';
import {
  type FileOfRun,
  type Outcome,
  type SentRequests,
  sendCuts,
} from '../../../../../client/src/uploading/send-cuts.ts';
import type { Row } from './row-checker.ts';

/**
 * The maximum size of a request, which is the same as in the command. Pending requests must fit in memory, and an
 * interrupted upload sends them again.
 */
const perRequest = { recordsMax: 2_000, bytesMax: 1_000_000 };

interface RowCut extends Cut<Row> {
  /** The rows that cannot be sent. */
  readonly unsent: readonly Row[];
}

/** The requests of a step. If the step is interrupted and continued, they are sent again as they were. */
export class SentRows implements SentRequests {
  readonly #earlier: ReadonlyMap<number, number>;
  readonly #noted = new Map<number, number>();
  readonly #resendUntilMs: number;

  /** `resendUntilMs` is the time (ms since 1970) after which the requests from before an interruption are not sent again. */
  constructor(earlier?: SentRows, resendUntilMs = Infinity) {
    this.#earlier = earlier ? new Map([...earlier.#earlier, ...earlier.#noted]) : new Map();
    this.#resendUntilMs = resendUntilMs;
  }

  countAt(index: number): number | undefined {
    return this.#earlier.get(index);
  }

  note(index: number, count: number): void {
    this.#noted.set(index, count);
  }

  resendUntilMs(index: number): number {
    return this.#earlier.has(index) ? this.#resendUntilMs : Infinity;
  }
}

export interface Sending {
  readonly connection: Connection;
  readonly type: UploadType;
  /** The prefix of every Idempotency-Key. Rows that are sent again with the same key are stored only once. */
  readonly key: string;
  readonly mode: 'replace' | 'merge';
  readonly dryRun: boolean;
  readonly run?: FileOfRun | undefined;
  /** The number of rows answered before an interruption. */
  readonly done: number;
  readonly sent: SentRows;
  readonly signal: AbortSignal;
}

export interface Answered {
  /** The number of rows answered so far, in file order. */
  readonly done: number;
  readonly outcome: Outcome;
  readonly sent: readonly Row[];
  readonly unsent: readonly Row[];
}

/** Sends rows in several concurrent requests, and yields the responses in row order. */
export async function* sendRows(
  rows: AsyncIterable<readonly Row[]>,
  { connection, type, key, mode, dryRun, run, done, sent, signal }: Sending,
): AsyncGenerator<Answered> {
  const cutter = new RequestCutter<Row>(type, { first: done, ...perRequest });
  const reading: Reading = { broken: undefined };
  for await (const { cut, outcome } of sendCuts(connection, type, cutsOf(rows, cutter, reading), {
    key,
    mode,
    dryRun,
    run,
    sent,
    signal,
  }))
    yield { done: cut.end, outcome, sent: cut.items, unsent: cut.unsent };
  if (reading.broken) throw reading.broken;
}

interface Reading {
  /** The reason why the file cannot be read to its end. */
  broken: FileError | undefined;
}

/** Splits the rows into requests. The split is deterministic, so that a retry uses the same keys. */
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
    // Upload the rows read so far, and report the error once those rows are answered.
    if (!(error instanceof FileError)) throw error;
    reading.broken = error;
  }
  const last = cutter.take();
  if (last) yield whole(last);
}
