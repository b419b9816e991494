import { epochOf } from '../changes/change-cursor.ts';
import { numberAllChanges } from '../changes/change-log.ts';
import { RequestError } from '../errors.ts';
import type { Pool } from '../postgres/pool.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import { erasePeople } from './ending/erase-people.ts';
import { lookAgain } from './ending/lake-endings.ts';
import { removeLake } from './ending/remove-lake.ts';
import { readLog } from './follow-log.ts';
import { readStored } from './interaction-lines.ts';
import {
  type Copying,
  expiredInteractions,
  type LakeProgress,
  LakeTaken,
  noteProgress,
  type Positions,
  readProgress,
} from './lake-progress.ts';
import { LakeTables, TableLost } from './lake-tables.ts';
import { lakeLimits } from './limits.ts';
import { Spool } from './spool.ts';
import type { LakeStore } from './store/lake-store.ts';
import { lakeTypes } from './table/lake-schema.ts';
import type { ParquetWriter } from './table/parquet-writer.ts';
import { readStoredVersions } from './versions/version-lines.ts';

/** The result of a step. */
export interface StepDone {
  readonly rows: number;
  readonly source: 'log' | 'tables';
}

/** The dependencies of a process that writes lakes. */
export interface LakeParts {
  readonly pool: Pool;
  readonly store: LakeStore;
  readonly parquet: ParquetWriter;
  readonly suppressions: Suppressions;
  /** Whether this process still holds the organisation's slot. */
  readonly isHeld: (organisationId: string) => boolean;
  readonly rowsPerStep?: number;
}

/**
 * Writes lakes step by step. A step reads rows, commits them to the tables and then saves its progress in PostgreSQL. If the
 * process is killed in between, the next one reads the same rows again and skips those that the tables already have.
 */
export class LakeWriter {
  readonly #parts: LakeParts;
  /** The cached tables, with the least recently used organisation first. */
  readonly #lakes = new Map<string, LakeTables>();

  constructor(parts: LakeParts) {
    this.#parts = parts;
  }

  /** Runs one step for an organisation. Steps for the same organisation must not overlap. */
  async step(organisationId: string, stopping: AbortSignal): Promise<StepDone> {
    const before = await readProgress(this.#parts.pool, organisationId);
    const progress = before ?? (await this.#beginCopy(organisationId, undefined));
    const tables = this.#tablesOf(organisationId, progress.positions);
    const { copying } = progress;
    try {
      return copying
        ? await this.#copy(organisationId, progress, copying, tables, stopping)
        : await this.#follow(organisationId, progress, tables, stopping);
    } catch (error) {
      // The error may have been caused by the tables' cached state.
      this.forget(organisationId);
      if (!isCopyNeeded(error)) throw error;
      if (error instanceof TableLost) await lookAgain(this.#parts.pool, organisationId);
      await this.#beginCopy(organisationId, progress);
      return { rows: 0, source: copying ? 'tables' : 'log' };
    }
  }

  /** Merges small files and deletes old files. The amount of work per call is limited. */
  async tend(organisationId: string): Promise<void> {
    const tables = this.#lakes.get(organisationId);
    if (!tables || !this.#parts.isHeld(organisationId)) return;
    try {
      await tables.tend();
    } catch (error) {
      this.forget(organisationId);
      throw error;
    }
  }

  /** Removes erased people from the files. The amount of work per call is limited. */
  async erase(organisationId: string, stopping: AbortSignal): Promise<void> {
    // Drop the cached state, because it would still contain the rows that are about to be removed.
    this.forget(organisationId);
    await erasePeople(this.#parts, organisationId, stopping);
  }

  /** Deletes the lake's files. The amount of work per call is limited. */
  async remove(organisationId: string): Promise<void> {
    this.forget(organisationId);
    await removeLake(this.#parts, organisationId);
  }

  forget(organisationId: string): void {
    this.#lakes.delete(organisationId);
  }

  #tablesOf(organisationId: string, positions: Positions): LakeTables {
    const { store, parquet } = this.#parts;
    const tables = this.#lakes.get(organisationId) ?? new LakeTables(store, parquet, organisationId);
    this.#lakes.delete(organisationId);
    this.#lakes.set(organisationId, tables);
    const [oldest] = this.#lakes.keys();
    if (this.#lakes.size > lakeLimits.lakesOpenMax && oldest !== undefined) this.forget(oldest);
    tables.beginStep(positions);
    return tables;
  }

  /**
   * Starts a copy. The copy reads everything that is committed so far from the database tables, so the log is needed only
   * from this point on. If a lake fell behind for longer than the log is kept, the copy adds the missing interactions and
   * replaces the records.
   */
  async #beginCopy(organisationId: string, before: LakeProgress | undefined): Promise<LakeProgress> {
    const { pool } = this.#parts;
    const began = new Date();
    const { last, epochs } = await numberAllChanges(pool, organisationId);
    const begun = {
      number: last,
      epoch: epochOf(epochs, last),
      positions: {},
      copying: nextAfter(undefined),
    };
    await noteProgress(pool, organisationId, before, begun, began);
    return begun;
  }

  /** Copies one type after another until the spool is full. */
  async #copy(
    organisationId: string,
    before: LakeProgress,
    from: Copying,
    tables: LakeTables,
    stopping: AbortSignal,
  ): Promise<StepDone> {
    const { number } = before;
    return this.#spooling(async (spool) => {
      const read: Copying[] = [];
      let copying: Copying | null = from;
      while (copying && !spool.isFull && !stopping.aborted) {
        read.push(copying);
        const last = await this.#readStored(organisationId, copying, number, tables, spool, stopping);
        copying = last === null ? nextAfter(copying.type) : { ...copying, after: last };
      }
      let { positions } = before;
      for (const { type, after } of read) {
        const isNew = after === firstUuid;
        const committed = await this.#commit(organisationId, type, tables, spool, { number, isNew });
        positions = { ...positions, [type]: committed };
      }
      await noteProgress(this.#parts.pool, organisationId, before, { ...before, positions, copying }, null);
      return { rows: spool.rows, source: 'tables' };
    });
  }

  async #readStored(
    organisationId: string,
    { type, after }: Copying,
    number: number,
    tables: LakeTables,
    spool: Spool,
    stopping: AbortSignal,
  ): Promise<string | null> {
    const { pool } = this.#parts;
    if (type === 'interactions')
      return readStored(pool, organisationId, after, await tables.interactions(), spool, stopping);
    // Open the table before reading, so that a commit by another process causes a conflict.
    await tables.versions(type);
    return readStoredVersions(pool, organisationId, type, { after, number }, spool, stopping);
  }

  async #follow(
    organisationId: string,
    before: LakeProgress,
    tables: LakeTables,
    stopping: AbortSignal,
  ): Promise<StepDone> {
    const { pool } = this.#parts;
    const began = new Date();
    // Open this table even if there are no new interactions, to merge days that have ended and to notice that a lake was
    // deleted.
    await tables.interactions();
    return this.#spooling(async (spool) => {
      const { hasMore, ...read } = await readLog(pool, organisationId, before, tables, spool, stopping);
      let { positions } = before;
      for (const type of ['interactions', ...spool.types] as const) {
        const committed = await this.#commit(organisationId, type, tables, spool, read);
        positions = { ...positions, [type]: committed };
      }
      const now = { number: read.number, epoch: read.epoch, positions, copying: null };
      await noteProgress(pool, organisationId, before, now, hasMore ? null : began);
      return { rows: spool.rows, source: 'log' };
    });
  }

  /** Commits the spooled rows of one type, and returns the table's position. */
  async #commit(
    organisationId: string,
    type: UploadType,
    tables: LakeTables,
    spool: Spool,
    { number, expiredBelow = firstUuid, isNew = false }: Committing,
  ): Promise<number> {
    // Log entries that were dropped before they were read may have marked further interactions as expired.
    const deletedBelow =
      type === 'interactions' ? await expiredInteractions(this.#parts.pool, organisationId) : firstUuid;
    if (!this.#parts.isHeld(organisationId)) throw new LakeTaken();
    if (type === 'interactions') {
      const from = deletedBelow > expiredBelow ? deletedBelow : expiredBelow;
      return (await tables.interactions()).append(spool, number, from);
    }
    return (await tables.versions(type)).append(spool, number, isNew);
  }

  async #spooling<T>(work: (spool: Spool) => Promise<T>): Promise<T> {
    const { parquet, rowsPerStep = lakeLimits.rowsPerStep } = this.#parts;
    const spool = await Spool.open(parquet.folder, rowsPerStep);
    try {
      return await work(spool);
    } finally {
      await spool.remove();
    }
  }
}

interface Committing {
  /** The commit contains every change up to this number. */
  readonly number: number;
  readonly expiredBelow?: string;
  /** Whether this is the first commit of a type's copy. */
  readonly isNew?: boolean;
}

/** Returns the position at which to start copying the next type, or null after the last type. */
function nextAfter(type: UploadType | undefined): Copying | null {
  const next = lakeTypes[type === undefined ? 0 : lakeTypes.indexOf(type) + 1];
  return next === undefined ? null : { type: next, after: firstUuid };
}

/**
 * Returns whether the stored data must be copied again, because changes were dropped before they were read, a standby
 * that did not have them took over, or a table was deleted.
 */
function isCopyNeeded(error: unknown): boolean {
  return error instanceof TableLost || (error instanceof RequestError && error.code === 'cursor_too_old');
}
