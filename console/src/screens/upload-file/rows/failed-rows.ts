import type { Row, RowProblem } from './row-checker.ts';

/** The maximum number of failed rows that are kept so that they can be corrected or saved. Any others are only counted. */
export const rowsKeptMax = 10_000;
/** The maximum number of distinct reasons that are counted. */
const groupsMax = 500;

/** Failed rows with the same column and reason. */
export interface Group extends RowProblem {
  readonly key: string;
  count: number;
  readonly firstLine: number;
}

/** The failed rows as plain data, which a worker can send to the page. */
export interface FailedSnapshot {
  readonly rows: readonly Row[];
  readonly groups: readonly Group[];
  readonly count: number;
}

/** The failed rows from one pass over the file. Memory use is bounded, no matter how many rows fail. */
export class FailedRows {
  readonly #kept = new Map<number, Row>();
  readonly #groups = new Map<string, Group>();
  #count = 0;

  /** Creates an instance from these rows and the number of other rows, which are only counted. */
  static of(rows: readonly Row[], notKept: number): FailedRows {
    const failed = new FailedRows();
    for (const row of rows) failed.add(row);
    failed.#count += notKept;
    return failed;
  }

  static from({ rows, groups, count }: FailedSnapshot): FailedRows {
    const failed = new FailedRows();
    for (const row of rows) failed.#kept.set(row.line, row);
    for (const group of groups) failed.#groups.set(group.key, group);
    failed.#count = count;
    return failed;
  }

  snapshot(): FailedSnapshot {
    return { rows: this.rows(), groups: this.groups(), count: this.#count };
  }

  /** The number of failed rows, including rows that are not kept. */
  get count(): number {
    return this.#count;
  }

  get keptCount(): number {
    return this.#kept.size;
  }

  get isComplete(): boolean {
    return this.#count === this.#kept.size;
  }

  add(row: Row): void {
    if (this.#kept.size < rowsKeptMax || this.#kept.has(row.line)) this.#kept.set(row.line, copyOf(row));
    this.#count++;
    for (const problem of row.problems) {
      const key = keyOf(problem);
      const known = this.#groups.get(key);
      if (known) known.count++;
      else if (this.#groups.size < groupsMax)
        this.#groups.set(key, { ...problem, key, count: 1, firstLine: row.line });
    }
  }

  get(line: number): Row | undefined {
    return this.#kept.get(line);
  }

  /** Replaces a corrected row, whether or not it is now valid. */
  correct(row: Row): void {
    if (!this.#kept.has(row.line)) return;
    this.#kept.set(row.line, row);
  }

  /** Returns the kept rows in file order. */
  rows(): Row[] {
    return [...this.#kept.values()].sort((one, other) => one.line - other.line);
  }

  /** Returns the corrected rows that are now valid. */
  corrected(): Row[] {
    return this.rows().filter(({ problems }) => problems.length === 0);
  }

  /** Returns the groups, largest first. */
  groups(): Group[] {
    return [...this.#groups.values()].sort((one, other) => other.count - one.count);
  }
}

/**
 * Copies the cells. A cell is a slice of the text from which it was cut, so a single cell would keep 64 KiB of the file in
 * memory.
 */
function copyOf(row: Row): Row {
  return JSON.parse(JSON.stringify(row));
}

export function keyOf({ column, code, message }: RowProblem): string {
  return `${column}\n${code}\n${message}`;
}
