import { rm } from 'node:fs/promises';
import { firstUuid, msOfUuidV7 } from '../registry/uuid-v7.ts';
import { LakeTaken } from './lake-progress.ts';
import { type LastChange, txnOf } from './last-change.ts';
import { lakeLimits } from './limits.ts';
import type { Spool, SpooledDay } from './spool.ts';
import { compact } from './table/compact.ts';
import type { DeltaTable } from './table/delta-table.ts';
import { lakeSchema } from './table/lake-schema.ts';
import type { ParquetWriter, Written } from './table/parquet-writer.ts';
import type { DataFile } from './table/table-state.ts';

const schema = lakeSchema('interactions');

export class InteractionTable {
  readonly recent: RecentIds;
  readonly delta: DeltaTable;
  readonly #parquet: ParquetWriter;
  /** Days that may have files to merge. */
  readonly #unmerged: Set<string>;
  readonly #purgedDays = new Set<string>();

  constructor(delta: DeltaTable, parquet: ParquetWriter) {
    this.delta = delta;
    this.#parquet = parquet;
    this.recent = new RecentIds(
      delta.files.reduce((newestMs, file) => Math.max(newestMs, receivedIn(file).toMs), -1),
    );
    this.#unmerged = new Set(delta.files.map(({ partition = '' }) => partition));
  }

  async append(spool: Spool, lastChange: LastChange, expiredBelow: string): Promise<void> {
    const keptFrom = expiredBelow > firstUuid ? dayOf(msOfUuidV7(expiredBelow)) : '';
    const isExpired = (day = '') => day < keptFrom;
    const days = (await spool.finish()).filter(({ day }) => !isExpired(day));
    const add: DataFile[] = [];
    for (const day of days) {
      const written = await this.#write(day);
      if (written) add.push(await this.delta.put(written, day.day));
    }
    const remove = this.delta.files.filter(({ partition }) => isExpired(partition));
    if (add.length > 0 || remove.length > 0) {
      const txn = txnOf(lastChange);
      // After a conflict, these rows have not been compared with the other process's rows, so the step must start over.
      if ((await this.delta.commit({ add, remove, txn })) === 'conflict') throw new LakeTaken();
      this.recent.add(spool.ids);
      for (const { day } of days) this.#unmerged.add(day);
    }
    // Purge before the progress is saved, so that the next process repeats the step if this one is killed here.
    await this.#purge(this.delta.removedDays.filter(isExpired));
  }

  async tend(): Promise<void> {
    const today = dayOf(Date.now());
    for (const day of this.#unmerged) {
      const done = await compact(this.delta, this.#parquet, day);
      if (done !== 'nothing') break;
      if (day < today) this.#unmerged.delete(day);
    }
    await this.delta.checkpoint();
    await this.delta.vacuumIfDue(lakeLimits.commitsPerVacuum);
  }

  /** Deletes immediately, because nobody may read expired days, not even in older versions of the table. */
  async #purge(days: readonly string[]): Promise<void> {
    for (const day of days.filter((one) => !this.#purgedDays.has(one))) {
      await this.delta.purge(day);
      this.#purgedDays.add(day);
    }
  }

  /** Rows that may already be in the table are compared with the files that cover the same time range. */
  async #write({ day, file, doubtful }: SpooledDay): Promise<Written | undefined> {
    const overlapping = this.delta.files.filter((one) => {
      const { fromMs, toMs } = receivedIn(one);
      return one.partition === day && doubtful !== null && fromMs <= doubtful.toMs && toMs >= doubtful.fromMs;
    });
    const except: string[] = [];
    try {
      for (const one of overlapping) except.push(await this.delta.get(one));
      return await this.#parquet.write(file, schema, { day, except });
    } finally {
      for (const one of except) await rm(one, { force: true });
    }
  }
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function receivedIn({ stats }: DataFile): { fromMs: number; toMs: number } {
  const { of = '' } = schema.day ?? {};
  const [from, to] = [stats.minValues[of], stats.maxValues[of]];
  // Every row has a time of receipt, so these values always exist.
  if (from === undefined || to === undefined) throw new Error('a file of the lake has no times of receipt');
  return { fromMs: Date.parse(from), toMs: Date.parse(to) };
}

/**
 * Transactions do not commit in the order in which their interactions were received, so each commit to the table
 * overlaps slightly with the previous one. Without these ids, each commit would have to read a file.
 */
export class RecentIds {
  readonly #max: number;
  #ids = new Set<string>();
  /** The set contains the ids of all rows that were received in or after this millisecond. */
  #completeFromMs: number;

  constructor(newestMs: number, max: number = lakeLimits.recentIdsMax) {
    this.#completeFromMs = newestMs + 1;
    this.#max = max;
  }

  /** Returns undefined if the files must be checked. */
  has(id: string): boolean | undefined {
    if (this.#ids.has(id)) return true;
    return msOfUuidV7(id) >= this.#completeFromMs ? false : undefined;
  }

  /** Must be called for each commit. */
  add(ids: readonly string[]): void {
    const all = [...this.#ids, ...ids];
    const forgotten = all.splice(0, Math.max(0, all.length - this.#max));
    for (const id of forgotten) this.#completeFromMs = Math.max(this.#completeFromMs, msOfUuidV7(id) + 1);
    this.#ids = new Set(all);
  }
}
