import type { ChangedIds } from '../bookkeeping/store.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { joinUuidRanges, uuidAt, uuidBytes } from '../postgres/binary/encoded-rows.ts';
import type { Pool } from '../postgres/pool.ts';
import { BeginAgain, retryConflicts } from '../postgres/transactions.ts';
import { ChangeCursors, isBefore, notACursor, type Position } from './change-cursor.ts';
import { beforeTomorrow, type LogState, numberChanges, stateOf } from './change-log.ts';

/** Where the records are, and how many characters one of a type can have at most. */
export interface RecordSource {
  /** Hands over each record of these ids as JSON, in their order; `null` for one that is not stored. */
  read(type: string, ids: ChangedIds, take: (id: string, record: string) => void): Promise<void>;
  charactersMax(type: string): number;
}

export interface ChangesAsked {
  readonly organisationId: string;
  readonly types: ReadonlySet<string>;
  readonly records: RecordSource;
}

/** A part of a change: its ids from `start` on, before `end`. */
interface Part {
  readonly number: number;
  readonly size: number;
  readonly ids: Buffer;
  readonly start: number;
  readonly end: number;
}

/** Parts that follow each other and are of one type: their records are read together. */
interface Run {
  readonly type: string;
  readonly parts: Part[];
}

/** A change of a type that is asked for, as the log has it. */
interface LoggedChange {
  readonly number: number;
  readonly type: string;
  readonly size: number;
  readonly ids: Buffer;
}

/** Where to begin: at the cursor, or at the oldest change kept. Throws if the cursor's changes were dropped. */
export async function positionOf(
  pool: Pool,
  organisationId: string,
  cursor: string | undefined,
): Promise<Position> {
  const state = await retryConflicts(() => stateOf(pool, organisationId));
  if (cursor === undefined) return { number: state.forgotten + 1, offset: 0 };
  const position = new ChangeCursors(organisationId).read(cursor);
  if (!position) throw new RequestError('invalid_request', { details: [{ field: 'after', ...notACursor }] });
  // A cursor beyond the last number comes from a server whose last commits were lost.
  if (position.number > state.last + 1) throw new RequestError('cursor_too_old');
  refuseForgotten(position, state);
  return position;
}

function refuseForgotten({ number }: Position, { forgotten }: LogState): void {
  if (number <= forgotten) throw new RequestError('cursor_too_old');
}

/** The ids of a page. It is full at its limit, or earlier with types whose records can be long. */
export class ChangePage {
  readonly runs: Run[] = [];
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
    return new Set(this.runs.flatMap(({ parts }) => parts.flatMap(uuidBytes)));
  }

  /** Adds as much of a change as there is room for, from `next` on and before `until`. */
  add({ number, type, size, ids }: LoggedChange, until: Position): void {
    const start = number === this.next.number ? this.next.offset : 0;
    const end = Math.min(
      size,
      start + this.#roomFor(type),
      number === until.number ? until.offset : Number.POSITIVE_INFINITY,
    );
    this.next = end < size ? { number, offset: end } : { number: number + 1, offset: 0 };
    const count = end - start;
    if (count === 0) return;
    const last = this.runs.at(-1);
    const part = { number, size, ids, start, end };
    if (last?.type === type) last.parts.push(part);
    else this.runs.push({ type, parts: [part] });
    this.count += count;
    this.#charactersLeft -= count * this.#asked.records.charactersMax(type);
  }

  /** How many more of a type there is room for. */
  #roomFor(type: string): number {
    const characters = Math.ceil(this.#charactersLeft / this.#asked.records.charactersMax(type));
    return Math.max(0, Math.min(this.#limit - this.count, characters));
  }
}

const never: Position = { number: Number.POSITIVE_INFINITY, offset: 0 };

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
      else if (page.next.number < this.#lookedTo) page.next = { number: this.#lookedTo, offset: 0 };
      else if (performance.now() < deadline) await this.#look(page.next);
      else break;
    }
    // Between the two there is nothing that is asked for.
    if (isBefore(until, page.next)) page.next = until;
    page.hasMore = page.next.number <= this.#last || this.#hasUnnumbered;
    this.#next = page.next;
    return page;
  }

  async #numberNew(): Promise<void> {
    const { organisationId } = this.#asked;
    const state = await stateOf(this.#pool, organisationId);
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
      if (page.isFull || !isBefore({ number: change.number, offset: 0 }, until)) break;
      page.add(change, until);
      if (page.next.number === change.number) break;
      read++;
    }
    this.#looked.splice(0, read);
    const [first] = this.#looked;
    if (page.isFull) return;
    // Skips what is not asked for.
    const end = { number: first?.number ?? this.#lookedTo, offset: 0 };
    if (isBefore(page.next, end)) page.next = end;
  }

  async #look(from: Position): Promise<void> {
    const { rows, to } = await changesFrom(this.#pool, this.#asked, from, this.#last, this.#idsPerLook);
    this.#looked = rows;
    this.#lookedTo = to;
  }
}

/**
 * The log's rows from a position on that are asked for, as many as have `idsMax` ids together, and the number up to which
 * that is all. Numbers have no gaps: a row that is missing was dropped meanwhile.
 */
async function changesFrom(
  pool: Pool,
  { organisationId, types }: ChangesAsked,
  { number, offset }: Position,
  last: number,
  idsMax: number,
): Promise<{ rows: LoggedChange[]; to: number }> {
  const end = Math.min(last, number + limits.changesPerLook - 1);
  const { rows } = await pool.query<{ number: string; type: string; size: number; ids: Buffer | null }>(
    `select number, type, size, case when ids_before < $3 then array_send(ids) end as ids
     from (select number, type, size, case when type = any ($2::text[]) then ids end as ids,
             coalesce(sum(case when type = any ($2::text[]) then size end)
               over (order by number rows between unbounded preceding and 1 preceding), 0) as ids_before
           from changes
           where organisation_id = $1 and number >= ${Math.trunc(number)} and number <= ${Math.trunc(end)}
             and ${beforeTomorrow()}) c
     order by number`,
    [organisationId, [...types], idsMax + offset],
  );
  if (rows.length !== end - number + 1) {
    refuseForgotten({ number, offset: 0 }, await stateOf(pool, organisationId));
    throw new BeginAgain('a change that has a number was not read');
  }
  const wanted: LoggedChange[] = [];
  for (const row of rows) {
    if (!types.has(row.type)) continue;
    if (row.ids === null) return { rows: wanted, to: Number(row.number) };
    wanted.push({ number: Number(row.number), type: row.type, size: row.size, ids: row.ids });
  }
  return { rows: wanted, to: end + 1 };
}

/**
 * Reads the records of a page as they are now and passes each entry to `take` as JSON. Entry by entry: keeping a page in
 * memory cost more in garbage collection than all other work on it. `onLastAnswer` is called when the last query begins to
 * be answered.
 */
export async function takePage(
  asked: ChangesAsked,
  { runs }: ChangePage,
  take: (change: string) => void,
  onLastAnswer = () => {},
): Promise<void> {
  for (const run of runs) await takeRun(asked, run, take, run === runs.at(-1) ? onLastAnswer : () => {});
}

/** Reads the records of a run. A record that is no longer stored is reported as deleted. */
async function takeRun(
  { organisationId, records }: ChangesAsked,
  { type, parts }: Run,
  take: (change: string) => void,
  onAnswer: () => void,
): Promise<void> {
  const cursors = new ChangeCursors(organisationId);
  const places = placesOf(parts);
  const [first] = parts;
  await records.read(type, joinUuidRanges(parts), (id, record) => {
    const { part, at } = places.next().value as Place;
    if (part === first && at === part.start) onAnswer();
    // With the cursor of another record, a reader that is cut off here would miss this one.
    if (id !== uuidAt(part.ids, at))
      throw new Error('records came in another order than they were asked for');
    const { number, size } = part;
    const after = at + 1 < size ? { number, offset: at + 1 } : { number: number + 1, offset: 0 };
    const deleted = record === 'null' || record.includes('"is_deleted":true');
    take(
      `{"cursor":"${cursors.write(after)}","type":"${type}","id":"${id}","deleted":${deleted},"record":${record}}`,
    );
  });
  if (!places.next().done) throw new BeginAgain('fewer records were read than were asked for');
}

interface Place {
  readonly part: Part;
  readonly at: number;
}

function* placesOf(parts: readonly Part[]): Generator<Place, undefined> {
  for (const part of parts) for (let at = part.start; at < part.end; at++) yield { part, at };
}
