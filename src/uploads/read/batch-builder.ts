// uploads/read/: turns bytes into checked batches. Large bodies are read in worker threads.

import { createHash, type Hash } from 'node:crypto';
import { ObjectReader } from '../../json/object-reader.ts';
import { limits } from '../../limits.ts';
import { ArrayWriter } from '../../postgres/binary/array-writer.ts';
import { type EncodedRows, uuidAt } from '../../postgres/binary/encoded-rows.ts';
import {
  type FieldProblem,
  type Mode,
  makeCheck,
  modes,
  sentId,
  unreadableRecord,
} from '../../registry/fields.ts';
import { eventTime } from '../../registry/interaction.ts';
import { perType } from '../../registry/resources.ts';
import { type Instant, instantOf, readDateTime } from '../../registry/times.ts';
import {
  sentColumnTypes,
  sentFields,
  sentReferencesOf,
  type UploadType,
} from '../../registry/upload-types.ts';
import { type Warning, WarningCounter } from '../../registry/warnings.ts';
import { UuidSet } from '../../rejections/unsettled-batches.ts';
import { PlainReader } from './plain-reader.ts';

export interface FailedRecord {
  readonly index: number;
  readonly id: string | null;
  readonly problems: readonly FieldProblem[];
}

/** The parts of the body that will be stored, after the checks that need no database. */
export interface CheckedBatch {
  readonly mode: Mode;
  readonly received: number;
  readonly failed: readonly FailedRecord[];
  /** Of each failed record. The JSON is null if the record is not kept, the other two if they are absent. */
  readonly failedTexts: Buffer;
  readonly failedIds: Buffer;
  readonly failedUpdated: Buffer;
  /**
   * One column per field, plus an interaction's event time, or a bitmask of the fields that were sent if the batch is to be
   * merged. All of a batch's buffers share one ArrayBuffer.
   */
  readonly rows: EncodedRows;
  readonly indices: readonly number[];
  /** The distinct ids, with one array per reference field of the type. */
  readonly referenced: readonly Buffer[];
  readonly sample: Buffer;
  readonly hasRepeatedIds: boolean;
  readonly warnings: readonly Warning[];
  /** For comparing two uploads. It does not depend on the order of the fields. */
  readonly failedSha256: Uint8Array | undefined;
}

interface CollectedReference {
  readonly column: ArrayWriter;
  readonly ids: UuidSet;
  readonly where: { readonly column: ArrayWriter; readonly value: Uint8Array } | undefined;
}

/** A builder is used for all batches of its type, one after another. */
export class BatchBuilder {
  readonly #check: ReturnType<typeof makeCheck>;
  readonly #fast: PlainReader;
  readonly #slow: ObjectReader;
  /** Undefined if records of this type are sent without an id. */
  readonly #idField: string | undefined;
  readonly #updatedAt: number;
  readonly #eventAt: number;
  readonly #columns: readonly ArrayWriter[];
  readonly #eventTimes: ArrayWriter | undefined;
  readonly #sent: ArrayWriter | undefined;
  readonly #mode: Mode;
  readonly #ids = new UuidSet();
  readonly #references: readonly CollectedReference[];
  readonly #failedTexts = new ArrayWriter('text');
  readonly #failedIds = new ArrayWriter('uuid');
  readonly #failedUpdated = new ArrayWriter('timestamptz');
  #received = 0;
  #failed: FailedRecord[] = [];
  #indices: number[] = [];
  #warnings = new WarningCounter();
  #aheadFrom: Instant = 0;
  #failedHash: Hash | undefined;

  constructor(type: UploadType, mode: Mode) {
    const fields = sentFields(type);
    const names = Object.keys(fields);
    const columns = sentColumnTypes(type).map((column) => new ArrayWriter(column));
    this.#mode = mode;
    this.#sent = mode === 'merge' ? new ArrayWriter('int4') : undefined;
    this.#check = makeCheck(fields, mode);
    this.#fast = new PlainReader(fields, columns, mode);
    this.#slow = new ObjectReader(names);
    this.#idField = type === 'interactions' ? undefined : names[0];
    this.#updatedAt = names.indexOf('updated');
    this.#eventAt = names.indexOf('event_timestamp');
    this.#columns = columns;
    this.#eventTimes = this.#eventAt < 0 ? undefined : new ArrayWriter('timestamptz');
    this.#references = sentReferencesOf(type).map(({ position, where }) => ({
      column: columns[position] as ArrayWriter,
      ids: new UuidSet(),
      where: where && { column: columns[where.position] as ArrayWriter, value: Buffer.from(where.value) },
    }));
  }

  start(now: Date, wantsHash: boolean): void {
    for (const column of [...this.#allColumns(), this.#failedTexts, this.#failedIds, this.#failedUpdated])
      column.clear();
    for (const ids of [this.#ids, ...this.#references.map((reference) => reference.ids)]) ids.clear();
    this.#received = 0;
    this.#failed = [];
    this.#indices = [];
    this.#warnings = new WarningCounter();
    this.#failedHash = wantsHash ? createHash('sha256') : undefined;
    this.#aheadFrom = instantOf(now.getTime() + limits.updatedAheadMs) ?? Number.POSITIVE_INFINITY;
  }

  get received(): number {
    return this.#received;
  }

  /** Returns the record's end, or -1 if it is not plain. */
  readFast(bytes: Buffer, at: number): number {
    const end = this.#fast.read(bytes, at);
    if (end < 0) return end;
    this.#eventTimes?.append(this.#fast.eventTime);
    this.#sent?.append(this.#fast.seen);
    this.#accept(this.#fast.updated);
    return end;
  }

  /** Returns the value's end. Only the slow path reports a record's errors. */
  readSlowly(bytes: Buffer, at: number): number {
    const { values, repeated, unreadable, end } = this.#slow.read(bytes, at, this.#warnings.unknownField);
    if (unreadable) {
      this.#fail(values, [unreadableRecord[unreadable]]);
      // Only a value that was read to its end is known to be valid JSON.
      if (unreadable === 'not_an_object') this.#failedTexts.appendBytes(bytes, at, end);
      else this.#failedTexts.append(null);
      return end;
    }
    const { row, problems } = this.#check(values, repeated);
    if (problems) {
      this.#fail(values, problems);
      this.#failedTexts.appendBytes(bytes, at, end);
    } else {
      for (let at = 0; at < row.length; at++) {
        const value = row[at] ?? null;
        this.#columns[at]?.append(at === this.#eventAt ? JSON.stringify(value) : value);
      }
      this.#eventTimes?.append(eventTime(row[this.#eventAt] as string | number) ?? null);
      this.#sent?.append(sentMask(values));
      this.#accept((row[this.#updatedAt] ?? null) as Instant | null);
    }
    return end;
  }

  #fail(values: readonly unknown[], problems: readonly FieldProblem[]): void {
    this.#failedHash?.update(JSON.stringify([values, problems[0]?.code, ...this.#leftOut(values)]));
    const updated = values[this.#updatedAt];
    this.#failedUpdated.append((typeof updated === 'string' ? readDateTime(updated) : undefined) ?? null);
    const id = this.#idField === undefined ? null : sentId(values[0]);
    this.#failedIds.append(id);
    this.#failed.push({ index: this.#received++, id, problems });
  }

  #accept(updated: Instant | null): void {
    if (updated !== null && updated > this.#aheadFrom) this.#warnings.updatedInFuture();
    this.#indices.push(this.#received++);
    const own = this.#columns[0] as ArrayWriter;
    if (this.#idField !== undefined) this.#ids.add(own.view, own.lastUuid);
    for (const { column, ids, where } of this.#references)
      if (column.lastUuid >= 0 && where?.column.isLast(where.value) !== false)
        ids.add(column.view, column.lastUuid);
  }

  /** In JSON, a field that is left out would look like null. */
  #leftOut(values: readonly unknown[]): number[] {
    return this.#mode === 'merge' ? [sentMask(values)] : [];
  }

  #allColumns(): ArrayWriter[] {
    return [...this.#columns, ...[this.#eventTimes, this.#sent].filter((one) => one !== undefined)];
  }

  finish(): CheckedBatch {
    const count = this.#indices.length;
    const columns = this.#allColumns().map((column) => column.finish());
    const [failedTexts, failedIds, failedUpdated, sample, ...arrays] = copyTogether([
      this.#failedTexts.finish(),
      this.#failedIds.finish(),
      this.#failedUpdated.finish(),
      this.#sample(columns[0] as Buffer, count),
      ...columns,
      ...this.#references.map(({ ids }) => ids.finish()),
    ]) as [Buffer, Buffer, Buffer, Buffer, ...Buffer[]];
    const repeated = this.#idField === undefined ? 0 : count - this.#ids.size;
    return {
      mode: this.#mode,
      received: this.#received,
      failed: this.#failed,
      failedTexts,
      failedIds,
      failedUpdated,
      rows: { count, arrays: arrays.slice(0, columns.length) },
      indices: this.#indices,
      referenced: arrays.slice(columns.length),
      sample,
      hasRepeatedIds: repeated > 0,
      warnings: [...this.#warnings.list(), ...repeatedIds(this.#idField ?? '', repeated)],
      failedSha256: this.#failedHash?.digest(),
    };
  }

  #sample(ids: Buffer, count: number): Buffer {
    const sample = new ArrayWriter('uuid');
    if (this.#idField === undefined) return sample.finish();
    const step = Math.ceil(count / limits.recordsPerSample);
    for (let row = 0; row < count; row += step) sample.append(uuidAt(ids, row));
    return sample.finish();
  }
}

/** Kept per thread. Creating a builder for each body took 60 microseconds, as long as reading two small records. */
export type Builders = (type: UploadType, mode: Mode) => BatchBuilder;

export function makeBuilders(): Builders {
  const [replacing, merging] = modes.map((mode) =>
    perType((type: UploadType) => new BatchBuilder(type, mode)),
  );
  return (type, mode) => (mode === 'merge' ? merging : replacing)?.(type) as BatchBuilder;
}

function sentMask(values: readonly unknown[]): number {
  return values.reduce<number>((bits, value, at) => (value === undefined ? bits : bits | (1 << at)), 0);
}

/** The builder reuses its own memory for the next batch. */
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
  const message = 'occurs more than once in this batch; the records took effect in the order sent';
  return count > 0 ? [{ code: 'repeated_id', field, count, message }] : [];
}
