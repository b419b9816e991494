import { reasonColumn } from '../columns/plan-columns.ts';

/** Returns the reason why a record failed, for the last column or property in a file of failed records. */
export function reasonOf(
  problems: readonly { readonly column: string | null; readonly message: string }[],
): string {
  return problems
    .map(({ column, message }) => (column === null ? message : `${column}: ${message}`))
    .join('; ');
}

/** Builds the lines of a CSV file with failed records. Each line has the original columns, then the reason. */
export class FailedCsv {
  readonly #header: readonly string[];
  readonly #separator: string;
  readonly #reasonAt: number;

  constructor(header: readonly string[], separator = ',') {
    this.#header = header;
    this.#separator = separator;
    this.#reasonAt = header.indexOf(reasonColumn);
  }

  headerLine(): string {
    return this.line(this.#header, reasonColumn);
  }

  line(cells: readonly string[], reason: string): string {
    const quoted = [...this.#without(cells), reason].map((cell) =>
      cell.includes(this.#separator) || /["\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell,
    );
    return `${quoted.join(this.#separator)}\n`;
  }

  /** Removes the reason that a row already has if it comes from a file of failed records. */
  #without(cells: readonly string[]): readonly string[] {
    // A row may end with empty cells that have no column.
    const padded = Array.from({ length: this.#header.length }, (_, at) => cells[at] ?? '');
    padded.push(...cells.slice(this.#header.length).filter((cell) => cell !== ''));
    return this.#reasonAt < 0 ? padded : padded.toSpliced(this.#reasonAt, 1);
  }
}
