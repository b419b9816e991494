import type { UploadType } from '../../../../../client/src/generated/resources.ts';
import { schemas } from '../../../../../client/src/generated/schemas.ts';
import { convertRow, planColumns } from '../../../../../client/src/parsing/columns/plan-columns.ts';
import type { FileFormat } from '../../../../../client/src/parsing/file-name.ts';
import type { FileFailure, FileRecord } from '../../../../../client/src/parsing/opened-file.ts';
import { CsvParser } from '../../../../../client/src/parsing/text/csv-parser.ts';
import { checkerOf } from '../../../../../client/src/parsing/values/check-record.ts';
import { type DescribedFile, placeName, type Settings, textOf } from './describe-file.ts';
import { inScreenWords } from './screen-words.ts';

export interface RowProblem {
  /** The column of the file; null if the row as a whole is wrong. */
  readonly column: string | null;
  readonly code: string;
  readonly message: string;
}

/** A row of the file: a record that can be sent, or what is wrong with it. */
export interface Row {
  readonly line: number;
  /** By column. Undefined if it is unknown which cell belongs to which column; `text` is the line then. */
  readonly cells: readonly string[] | undefined;
  readonly text?: string | undefined;
  readonly record: Readonly<Record<string, unknown>> | undefined;
  readonly problems: readonly RowProblem[];
}

/** Checks rows as the command does, those of the file and those that were corrected on the screen. */
export class RowChecker {
  readonly type: UploadType;
  /** The columns that can be corrected: those of a CSV, or the fields of a record from another format. */
  readonly header: readonly string[];
  readonly separator: string;
  /** What the number of a row counts. */
  readonly place: ReturnType<typeof placeName>;
  readonly #format: FileFormat;
  readonly #map: Settings['map'];
  readonly #plan: ReturnType<typeof planColumns>;
  readonly #check: ReturnType<typeof checkerOf>;
  readonly #columns: ReadonlyMap<string, string>;

  constructor({ format, header, separator }: DescribedFile, settings: Settings) {
    const { type, dateFormat } = settings;
    this.type = type;
    this.#format = format;
    this.place = placeName(format);
    this.#map = settings.map;
    this.header = format === 'csv' ? header : Object.keys(schemas[type].properties);
    this.separator = separator ?? ',';
    this.#plan = planColumns(type, this.header, format === 'csv' ? settings : { dateFormat });
    this.#check = checkerOf(type);
    const { columns, key } = this.#plan;
    this.#columns = new Map(columns.map(({ field, column }) => [field, column]));
    if (key) this.#columns = new Map([...this.#columns, [key.field, key.names[0] as string]]);
  }

  /** The column that a field is read from. */
  columnOf(field: string | null): string | null {
    return field === null ? null : (this.#columns.get(field) ?? field);
  }

  /** The columns that are sent, in the order of the file. */
  sentColumns(): readonly string[] {
    const sent = new Set(this.#columns.values());
    return this.header.filter((column) => sent.has(column) || this.#plan.key?.names.includes(column));
  }

  /** A record that was read; checks what the service checks of a record alone. */
  ofRecord({ line, cells, record }: FileRecord): Row {
    const problems = this.#check(record).map(({ field, code, message }) =>
      this.#problem(field, code, message),
    );
    return { line, cells: cells ?? this.#cellsOf(record), record, problems };
  }

  /** A row that could not be read or converted. */
  ofFailure({ line, cells, record, problems }: FileFailure): Row {
    const worded = problems.map(({ column, code, message }) => ({
      column: this.#format === 'csv' ? column : this.columnOf(this.#map[column ?? ''] ?? column),
      code,
      message: inScreenWords(message),
    }));
    const isObject = typeof record === 'object' && record !== null;
    const isMalformed = problems.some(({ code }) => code === 'malformed_row');
    if (!isMalformed && cells !== undefined) return { line, cells, record: undefined, problems: worded };
    const found = isObject ? this.#cellsOf(record as Record<string, unknown>) : undefined;
    return {
      line,
      cells: found,
      text: isObject ? undefined : textOf(record),
      record: undefined,
      problems: worded,
    };
  }

  /** A row whose cells were corrected. */
  ofCells(line: number, cells: readonly string[]): Row {
    const converted = convertRow(this.#plan, cells);
    if (converted.problems === undefined) return this.ofRecord({ line, cells, record: converted.record });
    const problems = converted.problems.map(({ column, field, code, message }) => ({
      // A key of several columns is reported by all of their names.
      column: column !== null && this.header.includes(column) ? column : this.columnOf(field),
      code,
      message: inScreenWords(message),
    }));
    return { line, cells, record: undefined, problems };
  }

  /** A malformed line, corrected as text because it has no cells. */
  ofText(line: number, text: string): Row {
    if (this.#format === 'csv') {
      const parser = new CsvParser(this.separator);
      parser.push(`${this.header.map(() => 'x').join(this.separator)}\n`, false);
      const [row] = parser.push(text, true);
      if (row !== undefined && row.malformed === undefined) return this.ofCells(line, row.cells);
      const message = row?.malformed ?? 'is empty';
      return {
        line,
        cells: undefined,
        text,
        record: undefined,
        problems: [{ column: null, code: 'malformed_row', message }],
      };
    }
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === 'object' && value !== null && !Array.isArray(value))
        return this.ofCells(line, this.#cellsOf(value as Record<string, unknown>));
    } catch {
      // Reported below, like every other text that is not an object.
    }
    const problem = {
      column: null,
      code: 'malformed_json',
      message: 'must be a JSON object of the fields of its type',
    };
    return { line, cells: undefined, text, record: undefined, problems: [problem] };
  }

  /** What the service says about a record that was sent. */
  withAnswer(row: Row, problems: readonly { field: string | null; code: string; message: string }[]): Row {
    return {
      ...row,
      problems: problems.map(({ field, code, message }) => this.#problem(field, code, message)),
    };
  }

  #problem(field: string | null, code: string, message: string): RowProblem {
    return { column: this.columnOf(field), code, message: inScreenWords(message) };
  }

  /** The fields of a record as cells; before or after its members were renamed. */
  #cellsOf(record: Readonly<Record<string, unknown>>): readonly string[] {
    const memberOf = (field: string) => Object.keys(this.#map).find((member) => this.#map[member] === field);
    return this.header.map((field) => textOf(record[field] ?? record[memberOf(field) ?? field]));
  }
}
