import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { BeginAgain, retryConflicts } from '../postgres/transactions.ts';
import { ChangeCursors, notACursor, type Position } from './change-cursor.ts';
import { beforeTomorrow, type LogState, numberChanges, stateOf } from './change-log.ts';

/** Records by their ids, each as JSON, and how many characters one of a type can have at most. */
export interface RecordSource {
  read(type: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  charactersMax(type: string): number;
}

export interface ChangesAsked {
  readonly organisationId: string;
  readonly types: ReadonlySet<string>;
  readonly records: RecordSource;
}

export interface ChangePage {
  /** Each as JSON. */
  readonly changes: readonly string[];
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

/** One record that was created or changed, and where a reader goes on after it. */
interface Entry {
  readonly type: string;
  readonly id: string;
  readonly after: Position;
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
 * The next page: of each change in the log the records that it tells of, as they are now. It ends where it is full, where
 * its time is up or where all that is committed has been read; what is committed and has no number yet is given one.
 */
export async function readChanges(
  pool: Pool,
  asked: ChangesAsked,
  from: Position,
  limit: number,
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
  const changes = await render(asked, page.entries);
  return { changes, next, hasMore: page.isFull || performance.now() > deadline };
}

/** The entries of a page. It is full with so many, or with fewer of types that have room for long texts. */
class Page {
  readonly entries: Entry[] = [];
  readonly #asked: ChangesAsked;
  readonly #limit: number;
  #charactersLeft: number = limits.recordCharactersPerRead;

  constructor(asked: ChangesAsked, limit: number) {
    this.#asked = asked;
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.entries.length === this.#limit || this.#charactersLeft <= 0;
  }

  /** How many more of a type there is room for. */
  roomFor(type: string): number {
    const characters = Math.ceil(this.#charactersLeft / this.#asked.records.charactersMax(type));
    return Math.max(0, Math.min(this.#limit - this.entries.length, characters));
  }

  add(entry: Entry): void {
    this.entries.push(entry);
    this.#charactersLeft -= this.#asked.records.charactersMax(entry.type);
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
  let ids = -from.offset;
  for (const change of looked) {
    seen = change.number;
    if (!types.has(change.type)) continue;
    wanted.push(change);
    ids += change.size;
    // No more is fetched than there can be room for.
    if (ids >= page.roomFor(change.type)) break;
  }
  const idsOf = await idsOfChanges(pool, organisationId, wanted);
  for (const { number, type, size } of wanted) {
    const offset = number === from.number ? from.offset : 0;
    const end = Math.min(size, offset + page.roomFor(type));
    for (let at = offset; at < end; at++) {
      const id = idsOf.get(number)?.[at];
      if (id === undefined) throw new BeginAgain('a change has fewer ids than it should');
      page.add({
        type,
        id,
        after: at + 1 < size ? { number, offset: at + 1 } : { number: number + 1, offset: 0 },
      });
    }
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

/** The ids of changes, which ascend by their numbers. */
async function idsOfChanges(
  pool: Pool,
  organisationId: string,
  changes: readonly LoggedChange[],
): Promise<ReadonlyMap<number, readonly string[]>> {
  if (changes.length === 0) return new Map();
  const changeIds = changes.map(({ change_id }) => change_id).toSorted();
  const { rows } = await pool.query<{ number: string; ids: string[] }>(
    `select number, ids::text[] from changes where organisation_id = $1 and change_id = any ($2::uuid[])
       and change_id >= '${changeIds[0]}' and change_id <= '${changeIds.at(-1)}'`,
    [organisationId, changeIds],
  );
  return new Map(rows.map(({ number, ids }) => [Number(number), ids]));
}

/** Each record is read once, however often it was changed. What is no longer stored is told as deleted. */
async function render(
  { organisationId, records }: ChangesAsked,
  entries: readonly Entry[],
): Promise<string[]> {
  const idsOf = Map.groupBy(entries, ({ type }) => type);
  const found = new Map<string, ReadonlyMap<string, string>>();
  for (const [type, ofType] of idsOf)
    found.set(type, await records.read(type, [...new Set(ofType.map(({ id }) => id))]));
  const cursors = new ChangeCursors(organisationId);
  return entries.map(({ type, id, after }) => {
    const record = found.get(type)?.get(id) ?? null;
    const deleted = record === null || record.includes('"is_deleted":true');
    return `{"cursor":"${cursors.write(after)}","type":"${type}","id":"${id}","deleted":${deleted},"record":${record}}`;
  });
}
