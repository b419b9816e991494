import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { realPathOf } from '../../files/find-files.ts';
import { watchFile } from '../../files/reading/watch-file.ts';
import type { UploadType } from '../../generated/resources.ts';
import { FileError, withPath } from '../../parsing/file-error.ts';
import { type FileInRun, fileInRun, runFilesMax } from '../../uploading/run-of-files.ts';
import { clientVersion } from '../client-version.ts';
import { UsageError } from '../options/command.ts';
import { filesFrom, reported } from './earlier-run.ts';
import { type Circumstances, type Earlier, type NotedRun, readJournal } from './journal.ts';

/** A file of an upload. Standard input and the files of a dry run have no journal, and therefore no run. */
export interface UploadedFile {
  readonly path: string;
  readonly type: UploadType;
  /** Undefined if the file is uploaded without a journal. */
  readonly circumstances: Circumstances | undefined;
  /** What an earlier upload of the file has left, if it is resumed. */
  readonly earlier: Earlier | undefined;
}

/** A file whose content is known. */
interface Hashed {
  readonly inRun: FileInRun;
  /** Throws if the file is not what was hashed. */
  refuseChanged(): Promise<void>;
}

export interface WithRun {
  /** Throws if the file has changed since its run was noted. Must be called once the file is open. */
  refuseChanged?(): Promise<void>;
}

export interface RunNames {
  /** The name that the user gives. */
  readonly given: string | undefined;
  readonly default: string;
}

/**
 * Adds a run to the circumstances of each file. The files of an earlier upload keep its run if they are still the same, because
 * a run lists exactly the files that are uploaded. Without `given`, the run of an earlier upload keeps its name.
 */
export async function withRuns<F extends UploadedFile>(
  files: readonly F[],
  names: RunNames,
  signal: AbortSignal,
): Promise<(F & WithRun)[]> {
  const name = names.given ?? names.default;
  const hashed = new Map<string, Hashed>();
  const found = new Map<string, NotedRun>();
  for (const one of files) {
    const { path, type, circumstances, earlier } = one;
    if (!circumstances) continue;
    const run = earlier ? earlier.run : await runOfUntouched(path, name, files);
    if (run && names.given !== undefined && names.given !== run.opening.name)
      throw new UsageError(
        `The upload of ${path} began with the name ${run.opening.name}. Leave out --name, or give the same one.`,
      );
    if (run) found.set(path, run);
    if (isUnfinished(one)) hashed.set(path, await hashFile(path, type, signal));
  }
  const noted = unchangedRuns(found, hashed);
  const others = files.filter(({ path }) => hashed.has(path) && !noted.has(path));
  const earlierName = [...found.values()][0]?.opening.name;
  const added = newRuns(
    others,
    names.given ?? earlierName ?? name,
    ({ path }) => (hashed.get(path) as Hashed).inRun,
  );
  return files.map((one) => {
    const { path, circumstances } = one;
    const refuseChanged = hashed.get(path)?.refuseChanged;
    return {
      ...one,
      circumstances: circumstances && { ...circumstances, run: added.get(path) ?? noted.get(path) },
      ...(refuseChanged && { refuseChanged }),
    };
  });
}

/**
 * Returns the runs whose unfinished files are all unchanged. They also have the files whose own journals were never written or
 * are already removed.
 */
function unchangedRuns(
  found: ReadonlyMap<string, NotedRun>,
  hashed: ReadonlyMap<string, Hashed>,
): Map<string, NotedRun> {
  const noted = new Map(found);
  for (const [path, run] of found)
    for (const other of hashed.keys()) {
      const file = noted.has(other) ? -1 : membersOf(path, run).indexOf(realPathOf(other));
      if (file >= 0) noted.set(other, { ...run, file, paths: filesFrom(other, membersOf(path, run)) });
    }
  const changed = new Set<string>();
  for (const [path, { inRun }] of hashed) {
    const run = noted.get(path);
    if (run && JSON.stringify(run.opening.files[run.file]) !== JSON.stringify(inRun)) changed.add(run.key);
  }
  return new Map([...noted].filter(([path, { key }]) => !hashed.has(path) || !changed.has(key)));
}

/** Returns the paths of the run's files. `path` is the file in whose journal the run is. */
export function membersOf(path: string, { paths }: NotedRun): string[] {
  const folder = dirname(realPathOf(path));
  return paths.map((one) => resolve(folder, one));
}

/** Returns whether something of the file is still to be uploaded. */
export function isUnfinished({ circumstances, earlier }: UploadedFile): boolean {
  if (!circumstances) return false;
  return earlier === undefined || (earlier !== reported && earlier.state?.end !== 'finished');
}

/**
 * Returns the run of an upload that was interrupted before anything of its files was answered. A new upload of the same files
 * continues that run, which still claims them.
 */
async function runOfUntouched(
  path: string,
  name: string,
  files: readonly UploadedFile[],
): Promise<NotedRun | undefined> {
  const run = await untouchedRun(path);
  if (!run || run.opening.name !== name) return undefined;
  const uploaded = new Set(files.map((one) => realPathOf(one.path)));
  for (const member of membersOf(path, run))
    if (!uploaded.has(member) || (await untouchedRun(member))?.key !== run.key) return undefined;
  return run;
}

async function untouchedRun(path: string): Promise<NotedRun | undefined> {
  const { head, state, sent } = await readJournal(path);
  return state === undefined && sent.length === 0 ? head?.run : undefined;
}

/** Returns a new run for each file, in as few runs as possible. */
export function newRuns<F extends UploadedFile>(
  files: readonly F[],
  name: string,
  describe: (file: F) => FileInRun,
): Map<string, NotedRun> {
  const runs = new Map<string, NotedRun>();
  const described = files.map((one) => ({ path: one.path, inRun: describe(one) }));
  refuseRepeated(described);
  for (let from = 0; from < described.length; from += runFilesMax) {
    const members = described.slice(from, from + runFilesMax);
    const key = crypto.randomUUID();
    const opening = { name, client_version: clientVersion(), files: members.map(({ inRun }) => inRun) };
    const paths = members.map(({ path }) => path);
    for (const [file, { path }] of members.entries())
      runs.set(path, { key, opening, file, paths: filesFrom(path, paths) });
  }
  return runs;
}

function refuseRepeated(files: readonly { readonly path: string; readonly inRun: FileInRun }[]): void {
  const seen = new Map<string, string>();
  for (const { path, inRun } of files) {
    if (inRun.type !== 'interactions') continue;
    const same = seen.get(inRun.sha256);
    if (same !== undefined)
      throw new UsageError(
        `${same} and ${path} are the same file of interactions, so each of them would be stored twice. Upload one of them.`,
      );
    seen.set(inRun.sha256, path);
  }
}

async function hashFile(path: string, type: UploadType, signal: AbortSignal): Promise<Hashed> {
  try {
    const unchanged = await watchFile(path);
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(path, { signal })) hash.update(chunk);
    await unchanged.check(true);
    return {
      inRun: fileInRun(path, unchanged.bytes, hash.digest('hex'), type),
      async refuseChanged() {
        await unchanged.check(true).catch((error) => {
          throw withPath(path, error);
        });
      },
    };
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    throw syscall === undefined
      ? withPath(path, error)
      : withPath(path, new FileError(`it cannot be read (${code}); check that you may read it`));
  }
}
