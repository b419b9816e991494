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

/** Where to begin, by a cursor or by none; what is dropped already cannot be begun with. */
export async function positionOf(
  pool: Pool,
  organisationId: string,
  cursor: string | undefined,
): Promise<Position> {
  const state = await retryConflicts(() => stateOf(pool, organisationId));
  if (cursor === undefined) return { number: state.forgotten + 1, offset: 0 };
  const position = new ChangeCursors(organisationId).read(cursor);
  // One beyond the last was given by a server whose last commits were lost, or by nobody.
  if (!position) throw new RequestError('invalid_request', { details: [{ field: 'after', ...notACursor }] });
  if (position.number > state.last + 1) throw new RequestError('cursor_too_old');
  refuseForgotten(position, state);
  return position;
}

function refuseForgotten({ number }: Position, { forgotten }: LogState): void {
  if (number <= forgotten) throw new RequestError('cursor_too_old');
}

/**
 * Takes the next page, change by change, each as JSON: of each change in the log the records that it tells of, as they are
 * now. It ends where it is full, where its time is up or where all that is committed has been read; what is committed and
 * has no number yet is given one.
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
  // As they are read, for what is kept until all are there costs the collector more than all other work on it.
  for (const run of page.runs) await takeRun(asked, run, take);
  return { count: page.count, next, hasMore };
}

/** What a page tells of. It is full with so many, or with fewer of types that have room for long texts. */
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

/** Looks at the changes from a position on, and adds what there is room for; returns where it has stopped. */
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
    // No more is fetched than there can be room for.
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

/** What the log says from a number on. Numbers have no gaps: where a row is not there it was dropped meanwhile. */
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

/** Takes the records of a run. What is no longer stored is told as deleted. */
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
    // Told at another's cursor, it would be lost to a reader that is cut off there.
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
