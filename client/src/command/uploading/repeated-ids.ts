import { resources, type UploadType } from '../../generated/resources.ts';
import { IdSet } from '../../uploading/id-set.ts';
import { grouped, warn } from '../terminal/terminal.ts';

/** The maximum number of ids compared per type. This many ids take 150 MB of memory. */
const idsMax = 4_000_000;

interface Seen {
  readonly ids: IdSet;
  count: number;
  /**
   * The files read so far. Lines are numbered across all files, and `linesBefore` is the number of lines in the earlier
   * files.
   */
  readonly files: { readonly path: string; readonly linesBefore: number }[];
  lastLine: number;
}

/**
 * Finds ids that several records share. The service would keep only the last of these records, and a repeated id often means
 * that the wrong column is used as the id.
 */
export class RepeatedIds {
  readonly #seen = new Map<UploadType, Seen>();

  /** Returns where an earlier record has the same id, or undefined if the id is new. Lines must be passed in order. */
  find(path: string, type: UploadType, line: number, record: Record<string, unknown>): string | undefined {
    const id = record[resources[type].idField];
    if (typeof id !== 'string' || type === 'interactions') return undefined;
    const seen = this.#seenOf(type);
    if (seen.files.at(-1)?.path !== path) seen.files.push({ path, linesBefore: seen.lastLine });
    const file = seen.files.at(-1) as Seen['files'][number];
    seen.lastLine = file.linesBefore + line;
    const earlier = seen.ids.batchOf(id);
    if (earlier !== undefined) return placeOf(seen, earlier, path);
    if (seen.count === idsMax) return undefined;
    seen.ids.add(id, seen.lastLine);
    if (++seen.count === idsMax)
      warn(`Only the first ${grouped(idsMax)} ids of ${type} are compared to find repeated ones.`);
    return undefined;
  }

  #seenOf(type: UploadType): Seen {
    const seen = this.#seen.get(type) ?? { ids: new IdSet(), count: 0, files: [], lastLine: 0 };
    this.#seen.set(type, seen);
    return seen;
  }
}

function placeOf({ files }: Seen, lineOfAll: number, path: string): string {
  const file = files.findLast(({ linesBefore }) => linesBefore < lineOfAll) as Seen['files'][number];
  const line = lineOfAll - file.linesBefore;
  return file.path === path ? `line ${line}` : `${file.path}:${line}`;
}
