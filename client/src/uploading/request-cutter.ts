import { resources, type UploadType } from '../generated/resources.ts';
import { limits } from '../limits.ts';
import { ByteLines } from './byte-lines.ts';
import { IdSet } from './id-set.ts';

/** One request's records. `I` is the type that the caller uses to identify a record. */
export interface Cut<I> {
  /** The index of the request's first record within the upload, and the index after its last record. */
  readonly first: number;
  readonly end: number;
  readonly items: readonly I[];
  /** The JSON of each record. */
  readonly parts: ByteLines;
  /** The index of each of these records within the upload, which also counts the records that are not sent. */
  readonly indexes: readonly number[];
  /** The number of the request's records that are not sent. */
  readonly skipped: number;
  /** The ids of the request's records, with their batch numbers. */
  readonly ids: IdSet;
}

/**
 * Splits records into requests that respect the service's limits. The split is deterministic: the same records always result
 * in the same requests.
 */
export class RequestCutter<I> {
  readonly #idField: string;
  readonly #recordsMax: number;
  readonly #bytesMax: number;
  #first: number;
  #items: I[] = [];
  #parts = new ByteLines(',');
  #indexes: number[] = [];
  #skipped = 0;
  /** The number of bytes that the caller keeps in memory for these records. */
  #keptBytes = 0;
  #ids = new IdSet();

  constructor(
    type: UploadType,
    { first = 0, recordsMax = Infinity, bytesMax = limits.bytesPerRequestMax } = {},
  ) {
    const { idField, recordsPerRequestMax } = resources[type];
    this.#idField = idField;
    this.#recordsMax = Math.min(recordsMax, recordsPerRequestMax);
    this.#bytesMax = bytesMax;
    this.#first = first;
  }

  /**
   * Adds a record, for which the caller keeps `keptBytes` in memory until the record is answered. Returns the previous
   * request if it is now complete.
   */
  add(item: I, record: unknown, keptBytes = 0): Cut<I> | undefined {
    const json = JSON.stringify(record) ?? 'null';
    const id = this.#idOf(record);
    const complete = this.#fits(json, id, keptBytes) ? undefined : this.take();
    if (id !== undefined) this.#ids.add(id, this.#batch());
    this.#indexes.push(this.#first + this.#items.length + this.#skipped);
    this.#items.push(item);
    this.#parts.add(json);
    this.#keptBytes += keptBytes;
    return complete;
  }

  #idOf(record: unknown): string | undefined {
    const given = (record as Record<string, unknown> | null)?.[this.#idField];
    return typeof given === 'string' ? given : undefined;
  }

  /** Counts a record that is not sent. Returns the previous request if it is now complete. */
  skip(keptBytes = 0): Cut<I> | undefined {
    const fits = this.#skipped < this.#recordsMax && this.#hasRoom(keptBytes);
    const complete = fits ? undefined : this.take();
    this.#skipped++;
    this.#keptBytes += keptBytes;
    return complete;
  }

  /** Returns the current request and starts a new one. Returns undefined if the current request is empty. */
  take(): Cut<I> | undefined {
    const count = this.#items.length + this.#skipped;
    if (count === 0) return undefined;
    const first = this.#first;
    this.#first += count;
    const cut = {
      first,
      end: this.#first,
      items: this.#items,
      parts: this.#parts,
      indexes: this.#indexes,
      skipped: this.#skipped,
      ids: this.#ids,
    };
    this.#items = [];
    this.#indexes = [];
    this.#parts = new ByteLines(',', this.#parts.byteLength + 65_536);
    this.#skipped = 0;
    this.#keptBytes = 0;
    this.#ids = new IdSet();
    return cut;
  }

  /** Returns whether the current request has room for this many bytes. An empty request always has room for one record. */
  #hasRoom(bytes: number): boolean {
    const all = this.#parts.byteLength + this.#keptBytes;
    return all === 0 || all + bytes <= this.#bytesMax;
  }

  #batch(): number {
    return Math.floor(this.#parts.count / limits.recordsPerBatch);
  }

  /**
   * Returns whether a record fits into the current request. An id may be repeated within a batch, which is stored
   * atomically, but not in a later batch. If only the earlier batch had to be retried, the earlier record would overwrite
   * the later one.
   */
  #fits(json: string, id: string | undefined, keptBytes: number): boolean {
    if (!this.#hasRoom(json.length + keptBytes)) return false;
    if (this.#parts.count >= this.#recordsMax) return false;
    return id === undefined || (this.#ids.batchOf(id) ?? this.#batch()) === this.#batch();
  }
}
