import { limits } from '../limits.ts';
import { idFieldOf, type ResourceType, referencesOf, resources } from '../registry/resources.ts';
import { type Instant, instantOf } from '../registry/times.ts';
import { compileCheck, type FieldProblem, sentId } from '../registry/validate.ts';
import { type Warning, WarningCounter } from '../registry/warnings.ts';
import { ArrayWriter } from '../store/array-writer.ts';
import { type EncodedRows, uuidAt, uuidsOf } from '../store/encoded-rows.ts';
import { perType, tableOf } from '../store/tables.ts';
import { UuidSet } from '../store/uuid-set.ts';
import { PlainReader } from './plain-reader.ts';

/** A record that is bad in itself. */
export interface RefusedRecord {
  readonly index: number;
  readonly id: string | null;
  readonly problems: readonly FieldProblem[];
  /** The record as JSON; null where it is too large to be kept. */
  readonly record: string | null;
}

/** A batch after the checks that need no database. It holds nothing of what was sent but what will be stored. */
export interface CheckedBatch {
  readonly received: number;
  readonly refused: readonly RefusedRecord[];
  /** The records that passed, and the index of each in the batch. All buffers here share one piece of memory. */
  readonly rows: EncodedRows;
  readonly indices: readonly number[];
  /** The ids that they refer to, each once: an array per reference of the type. */
  readonly referenced: readonly Buffer[];
  /** A few of their own ids. */
  readonly sample: Buffer;
  /** Places in `rows`; see wavesOf. */
  readonly waves: readonly (readonly number[])[];
  readonly warnings: readonly Warning[];
}

/** Takes the records of a batch one by one and checks them. One builder serves all batches of its type, in turn. */
export class BatchBuilder {
  readonly #check: ReturnType<typeof compileCheck>;
  readonly #plain: PlainReader;
  readonly #idField: string;
  readonly #updatedAt: number;
  readonly #columns: readonly ArrayWriter[];
  readonly #ids = new UuidSet();
  readonly #references: readonly { readonly column: ArrayWriter; readonly ids: UuidSet }[];
  #received = 0;
  #refused: RefusedRecord[] = [];
  #indices: number[] = [];
  #warnings = new WarningCounter();
  #aheadFrom: Instant = 0;

  constructor(type: ResourceType) {
    const { fields } = resources[type];
    const columns = tableOf(type).types.map((column) => new ArrayWriter(column));
    this.#check = compileCheck(fields);
    this.#plain = new PlainReader(fields, columns);
    this.#idField = idFieldOf(type);
    this.#updatedAt = Object.keys(fields).indexOf('updated');
    this.#columns = columns;
    this.#references = referencesOf(type).map(({ position }) => ({
      column: columns[position] as ArrayWriter,
      ids: new UuidSet(),
    }));
  }

  start(now: Date, warnings: WarningCounter): void {
    for (const column of this.#columns) column.clear();
    for (const ids of [this.#ids, ...this.#references.map((reference) => reference.ids)]) ids.clear();
    this.#received = 0;
    this.#refused = [];
    this.#indices = [];
    this.#warnings = warnings;
    this.#aheadFrom = instantOf(now.getTime() + limits.updatedAheadMs) ?? Number.POSITIVE_INFINITY;
  }

  get received(): number {
    return this.#received;
  }

  /** Takes the record that begins there, if it is plain, and returns where it ends; otherwise -1. */
  readPlain(bytes: Uint8Array, at: number): number {
    const end = this.#plain.read(bytes, at);
    if (end >= 0) this.#accept(this.#plain.updated);
    return end;
  }

  /** `text` gives the record as JSON, which is asked for only if it is refused. */
  add(record: unknown, text: () => string | null): void {
    const { row, problems } = this.#check(record, this.#warnings.unknownField);
    if (problems) {
      const id = sentId(record, this.#idField);
      this.#refused.push({ index: this.#received++, id, problems, record: text() });
      return;
    }
    for (let at = 0; at < row.length; at++) this.#columns[at]?.append(row[at] ?? null);
    this.#accept(row[this.#updatedAt] as Instant | null);
  }

  #accept(updated: Instant | null): void {
    if (updated !== null && updated > this.#aheadFrom) this.#warnings.updatedInFuture();
    this.#indices.push(this.#received++);
    const own = this.#columns[0] as ArrayWriter;
    this.#ids.add(own.view, own.lastUuid);
    for (const { column, ids } of this.#references)
      if (column.lastUuid >= 0) ids.add(column.view, column.lastUuid);
  }

  finish(): CheckedBatch {
    const count = this.#indices.length;
    const parts = [
      ...this.#columns.map((column) => column.finish()),
      ...this.#references.map(({ ids }) => ids.finish()),
    ];
    const arrays = copyTogether([...parts, this.#sample(parts[0] as Buffer, count)]);
    const rows = { count, arrays: arrays.slice(0, this.#columns.length) };
    const repeated = count - this.#ids.size;
    return {
      received: this.#received,
      refused: this.#refused,
      rows,
      indices: this.#indices,
      referenced: arrays.slice(this.#columns.length, -1),
      sample: arrays.at(-1) as Buffer,
      waves: repeated === 0 ? oneWave(count) : wavesOf(uuidsOf(rows.arrays[0] as Buffer, count)),
      warnings: [...this.#warnings.list(), ...repeatedIds(this.#idField, repeated)],
    };
  }

  #sample(ids: Buffer, count: number): Buffer {
    const sample = new ArrayWriter('uuid');
    const step = Math.ceil(count / limits.recordsPerSample);
    for (let place = 0; place < count; place += step) sample.append(uuidAt(ids, place));
    return sample.finish();
  }
}

export const builderOf = perType((type) => new BatchBuilder(type));

/** The arrays side by side in memory of their own, for the builder writes the next batch where this one is. */
function copyTogether(arrays: readonly Buffer[]): Buffer[] {
  const all = new ArrayBuffer(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  return arrays.map((array) => {
    const copy = Buffer.from(all, at, array.length);
    copy.set(array);
    at += array.length;
    return copy;
  });
}

function repeatedIds(field: string, count: number): Warning[] {
  const message = 'came more than once in this batch; each record took effect in the order sent';
  return count > 0 ? [{ code: 'repeated_id', field, count, message }] : [];
}

function oneWave(count: number): number[][] {
  return count === 0 ? [] : [Array.from({ length: count }, (_, place) => place)];
}

/**
 * PostgreSQL's `on conflict` cannot meet one id twice in a statement, and keeping only the last would be wrong (stored
 * T5, then T3, none, T4 must end at T4). So the k-th occurrence of an id goes into the k-th wave. Nearly always there
 * is one.
 */
function wavesOf(ids: readonly (string | null)[]): number[][] {
  const waves: number[][] = [];
  const seen = new Map<string | null, number>();
  for (const [place, id] of ids.entries()) {
    const wave = seen.get(id) ?? 0;
    seen.set(id, wave + 1);
    if (waves[wave]) waves[wave].push(place);
    else waves[wave] = [place];
  }
  return waves;
}
