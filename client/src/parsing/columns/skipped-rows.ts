import { PlacedError } from '../file-error.ts';
import { type ColumnPlan, convertRow } from './plan-columns.ts';

/** A row above the header or below the last record that is not read, because the mapping file says so. */
export interface SkippedRow {
  readonly line: number;
  /** The row's first cells. */
  readonly text: string;
}

const cellsShown = 4;
const charactersShown = 80;

/** Collects the rows that a file's reader skips. They are shown, so that nobody takes a record for a line of totals. */
export class SkippedRows {
  readonly #rows: SkippedRow[] = [];

  add(line: number, cells: readonly string[]): void {
    const filled = cells.map((cell) => cell.trim()).filter((cell) => cell !== '');
    const text = filled.slice(0, cellsShown).join(', ').slice(0, charactersShown);
    if (text !== '') this.#rows.push({ line, text });
  }

  list(): readonly SkippedRow[] {
    return this.#rows;
  }
}

/** Matches the first cell of a line of totals, which is not the key of a record. */
const totals =
  /^((grand )?(sub)?total(s|e|es)?|totaux|(zwischen|gesamt|end)?summen?|(ins)?gesamt|sum|somme|suma)[^\p{L}]*$/iu;

/**
 * Throws if a row below the last record is itself a complete record, because the file has no totals this time. Nobody looks at
 * what a nightly job leaves out, and a record that is sent although it is a total could not be taken back.
 */
export function refuseRecord(plan: ColumnPlan, cells: readonly string[], place: string): void {
  const first = cells.map((cell) => cell.trim()).find((cell) => cell !== '');
  if (first === undefined || totals.test(first) || plan.columns.length === 0) return;
  const { record, problems } = convertRow(plan, cells);
  if (problems !== undefined || plan.otherProblems(record, []).others.length > 0) return;
  throw new PlacedError(
    `${place} is a complete record, but "skip_bottom" in the mapping file leaves it out; if the file has no line of totals this time, add the line "Total" at its end`,
  );
}
