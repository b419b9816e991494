import { resources, type UploadType } from '../../generated/resources.ts';
import { IdSet } from '../../uploading/id-set.ts';
import { grouped, warn } from '../terminal/terminal.ts';

/** The most ids of a type that are compared: they take 150 MB of memory. */
const idsMax = 4_000_000;

interface Seen {
  readonly ids: IdSet;
  count: number;
  /** The files so far. The lines of all are counted through, and a file begins after `linesBefore` of them. */
  readonly files: { readonly path: string; readonly linesBefore: number }[];
  lastLine: number;
}

/**
 * Finds ids that several records have. Only the last of them would stay, which often means that the wrong column is the
 * id.
 */
export class RepeatedIds {
  readonly #seen = new Map<UploadType, Seen>();

  /** Where a record with this id came before; undefined if there was none. Lines must come in order. */
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
