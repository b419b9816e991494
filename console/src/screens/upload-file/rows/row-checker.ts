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
  /** The column in the file, or null if the row as a whole is invalid. */
  readonly column: string | null;
  readonly code: string;
  readonly message: string;
}

/** A row of the file, with either a record that can be sent or a list of problems. */
export interface Row {
  readonly line: number;
  /** The cells by column, or undefined if they cannot be assigned to columns. In that case, `text` contains the line. */
  readonly cells: readonly string[] | undefined;
  readonly text?: string | undefined;
  readonly record: Readonly<Record<string, unknown>> | undefined;
  readonly problems: readonly RowProblem[];
  /** The columns of `cells` that the row does not have, so that stored values are kept unless a correction sets them. */
  readonly absent?: readonly string[] | undefined;
  /** What counts the row, or an earlier version of it, if it was sent: a receipt, or nothing because it was not kept. */
  readonly sent?: 'counted' | 'not-kept' | undefined;
}

/** Checks rows in the same way as the command does. A row comes from the file or was corrected on the screen. */
export class RowChecker {
  readonly type: UploadType;
  /** The columns that can be corrected. These are the columns of a CSV file, or the record's fields for other formats. */
  readonly header: readonly string[];
  readonly separator: string;
  /** The unit in which rows are counted. */
  readonly place: ReturnType<typeof placeName>;
  readonly #format: FileFormat;
  readonly #map: Settings['map'];
  readonly #isMerged: boolean;
  readonly #plan: ReturnType<typeof planColumns>;
  readonly #check: ReturnType<typeof checkerOf>;
  readonly #columns: ReadonlyMap<string, string>;

  constructor({ format, header, separator }: DescribedFile, settings: Settings) {
    const { type, dateFormat, isMerged } = settings;
    this.type = type;
    this.#format = format;
    this.place = placeName(format);
    this.#map = settings.map;
    this.header = format === 'csv' ? header : Object.keys(schemas[type].properties);
    this.separator = separator ?? ',';
    this.#plan = planColumns(type, this.header, format === 'csv' ? settings : { dateFormat, isMerged });
    this.#check = checkerOf(type, isMerged);
    this.#isMerged = isMerged === true;
    const { columns, key } = this.#plan;
    this.#columns = new Map(columns.map(({ field, column }) => [field, column]));
    if (key) this.#columns = new Map([...this.#columns, [key.field, key.names[0] as string]]);
  }

  /** Returns the column that a field is read from. */
  columnOf(field: string | null): string | null {
    return field === null ? null : (this.#columns.get(field) ?? field);
  }

  /** Returns the columns that a row has. */
  columnsOf({ cells = [], absent = [] }: Row): readonly string[] {
    return this.header.filter((column, at) => cells[at] !== '' || !absent.includes(column));
  }

  /** Returns the columns that are sent, in file order. */
  sentColumns(): readonly string[] {
    const sent = new Set(this.#columns.values());
    return this.header.filter((column) => sent.has(column) || this.#plan.key?.names.includes(column));
  }

  /** Checks a record from the file. It runs the same checks as the service, except those that need other records. */
  ofRecord({ line, cells, record }: FileRecord): Row {
    const problems = this.#check(record).map(({ field, code, message }) =>
      this.#problem(field, code, message),
    );
    return { line, ...(cells ? { cells } : this.#cellsOf(record)), record, problems };
  }

  /** Returns a row that could not be read or converted, with its problems. */
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
      cells: found?.cells,
      absent: found?.absent,
      text: isObject ? undefined : textOf(record),
      record: undefined,
      problems: worded,
    };
  }

  /** Checks a row whose cells were corrected. */
  ofCells(line: number, cells: readonly string[], absent?: readonly string[]): Row {
    const converted = convertRow(this.#plan, cells);
    const { record } = converted;
    for (const field of absent ?? []) if (record[field] === null) delete record[field];
    if (converted.problems === undefined) return { ...this.ofRecord({ line, cells, record }), absent };
    const problems = converted.problems.map(({ column, field, code, message }) => ({
      // If a key has several columns, `column` lists all of them, so it is not in the header.
      column: column !== null && this.header.includes(column) ? column : this.columnOf(field),
      code,
      message: inScreenWords(message),
    }));
    return { line, cells, absent, record: undefined, problems };
  }

  /** Checks a malformed line that was corrected as text because it has no cells. */
  ofText(line: number, text: string): Row {
    if (this.#format === 'csv') {
      const parser = new CsvParser(this.separator);
      parser.push(`${this.header.map(() => 'x').join(this.separator)}\n`, false);
      const [row] = parser.push(`${text}\n`, true);
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
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
        const { cells, absent } = this.#cellsOf(value as Record<string, unknown>);
        return this.ofCells(line, cells, absent);
      }
    } catch {
      // This case is handled below, like any other text that is not an object.
    }
    const problem = {
      column: null,
      code: 'malformed_json',
      message: 'must be a JSON object with the fields of its type',
    };
    return { line, cells: undefined, text, record: undefined, problems: [problem] };
  }

  /** Returns the row with the problems that the service reported for it. */
  withAnswer(
    row: Row,
    sent: Row['sent'],
    problems: readonly { field: string | null; code: string; message: string }[],
  ): Row {
    return {
      ...row,
      sent,
      problems: problems.map(({ field, code, message }) => this.#problem(field, code, message)),
    };
  }

  #problem(field: string | null, code: string, message: string): RowProblem {
    return { column: this.columnOf(field), code, message: inScreenWords(message) };
  }

  /** Returns a record as cells in header order. The record's keys may be the file's own names or the API's field names. */
  #cellsOf(record: Readonly<Record<string, unknown>>) {
    const memberOf = (field: string) => Object.keys(this.#map).find((member) => this.#map[member] === field);
    const ownName = (field: string) =>
      this.#map[field] === undefined || this.#map[field] === field ? field : '';
    const members = this.header.map((field) => [memberOf(field), ownName(field)].filter((name) => name));
    const nameIn = (names: readonly (string | undefined)[]) => names.find((name) => name && name in record);
    const values = members.map((names) => record[nameIn(names) ?? '']);
    const absent = this.header.filter((_, at) => nameIn(members[at] ?? []) === undefined);
    return { cells: values.map(textOf), absent: this.#isMerged ? absent : undefined };
  }
}
