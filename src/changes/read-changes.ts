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
import { type LogState, numberChanges, stateOf } from './change-log.ts';

export interface RecordsRead extends ChangedIds {
  readonly type: string;
  /**
   * Called for each of these ids in order, with its record as JSON. `record` is 'null' if the record is not stored, and
   * `expired` if it was deleted because of its age.
   */
  take(id: string, record: string | typeof expired): void;
}

/** Passed instead of a record that was deleted because it was too old. */
export const expired = Symbol('expired');

/** `charactersMax` returns the maximum length of a record of the type. */
export interface RecordSource {
  /** Runs the reads one after another. */
  read(reads: readonly RecordsRead[]): Promise<void>;
  charactersMax(type: string): number;
}

export interface LogAsked {
  readonly organisationId: string;
  readonly types: ReadonlySet<string>;
  readonly records: Pick<RecordSource, 'charactersMax'>;
}

export interface ChangesAsked extends LogAsked {
  readonly records: RecordSource;
  readonly cursors: ChangeCursors;
}

/** A change of a requested type, as stored in the log. */
interface LoggedChange {
  readonly number: number;
  readonly epoch: string;
  readonly type: string;
  readonly size: number;
  readonly ids: Buffer;
  /** An expiry has no records. It has a single id, and all records of the type with smaller ids have expired. */
  readonly isExpiry: boolean;
}

/** Part of a change: its ids from `start` up to but not including `end`. */
export interface Part extends LoggedChange {
  readonly start: number;
  readonly end: number;
}

/** Starts at the cursor or the oldest retained change. Throws if the feed cannot continue from there. */
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

/** Throws if changes after the position were dropped, or if changes before it were lost. */
function refuseGone(position: Position, { forgotten, last, epochs }: LogState): void {
  const { number } = position;
  if (number <= forgotten || number > last + 1 || !isOfLog(position, epochs))
    throw new RequestError('cursor_too_old');
}

/** A page is full when it reaches its limit, or earlier for types with long records. */
export class ChangePage {
  readonly parts: Part[] = [];
  readonly from: Position;
  next: Position;
  /** False once the page has read everything that was committed when reading started. */
  hasMore = true;
  count = 0;
  readonly #asked: LogAsked;
  readonly #limit: number;
  #charactersLeft: number = limits.recordCharactersPerRead;

  constructor(asked: LogAsked, from: Position, limit: number) {
    this.#asked = asked;
    this.from = from;
    this.next = from;
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.count === this.#limit || this.#charactersLeft <= 0;
  }

  /** An id that occurs in two types counts once. */
  ids(): Set<string> {
    return new Set(this.parts.flatMap(uuidBytes));
  }

  /** Adds as much as fits of a change, up to but not including `until`. */
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

  #roomFor(type: string): number {
    const characters = Math.ceil(this.#charactersLeft / this.#asked.records.charactersMax(type));
    return Math.max(0, Math.min(this.#limit - this.count, characters));
  }
}

const never = startOf(Number.POSITIVE_INFINITY, []);

/** Keeps ids for the next pages, because on a busy machine a round trip takes longer than PostgreSQL's work. */
export class LogReader {
  readonly #pool: Pool;
  readonly #asked: LogAsked;
  readonly #idsPerLook: number;
  #next: Position;
  #last = 0;
  /** Whether some changes still had no number after numbers were last assigned. */
  #hasUnnumbered = false;
  #looked: LoggedChange[] = [];
  /** Every requested change before this number is in `#looked`, or has already been read. */
  #lookedTo: number;
  #epochs: readonly Epoch[] = [];

  constructor(pool: Pool, asked: LogAsked, from: Position, idsPerLook: number) {
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
   * The page ends when it is full, when its time is up, at `until`, or when everything committed at its start has been
   * read. Committed changes without a number are assigned one. After an error, the reader cannot be used again.
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
    // None of the changes between the two positions were requested. After a failover, `until` may belong to another
    // log.
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
    // Skip changes of other types.
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
 * Returns about `idsMax` ids, in rows that are complete up to `to`. Numbers have no gaps, so a missing row was dropped
 * in the meantime. The epochs are in the same statement, because another server may answer the next one.
 */
async function changesFrom(
  pool: Pool,
  { organisationId, types }: LogAsked,
  from: Position,
  last: number,
  idsMax: number,
): Promise<{ rows: LoggedChange[]; to: number; epochs: readonly Epoch[] }> {
  const { number, offset } = from;
  const end = Math.min(last, number + limits.changesPerLook - 1);
  const { rows } = await pool.query<LoggedRow>({
    name: 'changes',
    text: `select number, type, size, case when ids_before < $3::bigint then array_send(ids) end as ids,
       case when number = $4::bigint then (select epochs from change_counters where organisation_id = $1) end as epochs
     from (select number, type, size, case when type = any ($2::text[]) then ids end as ids,
             coalesce(sum(case when type = any ($2::text[]) then size end)
               over (order by number rows between unbounded preceding and 1 preceding), 0) as ids_before
           from changes
           where organisation_id = $1 and number >= $4::bigint and number <= $5::bigint) c
     order by number`,
    values: [organisationId, [...types], idsMax + offset, number, end],
  });
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
  /** Non-null only in the first row. */
  readonly epochs: readonly Epoch[] | null;
}
