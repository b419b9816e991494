import type { ChangedIds } from '../bookkeeping/store.ts';
import { invalidRequest, RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { uuidBytes } from '../postgres/binary/encoded-rows.ts';
import type { Pool } from '../postgres/pool.ts';
import { beginAgainUnless, retryConflicts } from '../postgres/transactions.ts';
import {
  afterChange,
  type ChangeCursors,
  type Epoch,
  epochOf,
  isBefore,
  isOfLog,
  notACursor,
  type Position,
  startOf,
} from './change-cursor.ts';
import { beforeTomorrow, type LogState, numberChanges, stateOf } from './change-log.ts';

/** Records of one type to read. */
export interface RecordsRead extends ChangedIds {
  readonly type: string;
  /** Gets each record of these ids as JSON, in their order; `null` for one that is not stored, or that it has expired. */
  take(id: string, record: string | typeof expired): void;
}

/** In place of a record that is not stored because it is too old. */
export const expired = Symbol('expired');

/** Where the records are, and how many characters one of a type can have at most. */
export interface RecordSource {
  /** Reads one after the other. */
  read(reads: readonly RecordsRead[]): Promise<void>;
  charactersMax(type: string): number;
}

export interface ChangesAsked {
  readonly organisationId: string;
  readonly types: ReadonlySet<string>;
  readonly records: RecordSource;
  readonly cursors: ChangeCursors;
}

/** A change of a type that is asked for, as the log has it. */
interface LoggedChange {
  readonly number: number;
  readonly epoch: string;
  readonly type: string;
  readonly size: number;
  readonly ids: Buffer;
  /** Whether it has no records: all of the type with an id below its only one have expired. */
  readonly isExpiry: boolean;
}

/** A part of a change: its ids from `start` on, before `end`. */
export interface Part extends LoggedChange {
  readonly start: number;
  readonly end: number;
}

/** Where to begin: at the cursor, or at the oldest change kept. Throws if the feed cannot continue there. */
export async function positionOf(
  pool: Pool,
  { organisationId, cursors }: ChangesAsked,
  cursor: string | undefined,
): Promise<Position> {
  const position = cursor === undefined ? undefined : cursors.read(cursor);
  if (cursor !== undefined && !position) throw invalidRequest({ field: 'after', ...notACursor });
  const state = await retryConflicts(() => stateOf(pool, organisationId));
  if (!position) return startOf(state.forgotten + 1, state.epochs);
  refuseGone(position, state);
  return position;
}

/** Throws if changes after the position were dropped, or if those before it were lost. */
function refuseGone(position: Position, { forgotten, last, epochs }: LogState): void {
  const { number } = position;
  if (number <= forgotten || number > last + 1 || !isOfLog(position, epochs))
    throw new RequestError('cursor_too_old');
}

/** The ids of a page. It is full at its limit, or earlier with types whose records can be long. */
export class ChangePage {
  readonly parts: Part[] = [];
  readonly from: Position;
  /** Where to go on. */
  next: Position;
  /** False where all that was committed when the page was begun has been read. */
  hasMore = true;
  count = 0;
  readonly #asked: ChangesAsked;
  readonly #limit: number;
  #charactersLeft: number = limits.recordCharactersPerRead;

  constructor(asked: ChangesAsked, from: Position, limit: number) {
    this.#asked = asked;
    this.from = from;
    this.next = from;
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.count === this.#limit || this.#charactersLeft <= 0;
  }

  /** The ids of its records; the same id in two types counts once. */
  ids(): Set<string> {
    return new Set(this.parts.flatMap(uuidBytes));
  }

  /** Adds as much of a change as there is room for, from `next` on and before `until`. */
  add(change: LoggedChange, until: Position): void {
    const { number, epoch, type, size } = change;
    const start = number === this.next.number ? this.next.offset : 0;
    const end = Math.min(
      size,
      start + this.#roomFor(type),
      number === until.number ? until.offset : Number.POSITIVE_INFINITY,
    );
    if (!(0 <= start && start <= end && end <= size))
      throw new Error(`ids ${start} to ${end} of a change that has ${size}`);
    this.next = end < size ? { number, offset: end, size, epoch } : afterChange(change);
    const count = end - start;
    if (count === 0) return;
    this.parts.push({ ...change, start, end });
    this.count += count;
    this.#charactersLeft -= count * this.#asked.records.charactersMax(type);
  }

  /** How many more of a type there is room for. */
  #roomFor(type: string): number {
    const characters = Math.ceil(this.#charactersLeft / this.#asked.records.charactersMax(type));
    return Math.max(0, Math.min(this.#limit - this.count, characters));
  }
}

const never = startOf(Number.POSITIVE_INFINITY, []);

/**
 * Goes along the log page by page. It looks at many rows of the log at once and keeps the ids for the next pages: on a busy
 * machine each round trip takes longer than the work that PostgreSQL does in it.
 */
export class LogReader {
  readonly #pool: Pool;
  readonly #asked: ChangesAsked;
  readonly #idsPerLook: number;
  #next: Position;
  /** The last number that is known. */
  #last = 0;
  /** Whether there were more changes without a number than were numbered. */
  #hasUnnumbered = false;
  #looked: LoggedChange[] = [];
  /** All that was asked for before this number is in `#looked`, or has been read. */
  #lookedTo: number;
  /** As of the last look. */
  #epochs: readonly Epoch[] = [];

  constructor(pool: Pool, asked: ChangesAsked, from: Position, idsPerLook: number) {
    this.#pool = pool;
    this.#asked = asked;
    this.#next = from;
    this.#lookedTo = from.number;
    this.#idsPerLook = idsPerLook;
  }

  get next(): Position {
    return this.#next;
  }

  /**
   * The next page, which ends when it is full, its time is up, at `until`, or when every change has been read that was
   * committed at its beginning. Committed changes without a number get one. After an error the reader is of no use.
   */
  async nextPage(limit: number, until: Position = never): Promise<ChangePage> {
    const deadline = performance.now() + limits.changesSearchMs;
    const page = new ChangePage(this.#asked, this.#next, limit);
    if (this.#next.number > this.#last) await this.#numberNew();
    while (!page.isFull && page.next.number <= this.#last && isBefore(page.next, until)) {
      if (this.#looked.length > 0) this.#fill(page, until);
      else if (page.next.number < this.#lookedTo) page.next = startOf(this.#lookedTo, this.#epochs);
      else if (performance.now() < deadline) await this.#look(page.next);
      else break;
    }
    // Between the two there is nothing that is asked for. After a failover `until` may be of another log.
    if (isBefore(until, page.next) && isOfLog(until, this.#epochs)) page.next = until;
    page.hasMore = page.next.number <= this.#last || this.#hasUnnumbered;
    this.#next = page.next;
    return page;
  }

  async #numberNew(): Promise<void> {
    const { organisationId } = this.#asked;
    const state = await stateOf(this.#pool, organisationId);
    refuseGone(this.#next, state);
    this.#last = state.last;
    this.#hasUnnumbered = false;
    if (!state.hasUnnumbered) return;
    const { count, last } = await numberChanges(this.#pool, organisationId);
    this.#last = last;
    this.#hasUnnumbered = count === limits.changesNumberedAtOnce;
  }

  #fill(page: ChangePage, until: Position): void {
    let read = 0;
    for (const change of this.#looked) {
      if (page.isFull || !isBefore(startOf(change.number, this.#epochs), until)) break;
      page.add(change, until);
      if (page.next.number === change.number) break;
      read++;
    }
    this.#looked.splice(0, read);
    const [first] = this.#looked;
    if (page.isFull) return;
    // Skips what is not asked for.
    const end = startOf(first?.number ?? this.#lookedTo, this.#epochs);
    if (isBefore(page.next, end)) page.next = end;
  }

  async #look(from: Position): Promise<void> {
    const look = await changesFrom(this.#pool, this.#asked, from, this.#last, this.#idsPerLook);
    this.#looked = look.rows;
    this.#lookedTo = look.to;
    this.#epochs = look.epochs;
  }
}

/**
 * The log's rows from a position on that are asked for, as many as have `idsMax` ids together, and the number up to which
 * that is all. Numbers have no gaps: a row that is missing was dropped meanwhile. The epochs are read in the same statement:
 * another server may answer the next one.
 */
async function changesFrom(
  pool: Pool,
  { organisationId, types }: ChangesAsked,
  from: Position,
  last: number,
  idsMax: number,
): Promise<{ rows: LoggedChange[]; to: number; epochs: readonly Epoch[] }> {
  const { number, offset } = from;
  const end = Math.min(last, number + limits.changesPerLook - 1);
  const { rows } = await pool.query<LoggedRow>(
    `select number, type, size, case when ids_before < $3 then array_send(ids) end as ids,
       case when number = ${Math.trunc(number)} then (select epochs from change_counters where organisation_id = $1) end as epochs
     from (select number, type, size, case when type = any ($2::text[]) then ids end as ids,
             coalesce(sum(case when type = any ($2::text[]) then size end)
               over (order by number rows between unbounded preceding and 1 preceding), 0) as ids_before
           from changes
           where organisation_id = $1 and number >= ${Math.trunc(number)} and number <= ${Math.trunc(end)}
             and ${beforeTomorrow()}) c
     order by number`,
    [organisationId, [...types], idsMax + offset],
  );
  const epochs = rows[0]?.epochs;
  const isWhole = epochs && rows.length === end - number + 1;
  if (!isWhole) refuseGone(from, await stateOf(pool, organisationId));
  beginAgainUnless(isWhole, 'a change that has a number was not read');
  if (!isOfLog(from, epochs)) throw new RequestError('cursor_too_old');
  const wanted: LoggedChange[] = [];
  for (const { type, size, ids, number: text } of rows) {
    if (!types.has(type)) continue;
    const at = Number(text);
    if (ids === null) return { rows: wanted, to: at, epochs };
    const isExpiry = size === 0;
    wanted.push({ number: at, epoch: epochOf(epochs, at), type, size: isExpiry ? 1 : size, ids, isExpiry });
  }
  return { rows: wanted, to: end + 1, epochs };
}

interface LoggedRow {
  readonly number: string;
  readonly type: string;
  readonly size: number;
  readonly ids: Buffer | null;
  /** Only in the first row. */
  readonly epochs: readonly Epoch[] | null;
}
