import type { Connection } from '../connection.ts';
import { type ErrorCode, IntakeError, isObject, unexpected } from '../errors.ts';
import { limits } from '../limits.ts';
import { listIn } from '../reading/read-pages.ts';
import { wait } from '../wait.ts';
import { type Disk, openDisk } from './disk.ts';
import { download } from './download.ts';
import { lockFolder } from './folder-lock.ts';
import { logOf, refuseForeignLog, writeLog } from './local-log.ts';
import type { PulledTable, PullOptions, PullProgress } from './pull-options.ts';
import {
  fileIdForm,
  listTable,
  partitionFolder,
  type RemoteFile,
  type RemoteTable,
  tableName,
} from './table-list.ts';

interface Pull {
  readonly connection: Connection;
  readonly disk: Disk;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: (progress: PullProgress) => void;
}

interface ListedTable {
  readonly table: string;
  readonly version: number | null;
  readonly state: unknown;
  readonly as_of: string | null;
}

/**
 * Copies the tables to a folder, one after another. For each table, the files are downloaded first, and then the log that
 * lists them is renamed into place. No matter when a pull is interrupted, each table is complete, in either its previous or
 * its new state. While the lake is incomplete, nothing is replaced.
 */
export async function pullLake(
  connection: Connection,
  folder: string,
  { onProgress = () => {}, signal }: PullOptions = {},
): Promise<PulledTable[]> {
  const disk = openDisk();
  const pull = { connection, disk, signal, onProgress };
  const tables = await completeTables(connection, signal);
  await disk.mkdir(folder, { recursive: true, mode: 0o700 });
  const unlock = await lockFolder(disk, folder);
  try {
    const remotes: (RemoteTable & Pick<PulledTable, 'as_of'>)[] = [];
    for (const { table, version, as_of } of tables) {
      if (version !== null) remotes.push({ ...(await listPatiently(pull, table)), as_of });
      // A table of a new record type does not exist until it has rows.
      else if ((await disk.namesIn(`${folder}/${table}/_delta_log`)).length > 0)
        throw incomplete(`The lake no longer has the table ${table}.`, 'Ask the operator.');
    }
    // The lake may have been emptied while its files were listed.
    await completeTables(connection, signal);
    const pulled: PulledTable[] = [];
    for (const { as_of, ...remote } of remotes)
      pulled.push({ ...(await pullTable(pull, folder, remote)), as_of });
    return pulled;
  } finally {
    await unlock();
  }
}

/** Returns the lake's tables. Throws unless they contain all of the organisation's data. */
async function completeTables(
  connection: Connection,
  signal: AbortSignal | undefined,
): Promise<ListedTable[]> {
  const answer = await connection.request<{ notice?: unknown }>({ path: '/v1/lake', signal });
  const { notice } = answer;
  if (isObject(notice)) throw new IntakeError(String(notice.code) as ErrorCode, String(notice.message));
  const tables = listIn<ListedTable & Record<string, unknown>>(answer, 'tables').map((listed) => {
    const { table, version, state, as_of } = listed;
    const isTime = as_of === null || typeof as_of === 'string';
    if (typeof table !== 'string' || !tableName.test(table) || !isTime)
      throw unexpected('The list of tables has an unexpected form');
    return { table, version, state, as_of };
  });
  if (tables.some(({ state }) => state !== 'following'))
    throw incomplete('The lake is being copied from the database and is incomplete.', 'Pull again later.');
  if (tables.every(({ version }) => version === null))
    throw incomplete('The lake is empty.', 'Ask the operator.');
  return tables;
}

function incomplete(what: string, advice: string): IntakeError {
  return new IntakeError('lake_incomplete', `${what} Your copy was not changed. ${advice}`);
}

const vanished = new Set<unknown>(['lake_file_not_found', 'lake_version_gone']);
const hasVanished = (error: unknown) => error instanceof IntakeError && vanished.has(error.code);
const waitBefore = (restart: number, signal: AbortSignal | undefined) =>
  wait(Math.min(limits.backoffMaxMs, 1_000 * 2 ** restart), signal);

/** Lists a table's files. If its version is gone before the list is complete, the newest one is listed. */
async function listPatiently({ connection, signal }: Pull, table: string): Promise<RemoteTable> {
  for (let restart = 1; ; restart++) {
    try {
      return await listTable(connection, table, signal);
    } catch (error) {
      if (!hasVanished(error) || restart > limits.pullRestartsMax) throw error;
    }
    await waitBefore(restart, signal);
  }
}

/**
 * Copies one table. If a file is gone, the copy restarts from the newest version. Files disappear because the service merges
 * them and erases people from them.
 */
async function pullTable(
  pull: Pull,
  folder: string,
  listed: RemoteTable,
): Promise<Omit<PulledTable, 'as_of'>> {
  const { table } = listed;
  const place = `${folder}/${table}`;
  const { disk } = pull;
  for (const one of [place, `${place}/_delta_log`, partsIn(place)]) await disk.ownFolder(one);
  await refuseForeignLog(disk, place);
  let remote: RemoteTable | undefined = listed;
  let filesDownloaded = 0;
  for (let restarts = 0; ; remote = undefined) {
    const before = filesDownloaded;
    try {
      remote ??= await listAgain(pull, table);
      await fetchMissing(pull, place, remote, () => void filesDownloaded++);
      await writeLog(disk, place, `${partsIn(place)}/log`, logOf(remote));
      const filesRemoved = await removeOthers(disk, place, remote.files);
      return { ...summaryOf(remote), filesDownloaded, filesRemoved };
    } catch (error) {
      if (!hasVanished(error)) throw error;
    }
    restarts = filesDownloaded > before ? 0 : restarts + 1;
    if (restarts > limits.pullRestartsMax) throw new IntakeError('lake_file_not_found', changesTooFast);
    await waitBefore(restarts, pull.signal);
  }
}

async function listAgain({ connection, signal }: Pull, table: string): Promise<RemoteTable> {
  const remote = await listTable(connection, table, signal);
  await completeTables(connection, signal);
  return remote;
}

const changesTooFast =
  'The files of the lake change faster than they can be downloaded. Start the pull again later; it continues.';

function summaryOf({ table, version, files }: RemoteTable) {
  const sum = (of: 'rows' | 'bytes') => files.reduce((all, file) => all + file[of], 0);
  return { table, version, rows: sum('rows'), bytes: sum('bytes'), files: files.length };
}

function partsIn(place: string): string {
  return `${place}/_pull`;
}

async function fetchMissing(
  { connection, disk, signal, onProgress }: Pull,
  place: string,
  { table, files }: RemoteTable,
  onFile: () => void,
): Promise<void> {
  const missing: RemoteFile[] = [];
  // A file gets its final name only when it is complete.
  for (const file of files)
    if ((await disk.sizeOf(`${place}/${file.path}`)) !== file.bytes) missing.push(file);
  const progress = {
    table,
    files: missing.length,
    filesDone: 0,
    bytes: missing.reduce((sum, { bytes }) => sum + bytes, 0),
    bytesDone: 0,
    rowsDone: 0,
  };
  const failed = new AbortController();
  const either = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  const waiting = missing.values();
  const work = async () => {
    for (const file of waiting) {
      const part = `${partsIn(place)}/${file.fileId}`;
      const onBytes = (bytes: number) => {
        progress.bytesDone += bytes;
        onProgress({ ...progress });
      };
      await download({ connection, disk, table, file, part, signal: either, onBytes });
      const [folder = '', inFolder] = file.path.split('/');
      if (inFolder !== undefined) await disk.ownFolder(`${place}/${folder}`);
      await disk.rename(part, `${place}/${file.path}`);
      progress.filesDone++;
      progress.rowsDone += file.rows;
      onFile();
      onProgress({ ...progress });
    }
  };
  const workers = Array.from({ length: limits.filesInFlightMax }, () =>
    work().catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  // Wait for all workers, so that the next attempt does not write to a file that is still being written.
  await Promise.allSettled(workers);
  await Promise.all(workers).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw failed.signal.aborted ? failed.signal.reason : error;
  });
}

/**
 * Removes files that earlier pulls left behind and that are not part of the table. Files that pulls do not write are never
 * removed.
 */
async function removeOthers(disk: Disk, place: string, files: readonly RemoteFile[]): Promise<number> {
  const kept = new Set(files.map(({ path }) => path));
  let removed = 0;
  const removeFrom = async (folder: string) => {
    for (const name of await disk.namesIn(place + folder)) {
      const path = `${folder}/${name}`.slice(1);
      const isOurs = name.endsWith('.parquet') && fileIdForm.test(name.slice(0, -'.parquet'.length));
      if (!isOurs || kept.has(path)) continue;
      await disk.rm(`${place}/${path}`, { force: true });
      removed++;
    }
  };
  await removeFrom('');
  for (const folder of await disk.namesIn(place)) {
    if (!partitionFolder.test(folder)) continue;
    await removeFrom(`/${folder}`);
    if ((await disk.namesIn(`${place}/${folder}`)).length === 0)
      await disk.rmdir(`${place}/${folder}`).catch(() => {});
  }
  await disk.rm(partsIn(place), { force: true, recursive: true });
  return removed;
}
