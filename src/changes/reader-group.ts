// Two simpler forms, caches of pages by position (178 and 190 lines), were not shown to be as fast. With one stream that caught
// up, the medians of three comparisons were 0.75, 0.96 and 1.00 of the throughput. With eight, rounds of any form differed by up
// to ten times, so the comparison said nothing. Both read one page after the other; here pages without a record in common are
// read at once.

import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { LineBuffer } from '../records/line-buffer.ts';
import { isBefore, isSame, type Position } from './change-cursor.ts';
import { type ChangePage, type ChangesAsked, LogReader } from './read-changes.ts';
import { takePage } from './take-page.ts';

/** A page whose records are being read, or have been. */
interface ReadPage extends Pick<ChangePage, 'from' | 'next' | 'hasMore' | 'count'> {
  /** Who found its ids. */
  readonly log: LogReader;
  readonly begunMs: number;
  /** Resolves, once PostgreSQL has begun to answer the last query, to when that was. Never rejects. */
  readonly answered: Promise<number>;
  readonly lines: Promise<Buffer>;
}

function readPage(asked: ChangesAsked, log: LogReader, page: ChangePage): ReadPage {
  const buffer = new LineBuffer();
  const answered = Promise.withResolvers<number>();
  const begunMs = performance.now();
  const lines = takePage(
    asked,
    page,
    (change) => buffer.add(change),
    () => answered.resolve(performance.now()),
  )
    .then(() => buffer.take())
    .finally(() => answered.resolve(performance.now()));
  // Where it was read ahead, nobody may come for it.
  lines.catch(() => {});
  const { from, next, hasMore, count } = page;
  return { from, next, hasMore, count, log, begunMs, answered: answered.promise, lines };
}

const newLogReader = (pool: Pool, asked: ChangesAsked, from: Position) =>
  new LogReader(pool, asked, from, limits.changeIdsPerLook);

/**
 * Streams of one organisation that ask for the same types. Those at the same position get the same page, which is read once.
 * The fastest goes ahead, and the next page is read while it sends the last. Pages are kept for those that are a little
 * slower; whoever falls further behind reads alone.
 */
class ReaderGroup {
  readonly members = new Set<GroupReader>();
  readonly #pool: Pool;
  readonly #asked: ChangesAsked;
  #log: LogReader;
  #pages: ReadPage[] = [];
  /** The ids of pages that PostgreSQL has not begun to answer. */
  readonly #unanswered = new Map<ReadPage, ReadonlySet<string>>();
  #reading: Promise<ReadPage> | undefined;
  readonly #bytes = new WeakMap<ReadPage, number>();
  /** Until a page has been read, few are begun. */
  #lastBytes = limits.streamedAnswerBytes / 4;

  constructor(pool: Pool, asked: ChangesAsked, from: Position) {
    this.#pool = pool;
    this.#asked = asked;
    this.#log = newLogReader(pool, asked, from);
  }

  readAlone(from: Position): LogReader {
    return newLogReader(this.#pool, this.#asked, from);
  }

  /** Where somebody who reads alone from a position on should stop, to be where the others are. */
  boundaryAfter(position: Position): Position | undefined {
    const [first] = this.#pages;
    if (isBefore(position, first?.from ?? this.#log.next)) return undefined;
    return [...this.#pages.map(({ next }) => next), this.#log.next].find((next) => isBefore(position, next));
  }

  read(log: LogReader, page: ChangePage): ReadPage {
    return readPage(this.#asked, log, page);
  }

  /** The page of the group from a position on; undefined where the group is not there. */
  async pageAt(position: Position): Promise<ReadPage | undefined> {
    const isLeftBehind = [...this.members].every(({ next }) => isBefore(this.#log.next, next));
    if (isLeftBehind && !this.#reading) this.#begin(position);
    const page =
      this.#pages.findLast(({ from }) => isSame(from, position)) ??
      (isSame(this.#log.next, position) ? await this.#readNext() : undefined);
    // After an error the page under way may still be of the position before it.
    if (!page || !isSame(page.from, position)) return undefined;
    void this.#readAhead(page);
    return page;
  }

  /** Each member has reserved as much. */
  get #bytesMax(): number {
    return this.members.size * limits.streamedAnswerBytes;
  }

  #begin(position: Position): void {
    this.#log = newLogReader(this.#pool, this.#asked, position);
    this.#pages = [];
  }

  #readNext(): Promise<ReadPage> {
    this.#reading ??= this.#startNext().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /**
   * Several pages are read at once. One that has a record of another in it is begun when PostgreSQL has begun to answer that
   * one, so it cannot show the record as it was before.
   */
  async #startNext(): Promise<ReadPage> {
    const log = this.#log;
    const from = log.next;
    const page = await log.nextPage(limits.changesPerPageMax).catch((error: unknown) => {
      if (log === this.#log) this.#begin(from);
      throw error;
    });
    const ids = page.ids();
    for (const [{ answered }, others] of this.#unanswered) if (!ids.isDisjointFrom(others)) await answered;
    const read = this.read(log, page);
    this.#unanswered.set(read, ids);
    void read.answered.then(() => this.#unanswered.delete(read));
    if (read.count > 0 && log === this.#log) this.#pages.push(read);
    read.lines.then(
      ({ length }) => {
        this.#bytes.set(read, length);
        this.#lastBytes = length;
      },
      () => {
        if (this.#pages.includes(read)) this.#begin(from);
      },
    );
    return read;
  }

  /** Reads a few pages beyond one, as long as all that are kept are small together. */
  async #readAhead(page: ReadPage): Promise<void> {
    const isMore = () => {
      const ahead = this.#pages.length - 1 - this.#pages.indexOf(page);
      const keptBytes = this.#keptBytes();
      return (
        this.#pages.includes(page) &&
        this.#pages.at(-1)?.hasMore &&
        ahead < limits.changePagesAhead &&
        keptBytes * 2 < this.#bytesMax
      );
    };
    try {
      while (isMore() && (await this.#readNext()).hasMore);
    } catch {
      // Whoever comes for the page reads it again, and gets the error.
    }
  }

  /** A page that is being read counts as much as the last that was. */
  #keptBytes(): number {
    return this.#pages.reduce((sum, page) => sum + (this.#bytes.get(page) ?? this.#lastBytes), 0);
  }

  /** Lets go of pages that nobody is about to get, and of the oldest if they are too large together. */
  prune(): void {
    const isAwaited = ({ from }: ReadPage) => [...this.members].some(({ next }) => isSame(next, from));
    for (let [first] = this.#pages; first; [first] = this.#pages) {
      if (isAwaited(first) && this.#keptBytes() <= this.#bytesMax) return;
      this.#pages.shift();
    }
  }
}

/** What a stream gets. */
export interface LinesRead extends Pick<ChangePage, 'next' | 'hasMore' | 'count'> {
  readonly lines: Buffer;
}

/** One stream. */
export class GroupReader {
  next: Position;
  readonly #group: ReaderGroup;
  readonly #onLeave: () => void;
  /** Who found the last page: the pages of one follow each other without going back. */
  #log: LogReader | undefined;
  /** A page of another that was begun before could show a record as it was before the reader last saw it. */
  #seenMs = performance.now();
  #alone: LogReader | undefined;

  constructor(group: ReaderGroup, from: Position, onLeave: () => void) {
    this.#group = group;
    this.next = from;
    this.#onLeave = onLeave;
    group.members.add(this);
  }

  async read(): Promise<LinesRead> {
    const shared = await this.#group.pageAt(this.next);
    const isNewer = shared && (shared.log === this.#log || shared.begunMs >= this.#seenMs);
    const page = isNewer ? shared : await this.#readAlone();
    const lines = await page.lines;
    const { next, hasMore, count } = page;
    this.#log = page.log;
    this.#seenMs = await page.answered;
    this.next = next;
    this.#group.prune();
    return { next, hasMore, count, lines };
  }

  async #readAlone(): Promise<ReadPage> {
    const log =
      this.#alone && isSame(this.#alone.next, this.next) ? this.#alone : this.#group.readAlone(this.next);
    this.#alone = undefined;
    const page = await log.nextPage(limits.changesPerPageMax, this.#group.boundaryAfter(this.next));
    this.#alone = log;
    return this.#group.read(log, page);
  }

  leave(): void {
    this.#group.members.delete(this);
    this.#group.prune();
    this.#onLeave();
  }
}

/** The groups of a process. */
export class ReaderGroups {
  readonly #groups = new Map<string, ReaderGroup>();

  join(pool: Pool, asked: ChangesAsked, from: Position): GroupReader {
    const name = [asked.organisationId, ...[...asked.types].toSorted()].join(' ');
    const group = this.#groups.get(name) ?? new ReaderGroup(pool, asked, from);
    this.#groups.set(name, group);
    return new GroupReader(group, from, () => {
      if (group.members.size === 0) this.#groups.delete(name);
    });
  }
}
