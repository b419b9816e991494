import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { joinArrays, uuidAt, uuidRange } from '../postgres/binary/encoded-rows.ts';
import type { Pool } from '../postgres/pool.ts';
import { BeginAgain, retryConflicts } from '../postgres/transactions.ts';
import type { ChangedIds } from './add-change.ts';
import { ChangeCursors, notACursor, type Position } from './change-cursor.ts';
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

export interface ChangePage {
  readonly count: number;
  /** Where to go on. */
  readonly next: Position;
  /** False where all that was committed has been read. */
  readonly hasMore: boolean;
}

/** A change as the log has it. */
interface LoggedChange {
  readonly number: number;
  readonly change_id: string;
  readonly type: string;
  readonly size: number;
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

/**
 * Reads the next page and passes each entry to `take` as JSON: the records that the log names, as they are now. The page ends
 * when it is full, its time is up, or every committed change has been read. Committed changes without a number get one.
 */
export async function readChanges(
  pool: Pool,
  asked: ChangesAsked,
  from: Position,
  limit: number,
  take: (change: string) => void,
): Promise<ChangePage> {
  const deadline = performance.now() + limits.changesSearchMs;
  const page = new Page(asked, limit);
  let next = from;
  for (let state = await stateOf(pool, asked.organisationId); ; ) {
    if (next.number <= state.last) next = await lookOn(pool, asked, page, next, state);
    if (page.isFull || performance.now() > deadline) break;
    if (next.number <= state.last) continue;
    if (!state.hasUnnumbered) break;
    await numberChanges(pool, asked.organisationId);
    state = await stateOf(pool, asked.organisationId);
  }
  const hasMore = page.isFull || performance.now() > deadline;
  // Entry by entry: keeping a page in memory cost more in garbage collection than all other work on it.
  for (const run of page.runs) await takeRun(asked, run, take);
  return { count: page.count, next, hasMore };
}

/** The ids of a page. It is full at its limit, or earlier with types whose records can be long. */
class Page {
  readonly runs: Run[] = [];
  count = 0;
  readonly #asked: ChangesAsked;
  readonly #limit: number;
  #charactersLeft: number = limits.recordCharactersPerRead;

  constructor(asked: ChangesAsked, limit: number) {
    this.#asked = asked;
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.count === this.#limit || this.#charactersLeft <= 0;
  }

  /** How many more of a type there is room for. */
  roomFor(type: string): number {
    const characters = Math.ceil(this.#charactersLeft / this.#asked.records.charactersMax(type));
    return Math.max(0, Math.min(this.#limit - this.count, characters));
  }

  add(type: string, part: Part): void {
    const count = part.end - part.start;
    if (count === 0) return;
    const last = this.runs.at(-1);
    if (last?.type === type) last.parts.push(part);
    else this.runs.push({ type, parts: [part] });
    this.count += count;
    this.#charactersLeft -= count * this.#asked.records.charactersMax(type);
  }
}

/** Adds changes from a position on until the page is full; returns the position where it stopped. */
async function lookOn(
  pool: Pool,
  { organisationId, types }: ChangesAsked,
  page: Page,
  from: Position,
  { last }: LogState,
): Promise<Position> {
  const looked = await changesFrom(pool, organisationId, from.number, last);
  const wanted: LoggedChange[] = [];
  let seen = from.number;
  let count = -from.offset;
  for (const change of looked) {
    seen = change.number;
    if (!types.has(change.type)) continue;
    wanted.push(change);
    count += change.size;
    // Fetches no more ids than fit.
    if (count >= page.roomFor(change.type)) break;
  }
  const idsOf = await idsOfChanges(pool, organisationId, wanted);
  for (const { number, type, size } of wanted) {
    const ids = idsOf.get(number);
    if (!ids) throw new BeginAgain('the ids of a change were not read');
    const start = number === from.number ? from.offset : 0;
    const end = Math.min(size, start + page.roomFor(type));
    page.add(type, { number, size, ids, start, end });
    if (end < size) return { number, offset: end };
    if (page.isFull) return { number: number + 1, offset: 0 };
  }
  return { number: seen + 1, offset: 0 };
}

/** The log's rows from a number on. Numbers have no gaps: a row that is missing was dropped meanwhile. */
async function changesFrom(
  pool: Pool,
  organisationId: string,
  number: number,
  last: number,
): Promise<LoggedChange[]> {
  const end = Math.min(last, number + limits.changesPerLook - 1);
  const { rows } = await pool.query<LoggedChange>(
    `select number, change_id, type, size from changes
     where organisation_id = $1 and number >= ${Math.trunc(number)} and number <= ${Math.trunc(end)}
       and ${beforeTomorrow()} order by number`,
    [organisationId],
  );
  if (rows.length !== end - number + 1) {
    refuseForgotten({ number, offset: 0 }, await stateOf(pool, organisationId));
    throw new BeginAgain('a change that has a number was not read');
  }
  return rows.map((row) => ({ ...row, number: Number(row.number) }));
}

/** The ids of changes, each as the binary array that it was stored from. */
async function idsOfChanges(
  pool: Pool,
  organisationId: string,
  changes: readonly LoggedChange[],
): Promise<ReadonlyMap<number, Buffer>> {
  if (changes.length === 0) return new Map();
  const changeIds = changes.map(({ change_id }) => change_id).toSorted();
  const { rows } = await pool.query<{ number: string; ids: Buffer }>(
    `select number, array_send(ids) as ids from changes where organisation_id = $1 and change_id = any ($2::uuid[])
       and change_id >= '${changeIds[0]}' and change_id <= '${changeIds.at(-1)}'`,
    [organisationId, changeIds],
  );
  return new Map(rows.map(({ number, ids }) => [Number(number), ids]));
}

/** Reads the records of a run. A record that is no longer stored is reported as deleted. */
async function takeRun(
  { organisationId, records }: ChangesAsked,
  { type, parts }: Run,
  take: (change: string) => void,
): Promise<void> {
  const cursors = new ChangeCursors(organisationId);
  const places = placesOf(parts);
  const ids = parts.map((part) => uuidRange(part.ids, part.start, part.end)).reduce(joinArrays);
  const count = parts.reduce((sum, { start, end }) => sum + end - start, 0);
  await records.read(type, { count, ids }, (id, record) => {
    const { part, at } = places.next().value as Place;
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
