import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { FileError } from '../file-error.ts';
import { checkerOf } from '../values/check-record.ts';
import { type Convert, type ConvertOptions, converterOf, type Scalar } from '../values/convert-cell.ts';
import { itemField, userField } from '../values/derived-id.ts';

/** Values that a mapping file specifies. */
export interface ValueOptions extends ConvertOptions {
  /** Maps columns to fields. A column that is mapped to an empty field is skipped. */
  readonly map?: Readonly<Record<string, string>> | undefined;
  /** Replaces the values of a column: `{"Land": {"Deutschland": "DE"}}`. With null, the cell counts as empty. */
  readonly values?: Readonly<Record<string, Readonly<Record<string, Scalar | null>>>> | undefined;
  /** The values of fields that have no column. */
  readonly constant?: Readonly<Record<string, Scalar>> | undefined;
  /** The values of fields whose cell is empty. */
  readonly default?: Readonly<Record<string, Scalar>> | undefined;
}

export interface FixedValues {
  readonly constants: ReadonlyMap<string, Scalar>;
  readonly defaults: ReadonlyMap<string, Scalar>;
  /** The values of each column. Undefined values count as empty cells. */
  readonly values: ReadonlyMap<string, ReadonlyMap<string, Scalar | undefined>>;
}

/**
 * Converts the values of a mapping file like cells, and throws a `FileError` that names all values that the service would
 * reject, because each of them would fail in every record.
 */
export function fixedValuesOf(type: UploadType, options: ValueOptions): FixedValues {
  const complaints: string[] = [];
  const { properties } = schemas[type];
  const check = checkerOf(type);
  const convert = (where: string, field: string, value: Scalar): Scalar => {
    const schema = properties[field];
    if (schema === undefined) {
      complaints.push(
        `${where} is not possible, because ${field} is not a field of ${type}; see intake fields`,
      );
      return value;
    }
    // JSON has numbers and booleans of its own, but keys and dates are written as in the file.
    const isText = typeof value === 'string' && (schema.format !== undefined || field === userField);
    const cell = isText ? converterOf(field, schema, options)?.(value) : undefined;
    const converted = cell ?? value;
    // An item's id is derived later, once the item's type is known.
    const isKey = field === itemField && options.idFrom !== undefined;
    const problem =
      typeof converted === 'object'
        ? converted
        : check({ [field]: converted }).find((one) => one.field === field && !isKey);
    if (problem) complaints.push(`${where} is not possible: ${field} ${problem.message}`);
    return typeof converted === 'object' ? value : converted;
  };
  const byField = (name: 'constant' | 'default') =>
    Object.entries(options[name] ?? {}).map(([field, value]) => {
      const where = `"${name}": {"${field}": ${JSON.stringify(value)}}`;
      if (field === resources[type].idField && type !== 'interactions')
        complaints.push(`${where} would give all records the same id; use "id_from"`);
      return [field, convert(where, field, value)] as const;
    });
  const valuesOf = ([column, values]: readonly [string, Readonly<Record<string, Scalar | null>>]) => {
    const field = options.map?.[column] ?? column;
    if (field === '' || !Object.hasOwn(properties, field))
      complaints.push(
        `"values" refers to the column "${column}", which is not mapped to a field of ${type}; map it in "columns"`,
      );
    if (options.idFrom?.includes(column))
      complaints.push(
        `"values" refers to the column "${column}", but the id is derived from its cells as they are; remove it from "values" or from "id_from"`,
      );
    const converted = Object.entries(values).map(([text, value]) => {
      if (text.trim() === '')
        complaints.push(`"values" of "${column}" has an empty value; use "default" for empty cells`);
      const where = `"values": {"${column}": {"${text}": ${JSON.stringify(value)}}}`;
      const isConvertible = value !== null && Object.hasOwn(properties, field);
      return [text.trim(), isConvertible ? convert(where, field, value) : undefined] as const;
    });
    return [column, new Map(converted)] as const;
  };
  const fixed = {
    constants: new Map(byField('constant')),
    defaults: new Map(byField('default')),
    values: new Map(Object.entries(options.values ?? {}).map(valuesOf)),
  };
  if (complaints.length > 0) throw new FileError(...complaints);
  return fixed;
}

/** Adds the mapping file's values to a converter. All other cells are converted as before. */
export function withValues(
  convert: Convert | undefined,
  values: ReadonlyMap<string, Scalar | undefined> | undefined,
): Convert | undefined {
  if (values === undefined) return convert;
  return (cell) => {
    const text = cell.trim();
    if (text === '' || values.has(text)) return values.get(text);
    return convert === undefined ? cell : convert(cell);
  };
}
