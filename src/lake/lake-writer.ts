import { epochOf } from '../changes/change-cursor.ts';
import { numberAllChanges, stateOf } from '../changes/change-log.ts';
import { RequestError } from '../errors.ts';
import type { Pool } from '../postgres/pool.ts';
import { databaseTime, inTransaction } from '../postgres/transactions.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import { erasePeople } from './ending/erase-people.ts';
import { beginRemoving, removeLake } from './ending/lake-endings.ts';
import { readLog } from './follow-log.ts';
import { readStored } from './interaction-lines.ts';
import {
  type Copying,
  expiredInteractions,
  type LakeProgress,
  LakeTaken,
  readProgress,
  saveProgress,
  type Versions,
} from './lake-progress.ts';
import { LakeTables, TableLost } from './lake-tables.ts';
import { isInLog, type LastChange } from './last-change.ts';
import { lakeLimits } from './limits.ts';
import { Spool } from './spool.ts';
import type { LakePlace } from './store/lake-place.ts';
import type { LakeStore } from './store/lake-store.ts';
import { lakeTypes } from './table/lake-schema.ts';
import type { ParquetWriter } from './table/parquet-writer.ts';
import { readStoredVersions } from './versions/version-lines.ts';

export interface StepDone {
  readonly rows: number;
  readonly source: 'log' | 'tables';
}

interface LakeParts {
  readonly pool: Pool;
  readonly store: LakeStore;
  /** Where the store's files are. Without it, the store belongs to this database. */
  readonly place?: Pick<LakePlace, 'claim' | 'isChecked'>;
  readonly parquet: ParquetWriter;
  readonly suppressions: Suppressions;
  readonly isHeld: (organisationId: string) => boolean;
  readonly rowsPerStep?: number;
  /** Called when a lake's files will be deleted and everything will be copied again, with the table that was lost, if any. */
  readonly startedOver?: (organisationId: string, table?: string) => void;
}

/**
 * Writes lakes step by step. A step reads rows, commits them to the tables and then saves its progress in PostgreSQL. If the
 * process is killed in between, the next one reads the same rows again and skips those that the tables already have.
 */
export class LakeWriter {
  readonly #parts: LakeParts;
  /** The least recently used organisation comes first. */
  readonly #lakes = new Map<string, LakeTables>();

  constructor(parts: LakeParts) {
    this.#parts = parts;
  }

  /** Steps for the same organisation must not overlap. */
  async step(organisationId: string, stopping: AbortSignal): Promise<StepDone> {
    const before = await readProgress(this.#parts.pool, organisationId);
    if (!before && (await this.#hasFiles(organisationId))) return this.#startOver(organisationId, before);
    const progress = before ?? (await this.#beginCopy(organisationId, before));
    const tables = this.#tablesOf(organisationId, progress.versions);
    const { copying } = progress;
    try {
      return copying
        ? await this.#copy(organisationId, progress, copying, tables, stopping)
        : await this.#follow(organisationId, progress, tables, stopping);
    } catch (error) {
      // The error may have been caused by the tables' cached state.
      this.forget(organisationId);
      if (await this.#isLost(organisationId, progress, error))
        return this.#startOver(organisationId, progress, error);
      if (!isTooOld(error)) throw error;
      await this.#beginCopy(organisationId, progress);
      return { rows: 0, source: 'log' };
    }
  }

  async tend(organisationId: string): Promise<void> {
    try {
      await this.#lakes.get(organisationId)?.tend();
    } catch (error) {
      this.forget(organisationId);
      throw error;
    }
  }

  /** Removes erased people from the files for about a minute. The next call continues. */
  async erase(organisationId: string, stopping: AbortSignal): Promise<void> {
    const { pool, place, suppressions } = this.#parts;
    // Drop the cached state, because it would still contain the rows that are about to be removed.
    this.forget(organisationId);
    // After a failover, the database may have given the versions of the cached suppressions to other people.
    suppressions.forget();
    await place?.claim();
    try {
      const store = this.#storeOf(organisationId);
      await erasePeople({ ...this.#parts, store }, organisationId, stopping);
    } catch (error) {
      if (!(error instanceof TableLost)) throw error;
      await this.#startOver(organisationId, await readProgress(pool, organisationId), error);
    }
  }

  async remove(organisationId: string): Promise<void> {
    this.forget(organisationId);
    const { pool, place } = this.#parts;
    await place?.claim();
    await removeLake({ pool, place, store: this.#storeOf(organisationId) }, organisationId);
  }

  forget(organisationId: string): void {
    this.#lakes.delete(organisationId);
  }

  #storeOf(organisationId: string): LakeStore {
    const { store, place, isHeld } = this.#parts;
    return heldStore(store, async () => {
      if (!place?.isChecked) await place?.claim();
      // Without the slot, another process may be removing the lake.
      if (!isHeld(organisationId)) throw new LakeTaken();
    });
  }

  async #hasFiles(organisationId: string): Promise<boolean> {
    for await (const _ of this.#parts.store.list(organisationId)) return true;
    return false;
  }

  #tablesOf(organisationId: string, versions: Versions): LakeTables {
    const { pool, parquet } = this.#parts;
    const tables =
      this.#lakes.get(organisationId) ??
      new LakeTables({ pool, parquet, store: this.#storeOf(organisationId) }, organisationId);
    this.#lakes.delete(organisationId);
    this.#lakes.set(organisationId, tables);
    const [oldest] = this.#lakes.keys();
    if (this.#lakes.size > lakeLimits.lakesOpenMax && oldest !== undefined) this.forget(oldest);
    tables.beginStep(versions);
    return tables;
  }

  /**
   * The copy reads everything that is committed so far, so the log is needed only from this point on. If a lake fell
   * behind for longer than the log is kept, the copy adds missing interactions and replaces the records.
   */
  async #beginCopy(organisationId: string, before: LakeProgress | undefined): Promise<LakeProgress> {
    const { pool, place } = this.#parts;
    await place?.claim();
    const began = await databaseTime(pool);
    const begun = { ...(await beginning(pool, organisationId)), versions: before?.versions ?? {} };
    await saveProgress(pool, organisationId, before, begun, began);
    return begun;
  }

  /**
   * Removes all files before a new copy starts. They may contain data that the database has lost, or people who were
   * erased without this lake being searched.
   */
  async #startOver(
    organisationId: string,
    before: LakeProgress | undefined,
    cause?: unknown,
  ): Promise<StepDone> {
    const { pool, place } = this.#parts;
    // Files that are missing because a folder is not mounted are not lost.
    await place?.claim();
    const begun = await beginning(pool, organisationId);
    await inTransaction(pool, async (client) => {
      await saveProgress(client, organisationId, before, begun, null);
      await beginRemoving(client, organisationId);
    });
    this.#parts.startedOver?.(organisationId, cause instanceof TableLost ? cause.table : undefined);
    return { rows: 0, source: 'tables' };
  }

  /** Either tables were lost, or the database has lost changes that are in them. */
  async #isLost(organisationId: string, progress: LakeProgress, error: unknown): Promise<boolean> {
    if (error instanceof TableLost) return true;
    return isTooOld(error) && !isInLog(progress, await stateOf(this.#parts.pool, organisationId));
  }

  async #copy(
    organisationId: string,
    before: LakeProgress,
    from: Copying,
    tables: LakeTables,
    stopping: AbortSignal,
  ): Promise<StepDone> {
    const { number, epoch } = before;
    return this.#spooling(async (spool) => {
      const read: Copying[] = [];
      let copying: Copying | null = from;
      while (copying && !spool.isFull && !stopping.aborted) {
        read.push(copying);
        const last = await this.#readStored(organisationId, copying, number, tables, spool, stopping);
        copying = last === null ? nextAfter(copying.type) : { ...copying, after: last };
      }
      let { versions } = before;
      for (const { type, after } of read) {
        const isNew = after === firstUuid;
        const version = await this.#commit(organisationId, type, tables, spool, { number, epoch, isNew });
        versions = { ...versions, [type]: version };
      }
      await saveProgress(this.#parts.pool, organisationId, before, { ...before, versions, copying }, null);
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
    const began = await databaseTime(pool);
    // Open this table even if there are no new interactions, to merge days that have ended.
    await tables.interactions();
    await tables.refuseLost();
    return this.#spooling(async (spool) => {
      const { hasMore, ...read } = await readLog(pool, organisationId, before, tables, spool, stopping);
      // The server was restarted, or a standby took over that may lack changes which are in any of the tables.
      if (read.epoch !== before.epoch) await tables.compareWithLog();
      let { versions } = before;
      for (const type of ['interactions', ...spool.types] as const) {
        const version = await this.#commit(organisationId, type, tables, spool, read);
        versions = { ...versions, [type]: version };
      }
      const now = { number: read.number, epoch: read.epoch, versions, copying: null };
      await saveProgress(pool, organisationId, before, now, hasMore ? null : began);
      return { rows: spool.rows, source: 'log' };
    });
  }

  /** Returns the table's version. */
  async #commit(
    organisationId: string,
    type: UploadType,
    tables: LakeTables,
    spool: Spool,
    { expiredBelow = firstUuid, isNew = false, ...lastChange }: Committing,
  ): Promise<number> {
    if (type !== 'interactions') {
      const table = await tables.versions(type);
      await table.append(spool, lastChange, isNew);
      return table.delta.version;
    }
    // Log entries that were dropped before they were read may have marked further interactions as expired.
    const deletedBelow = await expiredInteractions(this.#parts.pool, organisationId);
    const table = await tables.interactions();
    await table.append(spool, lastChange, deletedBelow > expiredBelow ? deletedBelow : expiredBelow);
    return table.delta.version;
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

interface Committing extends LastChange {
  readonly expiredBelow?: string;
  /** Whether this is the first commit of a type's copy. */
  readonly isNew?: boolean;
}

async function beginning(pool: Pool, organisationId: string): Promise<LakeProgress> {
  const { last, epochs } = await numberAllChanges(pool, organisationId);
  return { number: last, epoch: epochOf(epochs, last), versions: {}, copying: nextAfter(undefined) };
}

function nextAfter(type: UploadType | undefined): Copying | null {
  const next = lakeTypes[type === undefined ? 0 : lakeTypes.indexOf(type) + 1];
  return next === undefined ? null : { type: next, after: firstUuid };
}

/** The log no longer has the next change, because it was dropped before it was read or is lost. */
function isTooOld(error: unknown): boolean {
  return error instanceof RequestError && error.code === 'cursor_too_old';
}

/** Changes no file unless the check succeeds first. */
function heldStore(store: LakeStore, check: () => Promise<void>): LakeStore {
  const whileHeld =
    <Given extends unknown[], T>(change: (...given: Given) => Promise<T>) =>
    async (...given: Given) => {
      await check();
      return change(...given);
    };
  return {
    read: (path) => store.read(path),
    readRange: (path, from, to) => store.readRange(path, from, to),
    create: whileHeld((path: string, bytes: Buffer) => store.create(path, bytes)),
    putFile: whileHeld((path: string, localFile: string) => store.putFile(path, localFile)),
    getFile: (path, localFile) => store.getFile(path, localFile),
    list: (folder) => store.list(folder),
    folders: () => store.folders(),
    remove: whileHeld((path: string) => store.remove(path)),
    probe: () => store.probe(),
  };
}
