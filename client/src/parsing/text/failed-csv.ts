import { reasonColumn } from '../columns/plan-columns.ts';

/** Why a record failed, as the last column or member of a file of failed records. */
export function reasonOf(
  problems: readonly { readonly column: string | null; readonly message: string }[],
): string {
  return problems
    .map(({ column, message }) => (column === null ? message : `${column}: ${message}`))
    .join('; ');
}

/** The lines of a CSV of failed records: the columns of the file they came from, and the reason as the last. */
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

  /** A file of failed records that failed again already has a reason. */
  #without(cells: readonly string[]): readonly string[] {
    // A row may end in empty cells without a column.
    const padded = Array.from({ length: this.#header.length }, (_, at) => cells[at] ?? '');
    padded.push(...cells.slice(this.#header.length).filter((cell) => cell !== ''));
    return this.#reasonAt < 0 ? padded : padded.toSpliced(this.#reasonAt, 1);
  }
}
