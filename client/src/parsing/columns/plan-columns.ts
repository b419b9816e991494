import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { FileError } from '../file-error.ts';
import {
  type CellProblem,
  type Convert,
  type ConvertOptions,
  converterOf,
  type Scalar,
} from '../values/convert-cell.ts';
import { deriveId, deriveItem, referenceFieldsOf } from '../values/derived-id.ts';
import { otherProblemsOf } from '../values/other-problems.ts';
import { suggestField } from './suggest-field.ts';

/** The last column in a file of failed records. It is ignored when that file is uploaded again. */
export const reasonColumn = 'failed_reason';

export interface PlanOptions extends ConvertOptions {
  /** Maps columns to fields. A column that is mapped to an empty field is skipped. */
  readonly map?: Readonly<Record<string, string>> | undefined;
  /** Reads only the header, and accepts any columns. */
  readonly isHeaderOnly?: boolean | undefined;
  /** Returns the cells unchanged, keyed by column name, for a preview before the type is known. */
  readonly isPreview?: boolean | undefined;
}

export interface Column {
  readonly index: number;
  /** The column name in the header. */
  readonly column: string;
  readonly field: string;
  readonly convert: Convert | undefined;
}

interface Key {
  readonly type: UploadType;
  readonly field: string;
  readonly columns: readonly number[];
  readonly names: readonly string[];
  /** The column names, for use in messages. */
  readonly name: string;
}

export interface ColumnPlan {
  readonly columns: readonly Column[];
  /** The columns that make up the record's key, or undefined if the file has an id column. */
  readonly key: Key | undefined;
  /** Whether the id of an interaction's item is derived from a key. */
  readonly derivesItem: boolean;
  /** The fields that refer to other records and whose ids are derived. */
  readonly references: readonly string[];
  /** Finds further problems in a row with a cell that cannot be converted. */
  otherProblems(record: Record<string, unknown>, known: readonly Problem[]): readonly Problem[];
  /** The columns whose names neither match a field of the type nor resemble one. */
  readonly ignored: readonly string[];
}

export interface Problem extends CellProblem {
  /** The column name in the header, or null if the problem concerns the whole row. */
  readonly column: string | null;
  readonly field: string | null;
}

/**
 * Assigns columns to fields. Throws if a header is similar but not equal to a field's name, or if a required field has no
 * column. All of an upload's files share one mapping, so the mapping may contain columns and fields from other files.
 */
export function planColumns(type: UploadType, header: readonly string[], options: PlanOptions): ColumnPlan {
  if (options.isHeaderOnly || options.isPreview)
    return {
      columns: options.isPreview
        ? header.map((column, index) => ({ index, column, field: column, convert: undefined }))
        : [],
      key: undefined,
      derivesItem: false,
      references: [],
      otherProblems: () => [],
      ignored: header,
    };
  const { properties, required } = schemas[type];
  const { map = {} } = options;
  const idField = resources[type].idField;
  const fieldOf = (column: string) => (Object.hasOwn(map, column) ? (map[column] as string) : column);
  const complaints: string[] = [];
  const idFrom = keyColumns(type, options.idFrom, header, fieldOf, complaints);
  complaints.push(...header.flatMap((column) => complainAboutMap(type, column, fieldOf(column))));
  const columns = new Map<string, Column>();
  const unknown: string[] = [];
  for (const [index, column] of header.entries()) {
    const field = fieldOf(column);
    const schema = Object.hasOwn(properties, field) ? properties[field] : undefined;
    if (field === '' || column === reasonColumn || (idFrom !== undefined && field === idField)) continue;
    if (schema === undefined) unknown.push(column);
    else if (columns.has(field)) complaints.push(complainAboutTwo(field, columns.get(field)?.column, column));
    else columns.set(field, { index, column, field, convert: converterOf(field, schema, options) });
  }
  const taken = new Set(columns.keys());
  if (idFrom !== undefined) taken.add(idField);
  const ignored: string[] = [];
  for (const column of unknown) {
    if (idFrom?.includes(column)) continue;
    const field = suggestField(column, type, taken);
    if (field === undefined) ignored.push(column);
    else {
      taken.add(field);
      complaints.push(
        `column "${column}" is not a field of ${type}; did you mean ${field}? Add --map '${column}=${field}', or --map '${column}=' to leave the column out`,
      );
    }
  }
  if (columns.size === 0 && complaints.length === 0 && header.some(isValue))
    throw new FileError(
      `its first line contains values instead of column names; insert a line with the names, such as ${required.join(',')}`,
    );
  complaints.push(
    ...required.filter((field) => !taken.has(field)).map((field) => complainAboutRequired(type, field)),
  );
  if (complaints.length > 0) throw new FileError(...complaints);
  const key = idFrom && {
    type,
    field: idField,
    columns: idFrom.map((column) => header.indexOf(column)),
    names: idFrom,
    name: idFrom.join(','),
  };
  const derivesItem = type === 'interactions' && options.idFrom !== undefined;
  return {
    columns: [...columns.values()],
    key,
    derivesItem,
    ignored,
    references: options.idFrom === undefined ? [] : referenceFieldsOf(type),
    otherProblems: othersOf(type, columns),
  };
}

function othersOf(type: UploadType, columns: ReadonlyMap<string, Column>): ColumnPlan['otherProblems'] {
  const others = otherProblemsOf(type);
  return (record, known) =>
    others(record, known).map((problem) => ({
      ...problem,
      column: columns.get(problem.field ?? '')?.column ?? problem.field,
    }));
}

/** Returns whether the cell is a value (a UUID, a number or a date) rather than a column name. */
function isValue(cell: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-|^\d+([.,]\d+)*$|^\d{4}-\d\d-\d\d/i.test(cell);
}

/**
 * Returns the columns that make up the record's key, or undefined if ids are not derived or the type has no id. If a file
 * has none of the columns in --id-from, which may be meant for other files, the file's id column is its key.
 */
function keyColumns(
  type: UploadType,
  idFrom: readonly string[] | undefined,
  header: readonly string[],
  fieldOf: (column: string) => string,
  complaints: string[],
): readonly string[] | undefined {
  const { idField } = resources[type];
  if (idFrom === undefined || !Object.hasOwn(schemas[type].properties, idField)) return undefined;
  const missing = idFrom.filter((column) => !header.includes(column));
  if (missing.length === 0 && idFrom.length > 0) return idFrom;
  const idColumn = header.find((column) => fieldOf(column) === idField);
  if (missing.length === idFrom.length && idColumn !== undefined) return [idColumn];
  const names = (columns: readonly string[]) => columns.map((name) => `"${name}"`).join(', ');
  complaints.push(
    `--id-from refers to ${names(missing)}, but the header only has ${names(header)}; use other columns`,
  );
  return idFrom;
}

function complainAboutTwo(field: string, first: string | undefined, second: string): string {
  return `the columns "${first}" and "${second}" both match ${field}; leave one out with --map '${second}='`;
}

function complainAboutRequired(type: UploadType, field: string): string {
  const what = `no column matches ${field}, which ${type} require`;
  return field === resources[type].idField
    ? `${what}; specify its column with --map 'column=${field}', or derive it with --id-from if the export has no UUIDs`
    : `${what}; specify its column with --map 'column=${field}'`;
}

function complainAboutMap(type: UploadType, column: string, field: string): string[] {
  if (field === '' || field === column || Object.hasOwn(schemas[type].properties, field)) return [];
  const meant = suggestField(field, type, new Set());
  const hint =
    meant === undefined
      ? `; its fields are ${Object.keys(schemas[type].properties).join(', ')}`
      : `; did you mean ${meant}?`;
  return [`--map '${column}=${field}' is not possible: ${field} is not a field of ${type}${hint}`];
}

/** Returns the keys from which a row's references are derived, or undefined if references are not derived. */
export function keysOf({ columns, references }: ColumnPlan, cells: readonly string[]) {
  if (references.length === 0) return undefined;
  const keys = columns.filter(({ field }) => references.includes(field));
  return Object.fromEntries(keys.map(({ field, index }) => [field, (cells[index] as string).trim()]));
}

export const emptyKey: CellProblem = {
  code: 'required',
  message: 'is empty, but the id is derived from it (--id-from)',
};

/** A row that could not be converted to a record. */
export interface Unconverted {
  readonly problems: readonly Problem[];
  /** The record, with the original text of the cells that could not be converted, so that it can be corrected. */
  readonly record: Record<string, Scalar>;
}

/**
 * Converts a row to a record, or reports its problems. Empty cells are omitted, because the service stores missing fields as
 * null.
 */
export function convertRow(
  { columns, key, derivesItem, otherProblems }: ColumnPlan,
  cells: readonly string[],
): { readonly problems: undefined; readonly record: Record<string, Scalar> } | Unconverted {
  const record: Record<string, Scalar> = {};
  let problems: Problem[] | undefined;
  if (key !== undefined) {
    const parts = key.columns.map((index) => (cells[index] as string).trim());
    if (parts.includes('')) {
      problems = [{ column: key.name, field: key.field, ...emptyKey }];
      for (const [at, column] of key.names.entries()) record[column] = parts[at] as string;
    } else record[key.field] = deriveId(key.type, parts);
  }
  for (let at = 0; at < columns.length; at++) {
    const { index, field, convert, column } = columns[at] as Column;
    const cell = cells[index] as string;
    if (cell === '') continue;
    const value = convert === undefined ? cell : convert(cell);
    if (typeof value === 'object') {
      problems ??= [];
      problems.push({ column, field, ...value });
      record[field] = cell;
    } else if (value !== undefined) record[field] = value;
  }
  if (derivesItem) deriveItem(record);
  problems?.push(...otherProblems(record, problems));
  return { problems, record };
}
