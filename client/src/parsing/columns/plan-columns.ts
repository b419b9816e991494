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

/** The last column of a file of failed records; ignored when that file is uploaded again. */
export const reasonColumn = 'failed_reason';

export interface PlanOptions extends ConvertOptions {
  /** Column to field; an empty field leaves the column out. */
  readonly map?: Readonly<Record<string, string>> | undefined;
  /** Only the header is wanted, whatever its columns are. */
  readonly isHeaderOnly?: boolean | undefined;
  /** The cells are wanted as they are, under the names of their columns, before anything is known of their type. */
  readonly isPreview?: boolean | undefined;
}

export interface Column {
  readonly index: number;
  /** The name in the header. */
  readonly column: string;
  readonly field: string;
  readonly convert: Convert | undefined;
}

interface Key {
  readonly type: UploadType;
  readonly field: string;
  readonly columns: readonly number[];
  readonly names: readonly string[];
  /** The columns' names, for messages. */
  readonly name: string;
}

export interface ColumnPlan {
  readonly columns: readonly Column[];
  /** The columns of the record's key; undefined if the id has its own column. */
  readonly key: Key | undefined;
  /** Whether the id of an interaction's item is derived from its key. */
  readonly derivesItem: boolean;
  /** The fields whose ids are derived and refer to other records. */
  readonly references: readonly string[];
  /** What else is wrong with a row of which a cell cannot be converted. */
  otherProblems(record: Record<string, unknown>, known: readonly Problem[]): readonly Problem[];
  /** Columns that are neither a field of the type nor similar to one. */
  readonly ignored: readonly string[];
}

export interface Problem extends CellProblem {
  /** The column's name in the header; null if the row as a whole is wrong. */
  readonly column: string | null;
  readonly field: string | null;
}

/**
 * Assigns columns to fields. Throws if a header nearly matches, or if a required field has no column. One mapping
 * serves all files of an upload, so it may name columns and fields of other files.
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
      `its first line has values where the names of the columns should be; put them before it, such as ${required.join(',')}`,
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

/** Whether it cannot be the name of a column: a UUID, a number or a date. */
function isValue(cell: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-|^\d+([.,]\d+)*$|^\d{4}-\d\d-\d\d/i.test(cell);
}

/**
 * The columns of the record's key; undefined if ids are not derived, or the type has none. If a file has none of the
 * columns of --id-from, as others do, its id column is its key.
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
  complaints.push(`--id-from names ${names(missing)}, but the header has only ${names(header)}; name others`);
  return idFrom;
}

function complainAboutTwo(field: string, first: string | undefined, second: string): string {
  return `the columns "${first}" and "${second}" are both ${field}; leave one out with --map '${second}='`;
}

function complainAboutRequired(type: UploadType, field: string): string {
  const what = `no column is ${field}, which every record of ${type} needs`;
  return field === resources[type].idField
    ? `${what}; name its column with --map 'column=${field}', or derive it with --id-from if the export has no UUIDs`
    : `${what}; name its column with --map 'column=${field}'`;
}

function complainAboutMap(type: UploadType, column: string, field: string): string[] {
  if (field === '' || field === column || Object.hasOwn(schemas[type].properties, field)) return [];
  const meant = suggestField(field, type, new Set());
  const hint =
    meant === undefined
      ? `; its fields are ${Object.keys(schemas[type].properties).join(', ')}`
      : `; did you mean ${meant}?`;
  return [`--map '${column}=${field}' cannot be followed: ${field} is not a field of ${type}${hint}`];
}

/** The keys from which the references in a row are derived; undefined if they are not. */
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
  /** The record with the original text of cells that could not be converted, to be corrected. */
  readonly record: Record<string, Scalar>;
}

/**
 * Converts a row to a record, or says what is wrong with it. Empty cells are left out: the service stores them as null.
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
