import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type UploadType, uploadTypes } from '../registry/upload-types.ts';
import {
  formatVersion,
  type Manifest,
  MoveRefused,
  manifestName,
  type Part,
  partPattern,
} from './manifest.ts';

const journalName = 'unfinished-export.ndjson';
const newJournalName = `${journalName}.new`;
const newManifestName = `${manifestName}.new`;
const ourNames = [journalName, newJournalName, newManifestName];

/** An interrupted export needs its header to continue. */
interface ExportHead {
  readonly format_version: typeof formatVersion;
  readonly organisation_id: string;
  readonly created_at: string;
  readonly changes_cursor: string;
  /** Changes whenever someone is erased. */
  readonly suppressions_version: number;
}

/** The part is null if the whole type has been written. */
interface Entry {
  readonly type: UploadType;
  readonly part: Part | null;
  /** The id of the last row in the part. */
  readonly last: string | null;
}

/** An interrupted export continues after the files in its journal. Writing the manifest deletes the journal. */
export class ExportJournal {
  readonly head: ExportHead;
  readonly #folder: string;
  readonly #entries: Entry[];

  private constructor(folder: string, head: ExportHead, entries: Entry[]) {
    this.#folder = folder;
    this.head = head;
    this.#entries = entries;
  }

  static async open(
    folder: string,
    organisationId: string,
    begin: () => Promise<ExportHead>,
  ): Promise<ExportJournal> {
    const names = await namesIn(folder);
    const isOurs = (name: string) => ourNames.includes(name) || partPattern.test(name);
    if (names.length > 0 && !(names.includes(journalName) && names.every(isOurs)))
      throw new MoveRefused(
        `${folder} is not empty; specify a folder that is empty or does not exist` +
          (names.includes(manifestName) ? ': this one has a finished export' : ''),
      );
    const [head, ...entries] = await readEntries(join(folder, journalName));
    const known = head as unknown as ExportHead | undefined;
    if (known && (known.organisation_id !== organisationId || known.format_version !== formatVersion))
      throw new MoveRefused(
        `${folder} has the unfinished export of another organisation or version; specify an empty folder`,
      );
    const finished = new Set(entries.flatMap(({ part }) => part?.file ?? []));
    for (const name of names) if (name !== journalName && !finished.has(name)) await rm(join(folder, name));
    const journal = new ExportJournal(folder, known ?? (await begin()), entries);
    // The journal is rewritten, because its last line may be incomplete.
    const text = [journal.head, ...entries].map((line) => `${JSON.stringify(line)}\n`).join('');
    await writeFlushed(join(folder, newJournalName), text, 'w');
    await rename(join(folder, newJournalName), join(folder, journalName));
    return journal;
  }

  get isContinued(): boolean {
    return this.#entries.length > 0;
  }

  get parts(): Part[] {
    const inOrder = (type: UploadType) =>
      this.#entries.flatMap((one) => (one.type === type && one.part) || []);
    return uploadTypes.flatMap(inOrder);
  }

  isDone(type: UploadType): boolean {
    return this.#entries.some((one) => one.type === type && one.part === null);
  }

  reached(type: UploadType): { readonly files: number; readonly last: string | undefined } {
    const written = this.#entries.filter((one) => one.type === type && one.part !== null);
    return { files: written.length, last: written.at(-1)?.last ?? undefined };
  }

  async add(entry: Entry): Promise<void> {
    await writeFlushed(join(this.#folder, journalName), `${JSON.stringify(entry)}\n`, 'a');
    this.#entries.push(entry);
  }

  async finish(manifest: Manifest): Promise<void> {
    const path = join(this.#folder, newManifestName);
    await writeFlushed(path, `${JSON.stringify(manifest, null, 2)}\n`, 'w');
    await rename(path, join(this.#folder, manifestName));
    await rm(join(this.#folder, journalName));
    await using folder = await open(this.#folder);
    await folder.sync();
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await readdir(folder);
  } catch (error) {
    throw new MoveRefused(
      `${folder} cannot be used (${(error as NodeJS.ErrnoException).code}); specify another folder`,
    );
  }
}

async function readEntries(path: string): Promise<Entry[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}

async function writeFlushed(path: string, text: string, flags: 'a' | 'w'): Promise<void> {
  await using file = await open(path, flags, 0o600);
  await file.writeFile(text);
  await file.sync();
}
