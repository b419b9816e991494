import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { FileError } from '../file-error.ts';
import { type CellProblem, type Convert, converterOf, type Scalar } from '../values/convert-cell.ts';
import { deriveId, deriveItem, referenceFieldsOf } from '../values/derived-id.ts';
import { formulaError, withoutErrors } from '../values/formula-error.ts';
import { otherProblemsOf } from '../values/other-problems.ts';
import { type FixedValues, fixedValuesOf, type ValueOptions, withValues } from './fixed-values.ts';
import { suggestField } from './suggest-field.ts';

/** The last column in a file of failed records. It is ignored when that file is uploaded again. */
export const reasonColumn = 'failed_reason';

export interface PlanOptions extends ValueOptions {
  /** The columns that a mapping file names for this type. Each file needs them, or another column for the same field. */
  readonly mappedColumns?: readonly string[] | undefined;
  /**
   * Whether the records are merged with the stored ones: an empty cell clears its field, and a field without a column keeps its
   * value.
   */
  readonly isMerged?: boolean | undefined;
  /** Reads only the header, and accepts any columns. */
  readonly isHeaderOnly?: boolean | undefined;
  /**
   * Returns the cells unchanged, for a preview before the type is known. They are keyed by the column's index, because several
   * columns may have the same name, or none.
   */
  readonly isPreview?: boolean | undefined;
}

export interface Column {
  readonly index: number;
  /** The column name in the header. */
  readonly column: string;
  readonly field: string;
  readonly convert: Convert | undefined;
  /** Converts dates that have a type in the file and are therefore ISO 8601, whatever the date format is. */
  readonly convertIso?: Convert | undefined;
  /** The value of empty cells. */
  readonly fallback?: Scalar | null | undefined;
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
  /** The values of fields that have no column. */
  readonly constants: ReadonlyMap<string, Scalar>;
  /** Whether the id of an interaction's item is derived from a key. */
  readonly derivesItem: boolean;
  /** The fields that refer to other records and whose ids are derived. */
  readonly references: readonly string[];
  /** Finds further problems in a row with a cell that cannot be converted. */
  otherProblems(
    record: Record<string, unknown>,
    known: readonly Problem[],
  ): { readonly others: readonly Problem[]; readonly isEachRejected: boolean };
  /** The columns whose names neither match a field of the type nor resemble one. */
  readonly ignored: readonly string[];
  /** The fields without a column, whose stored values are kept when the records are merged. */
  readonly absent: readonly string[];
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
        ? header.map((column, index) => ({ index, column, field: String(index), convert: undefined }))
        : [],
      constants: new Map(),
      key: undefined,
      derivesItem: false,
      references: [],
      otherProblems: () => ({ others: [], isEachRejected: false }),
      ignored: header,
      absent: [],
    };
  const { properties, required } = schemas[type];
  const { map = {}, isMerged } = options;
  const idField = resources[type].idField;
  const fieldOf = (column: string) => (Object.hasOwn(map, column) ? (map[column] as string) : column);
  const complaints: string[] = [];
  const idFrom = keyColumns(type, options.idFrom, header, fieldOf, complaints);
  complaints.push(...header.flatMap((column) => complainAboutMap(type, column, fieldOf(column))));
  const fixed = fixedValuesOf(type, options);
  const columns = new Map<string, Column>();
  const unknown: string[] = [];
  for (const [index, column] of header.entries()) {
    const field = fieldOf(column);
    const schema = Object.hasOwn(properties, field) ? properties[field] : undefined;
    if (field === '' || column === reasonColumn || (idFrom !== undefined && field === idField)) continue;
    if (schema === undefined) unknown.push(column);
    else if (columns.has(field)) complaints.push(complainAboutTwo(field, columns.get(field)?.column, column));
    else {
      const convertBy = (how: PlanOptions) =>
        withValues(withoutErrors(converterOf(field, schema, how)), fixed.values.get(column));
      const convert = convertBy(options);
      const convertIso = convertBy({ ...options, dateFormat: undefined });
      const fallback = fixed.defaults.get(field) ?? (isMerged ? null : undefined);
      columns.set(field, { index, column, field, convert, convertIso, fallback });
    }
  }
  complaints.push(...complainAboutMapping(columns, fixed, options, header));
  const taken = new Set([...columns.keys(), ...fixed.constants.keys()]);
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
  complaints.push(...complainAboutRequired(type, taken, options));
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
    constants: fixed.constants,
    key,
    derivesItem,
    ignored,
    references: options.idFrom === undefined ? [] : referenceFieldsOf(type),
    otherProblems: othersOf(type, columns, isMerged),
    absent: isMerged ? Object.keys(properties).filter((field) => !taken.has(field)) : [],
  };
}

function othersOf(
  type: UploadType,
  columns: ReadonlyMap<string, Column>,
  isMerged: boolean | undefined,
): ColumnPlan['otherProblems'] {
  const others = otherProblemsOf(type, isMerged);
  return (record, known) => {
    const found = others(record, known);
    const named = found.others.map((problem) => ({
      ...problem,
      column: columns.get(problem.field ?? '')?.column ?? problem.field,
    }));
    return { ...found, others: named };
  };
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
  const idColumns = header.filter((column) => fieldOf(column) === idField);
  const isInHeader = missing.length === 0 && idFrom.length > 0;
  const found = isInHeader ? idFrom : missing.length === idFrom.length ? idColumns.slice(0, 1) : [];
  const [second] = found.filter((column) => header.indexOf(column) !== header.lastIndexOf(column));
  if (second !== undefined || (!isInHeader && found.length > 0 && idColumns.length > 1))
    complaints.push(complainAboutTwo(idField, found[0], second ?? idColumns[1] ?? ''));
  if (found.length > 0) return found;
  const names = (columns: readonly string[]) => columns.map((name) => `"${name}"`).join(', ');
  complaints.push(
    `--id-from refers to ${names(missing)}, but the header only has ${names(header)}; use other columns`,
  );
  return idFrom;
}

/** Returns what the mapping file says about fields and columns that this file does not have. */
function complainAboutMapping(
  columns: ReadonlyMap<string, Column>,
  { constants, defaults }: FixedValues,
  { map = {}, mappedColumns = [] }: PlanOptions,
  header: readonly string[],
): string[] {
  const absent = mappedColumns.filter((column) => {
    const field = map[column] ?? column;
    return field !== '' && !header.includes(column) && !columns.has(field);
  });
  return [
    ...absent.map(
      (column) =>
        `the mapping file refers to the column "${column}", but the header only has ${header.map((one) => `"${one}"`).join(', ')}; correct its name, or remove it from the mapping file`,
    ),
    ...[...constants.keys()].flatMap((field) => {
      const column = columns.get(field)?.column;
      return column === undefined
        ? []
        : `"constant" sets ${field}, but the column "${column}" has its values; use "default" for empty cells, or map the column to ""`;
    }),
    ...[...defaults.keys()].flatMap((field) =>
      columns.has(field)
        ? []
        : `"default" has a value for ${field}, but no column matches it; use "constant"`,
    ),
  ];
}

function complainAboutTwo(field: string, first: string | undefined, second: string): string {
  return `the columns "${first}" and "${second}" both match ${field}; leave one out with --map '${second}='`;
}

function complainAboutRequired(
  type: UploadType,
  taken: ReadonlySet<string>,
  { isMerged }: PlanOptions,
): string[] {
  const { idField } = resources[type];
  const needed = isMerged ? [idField] : schemas[type].required;
  return needed
    .filter((field) => !taken.has(field))
    .map((field) => {
      const what = `no column matches ${field}, which ${type} require; specify its column with --map 'column=${field}'`;
      return field === idField ? `${what}, or derive it with --id-from if the export has no UUIDs` : what;
    });
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

type Converted = Record<string, Scalar | null>;

/**
 * Marks the fields with problems, because the service would accept some of their values. A failed record must not be stored
 * before somebody has corrected it.
 */
export function withUnclear<T extends object>(
  record: T,
  problems: readonly { readonly field: string | null }[],
): T {
  const values = record as Readonly<Record<string, unknown>>;
  const fields = problems.flatMap(({ field }) => (field !== null && field in record ? [field] : []));
  return { ...record, ...Object.fromEntries(fields.map((field) => [field, { unclear: values[field] }])) };
}

/** A row that could not be converted to a record. */
export interface Unconverted {
  readonly problems: readonly Problem[];
  /** The record, with the original text of the cells that could not be converted, so that it can be corrected. */
  readonly record: Converted;
  readonly sendable: Converted | undefined;
}

/**
 * Converts a row to a record, or reports its problems. Empty cells are omitted unless the record is merged, because the service
 * stores missing fields as null. `hasIsoDate` says which cells are dates with a type.
 */
export function convertRow(
  { columns, constants, key, derivesItem, otherProblems }: ColumnPlan,
  cells: readonly string[],
  hasIsoDate?: (index: number) => boolean,
): { readonly problems: undefined; readonly record: Converted } | Unconverted {
  const record: Converted = {};
  let problems: Problem[] | undefined;
  let hasId = true;
  if (key !== undefined) {
    const parts = key.columns.map((index) => (cells[index] as string).trim());
    const keyProblem = parts.includes('') ? emptyKey : formulaError(parts.find(formulaError) ?? '');
    if (keyProblem !== undefined) {
      hasId = false;
      problems = [{ column: key.name, field: key.field, ...keyProblem }];
      for (const [at, column] of key.names.entries()) record[column] = parts[at] as string;
    } else record[key.field] = deriveId(key.type, parts);
  }
  for (let at = 0; at < columns.length; at++) {
    const { index, field, convert: convertText, convertIso, column, fallback } = columns[at] as Column;
    const convert = hasIsoDate?.(index) ? convertIso : convertText;
    const cell = cells[index] as string;
    const value = cell === '' ? fallback : convert === undefined ? cell : (convert(cell) ?? fallback);
    if (typeof value === 'object' && value !== null) {
      problems ??= [];
      problems.push({ column, field, ...value });
      record[field] = cell;
    } else if (value !== undefined) record[field] = value;
  }
  for (const [field, value] of constants) record[field] = value;
  if (derivesItem) deriveItem(record);
  if (problems === undefined) return { problems, record };
  const { others, isEachRejected } = otherProblems(record, problems);
  return {
    problems: [...problems, ...others],
    record: isEachRejected ? record : withUnclear(record, problems),
    sendable: hasId && isEachRejected ? record : undefined,
  };
}
