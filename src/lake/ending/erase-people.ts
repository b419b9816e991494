import { rm } from 'node:fs/promises';
import { type Pool, withClient } from '../../postgres/pool.ts';
import { personalFields, type UploadType } from '../../registry/upload-types.ts';
import type { Suppressions } from '../../suppression/suppressions.ts';
import { storedAmong } from '../interaction-lines.ts';
import { readProgress } from '../lake-progress.ts';
import { TableLost } from '../lake-tables.ts';
import { lakeLimits } from '../limits.ts';
import type { LakePlace } from '../store/lake-place.ts';
import type { LakeStore } from '../store/lake-store.ts';
import type { Rewritten } from '../table/compact.ts';
import { DeltaTable, nameOf } from '../table/delta-table.ts';
import { lakeSchema, lakeTypes } from '../table/lake-schema.ts';
import type { ParquetWriter } from '../table/parquet-writer.ts';
import { RowsOfPeople } from '../table/rows-of-people.ts';
import type { DataFile } from '../table/table-state.ts';
import { currentPass, savePass, saveVersion } from './lake-endings.ts';

interface EraserParts {
  readonly pool: Pool;
  readonly store: LakeStore;
  readonly place?: Pick<LakePlace, 'claim'>;
  readonly parquet: ParquetWriter;
  readonly suppressions: Suppressions;
}

const typesWithPeople: readonly UploadType[] = lakeTypes.filter(
  (type) => personalFields(type).identifying.length > 0,
);

/**
 * Rewrites as many files as time allows, but at least one. PostgreSQL no longer knows which rows erased people had, so
 * every file must be read. A single pass covers all pending erasures.
 */
export async function erasePeople(
  parts: EraserParts,
  organisationId: string,
  stopping: AbortSignal,
): Promise<void> {
  const { pool, place, suppressions } = parts;
  // Without one of the keys, people would stay in the files unnoticed. The erasures stay pending until a process has it.
  await suppressions.requireKeys(pool, organisationId);
  const pass = await currentPass(pool, organisationId);
  if (!pass) return;
  const untilMs = performance.now() + lakeLimits.erasingMs;
  let files = 0;
  const isOver = () => stopping.aborted || (files > 0 && performance.now() > untilMs);
  const [begun, name] = pass.after?.split(' ') ?? [];
  const types = typesWithPeople.slice(Math.max(0, typesWithPeople.indexOf(begun as UploadType)));
  const progress = await readProgress(pool, organisationId);
  // An organisation without a lake has no files.
  if (progress)
    for (const type of types) {
      const save = async (file: string) => {
        files++;
        await savePass(pool, organisationId, pass, `${type} ${file}`);
      };
      const after = type === begun ? (name ?? '') : '';
      // Save the progress at the start of each table, so that a pass that keeps failing still advances.
      if (type !== begun) await savePass(pool, organisationId, pass, `${type} ${after}`);
      const version = progress.versions[type];
      if (!(await cleanTable(parts, organisationId, { type, after, version, isOver, save }))) return;
      // If the folder was unmounted meanwhile, old files that are still in it look as if they had been deleted.
      await place?.claim();
    }
  await savePass(pool, organisationId, pass, null);
}

interface Work {
  readonly type: UploadType;
  /** The last file that has been processed. */
  readonly after: string;
  /** The last version that was saved. Undefined if nothing is known to be stored. */
  readonly version: number | undefined;
  readonly isOver: () => boolean;
  save(file: string): Promise<void>;
}

/** Cleans files in the order in which they were stored, including the files that it writes. Returns false if work is left. */
async function cleanTable(
  parts: EraserParts,
  organisationId: string,
  { type, after, version, isOver, save }: Work,
): Promise<boolean> {
  const schema = lakeSchema(type);
  const folder = `${organisationId}/${schema.name}`;
  const table = await DeltaTable.read(parts.store, folder, schema, parts.parquet);
  if (!table && version === undefined) return true;
  if (!table || table.version < (version ?? 0)) throw new TableLost(type);
  let reached = after;
  for (;;) {
    if (isOver()) return false;
    const next = firstAfter(reached, table.files);
    // After the fence, no process can commit rows that it read before the people were erased.
    const outcome = next ? await cleanFile(parts, organisationId, type, table, next) : await table.fence();
    // If the table was removed, each attempt would end in the same conflict.
    if (outcome === 'conflict' && !(await table.isStored())) throw new TableLost(type);
    if (outcome === 'conflict') continue;
    if (!next) break;
    reached = nameOf(next.path);
    await save(reached);
    // Each rewritten file is a commit, and the next call reads all commits since the last checkpoint.
    await table.checkpoint();
  }
  await saveVersion(parts.pool, organisationId, type, table.version);
  await table.purge();
  return true;
}

function firstAfter(name: string, files: readonly DataFile[]): DataFile | undefined {
  let first: DataFile | undefined;
  for (const file of files)
    if (nameOf(file.path) > name && (!first || nameOf(file.path) < nameOf(first.path))) first = file;
  return first;
}

async function cleanFile(
  { pool, parquet, suppressions }: EraserParts,
  organisationId: string,
  type: UploadType,
  table: DeltaTable,
  file: DataFile,
): Promise<Rewritten> {
  const copy = await table.get(file);
  const rows = new RowsOfPeople(parquet, type, copy);
  try {
    const people = await withClient(pool, async (client) => {
      const check = await suppressions.checkNow(client, organisationId);
      return check.isEmpty ? undefined : rows.people((ids) => check.erasedAmong(ids));
    });
    if (people === undefined) return 'nothing';
    // Keep interactions that are still in the database, where they were anonymised. Remove all of these people's record
    // versions, because the log provides the newest version of each record.
    const staysOf = async (ids: readonly string[]) =>
      type === 'interactions' ? storedAmong(pool, organisationId, ids) : [];
    const written = await rows.rewrite(people, staysOf, file.partition);
    const add = written ? [await table.put(written, file.partition)] : [];
    return await table.commit({ add, remove: [file] });
  } finally {
    await rows.close();
    await rm(copy, { force: true });
  }
}
