import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LineBuffer } from '../records/line-buffer.ts';
import type { ResourceType } from '../registry/resources.ts';
import { msOfUuidV7 } from '../registry/uuid-v7.ts';
import { lakeLimits } from './limits.ts';

/** One day's interactions, stored in a file with one JSON object per line. */
export interface SpooledDay {
  readonly day: string;
  readonly file: string;
  /** The time range of the rows that may already be in the table, or null if all rows are new. */
  doubtful: { fromMs: number; toMs: number } | null;
}

interface OpenFile {
  readonly file: string;
  readonly lines: LineBuffer;
  bufferedCharacters: number;
}

interface OpenDay extends SpooledDay, OpenFile {}

/** Buffers a step's rows in temporary files, because they may not fit into memory. */
export class Spool {
  /** Of interactions only. */
  readonly ids: string[] = [];
  rows = 0;
  bytes = 0;
  readonly folder: string;
  readonly #rowsMax: number;
  readonly #days = new Map<string, OpenDay>();
  readonly #types = new Map<ResourceType, OpenFile>();

  private constructor(folder: string, rowsMax: number) {
    this.folder = folder;
    this.#rowsMax = rowsMax;
  }

  /** Only this user can read the folder. */
  static async open(parent: string, rowsMax: number): Promise<Spool> {
    return new Spool(await mkdtemp(join(parent, 'step-')), rowsMax);
  }

  add(id: string, line: string, isNew: boolean): void {
    const ms = msOfUuidV7(id);
    const spooled = this.#dayOf(ms);
    this.#addLine(spooled, line);
    this.ids.push(id);
    if (isNew) return;
    const { fromMs, toMs } = spooled.doubtful ?? { fromMs: ms, toMs: ms };
    spooled.doubtful = { fromMs: Math.min(fromMs, ms), toMs: Math.max(toMs, ms) };
  }

  addVersion(type: ResourceType, line: string): void {
    let spooled = this.#types.get(type);
    if (!spooled) {
      spooled = { file: join(this.folder, `${type}.ndjson`), lines: new LineBuffer(), bufferedCharacters: 0 };
      this.#types.set(type, spooled);
    }
    this.#addLine(spooled, line);
  }

  get isFull(): boolean {
    return this.rows >= this.#rowsMax || this.bytes >= lakeLimits.bytesPerStep;
  }

  /** Must be called after each read from the database. */
  async drain(): Promise<void> {
    for (const open of [...this.#days.values(), ...this.#types.values()])
      if (open.bufferedCharacters >= lakeLimits.spoolBytesPerWrite) await writeOut(open);
  }

  async finish(): Promise<readonly SpooledDay[]> {
    for (const day of this.#days.values()) await writeOut(day);
    return [...this.#days.values()];
  }

  get types(): readonly ResourceType[] {
    return [...this.#types.keys()];
  }

  async finishVersions(type: ResourceType): Promise<string | undefined> {
    const spooled = this.#types.get(type);
    if (spooled) await writeOut(spooled);
    return spooled?.file;
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  #addLine(to: OpenFile, line: string): void {
    to.lines.add(line);
    to.bufferedCharacters += line.length;
    this.rows++;
    this.bytes += line.length;
  }

  #dayOf(ms: number): OpenDay {
    const day = new Date(ms).toISOString().slice(0, 10);
    const found = this.#days.get(day);
    if (found) return found;
    const file = join(this.folder, `${day}.ndjson`);
    const begun = { day, file, doubtful: null, lines: new LineBuffer(), bufferedCharacters: 0 };
    this.#days.set(day, begun);
    return begun;
  }
}

async function writeOut(open: OpenFile): Promise<void> {
  if (open.bufferedCharacters === 0) return;
  open.bufferedCharacters = 0;
  await appendFile(open.file, open.lines.take(), { mode: 0o600 });
}
