import { readFile } from 'node:fs/promises';
import { type UploadType, uploadTypes } from '../generated/resources.ts';
import { schemas } from '../generated/schemas.ts';
import { fixedValuesOf } from '../parsing/columns/fixed-values.ts';
import { suggestField } from '../parsing/columns/suggest-field.ts';
import { FileError, withPath } from '../parsing/file-error.ts';
import type { FileOptions } from '../parsing/opened-file.ts';
import { dateReader } from '../parsing/values/date-format.ts';

/** The options allowed in a mapping file. */
export type MappedOptions = Omit<FileOptions, 'type' | 'skipRecords'>;

/** Parses `--map 'Shop ID=shop_id'`, which may be repeated. Splits at the last =, because field names never contain one. */
export function parseMap(pairs: readonly string[]): Record<string, string> {
  const entries = pairs.map((pair) => {
    const equals = pair.lastIndexOf('=');
    if (equals < 1) throw new FileError(`--map '${pair}' has no = in it; write it as --map 'column=field'`);
    return [pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()] as const;
  });
  return Object.fromEntries(entries.map(knownField));
}

/**
 * Checks that the field exists in some type. Files of several types share a mapping, so the field may belong to any type.
 */
function knownField([column, field]: readonly [string, string]): readonly [string, string] {
  const isKnown = field === '' || uploadTypes.some((type) => Object.hasOwn(schemas[type].properties, field));
  if (!isKnown)
    throw new FileError(`"${column}" is mapped to ${field}, which no type has; check its spelling`);
  return [column, field];
}

const form =
  'write {"Shop ID": "shop_id"}, or by type {"transactions": {"columns": {"Shop ID": "shop_id"}, "values": {"Country": {"Germany": "DE"}}, "constant": {"source": "till"}, "default": {"savings": 0}, "id_from": ["Receipt"], "date_format": "dd/MM/yyyy", "decimal_comma": true, "thousands": false, "encoding": "windows-1252", "sheet": "Sales", "skip_top": 2, "skip_bottom": 1}}';

export type Mapping = (type: UploadType) => MappedOptions;

/**
 * Reads a mapping file. The file maps columns to fields, either for all files or per type. A type may also set the other
 * file options, because an export's files may have different keys.
 */
export async function readMapping(path: string): Promise<Mapping> {
  try {
    const mapping = parse(await readFile(path, 'utf8').catch(notFound));
    if (Object.values(mapping).every((field) => typeof field === 'string'))
      return () => ({
        map: Object.fromEntries(Object.entries(mapping as Record<string, string>).map(knownField)),
      });
    const byType = new Map(
      Object.entries(mapping).map(([name, options]) => {
        const type = typeNamed(name);
        return [type, optionsOf(type, options)] as const;
      }),
    );
    // Interactions have no id of their own. Their items and students have keys if those of other types do. Their users have keys
    // if customers do: any other text may be the id of a visitor, which must not change.
    const interactions = byType.get('interactions');
    const hasKeys =
      interactions !== undefined || [...byType.values()].some(({ idFrom }) => idFrom !== undefined);
    const keepsUserIds = (interactions?.idFrom ?? byType.get('customers')?.idFrom) === undefined;
    if (hasKeys)
      byType.set('interactions', { idFrom: [], ...(keepsUserIds && { keepsUserIds }), ...interactions });
    return (type) => byType.get(type) ?? {};
  } catch (error) {
    throw withPath(path, error);
  }
}

function notFound(error: NodeJS.ErrnoException): never {
  throw new FileError(`the mapping file cannot be read (${error.code}); check its name`);
}

function parse(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new FileError(`the mapping file is not JSON (${(error as Error).message}); ${form}`);
  }
  if (!isObject(value)) throw new FileError(`the mapping file is not a JSON object; ${form}`);
  return value;
}

function typeNamed(name: string): UploadType {
  const type = uploadTypes.find((each) => each === name);
  if (type === undefined)
    throw new FileError(`"${name}" is not a type; use one of ${uploadTypes.join(', ')}`);
  return type;
}

interface Option {
  /** The name in `MappedOptions`. */
  readonly name: keyof MappedOptions;
  readonly isGood: (value: unknown) => boolean;
  /** What the value must be. */
  readonly must: string;
}

const isText = (value: unknown) => typeof value === 'string';
const isBoolean = (value: unknown) => typeof value === 'boolean';
const isScalar = (value: unknown) => isText(value) || isBoolean(value) || typeof value === 'number';
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const isObjectOf = (isGood: (value: unknown) => boolean) => (value: unknown) =>
  isObject(value) && Object.values(value).every(isGood);

const byField = {
  isGood: isObjectOf(isScalar),
  must: 'map fields to texts, numbers, true or false, such as {"region": "DE"}',
};

/** The options of a type, by the names that they have in a mapping file. */
const typeOptions: Readonly<Record<string, Option>> = {
  columns: {
    name: 'map',
    isGood: isObjectOf(isText),
    must: 'map columns to fields, such as {"Shop ID": "shop_id"}',
  },
  values: {
    name: 'values',
    isGood: isObjectOf(isObjectOf((value) => value === null || isScalar(value))),
    must: 'map columns to their values, such as {"Country": {"Germany": "DE", "-": null}}',
  },
  constant: { name: 'constant', ...byField },
  default: { name: 'default', ...byField },
  id_from: {
    name: 'idFrom',
    isGood: (value) => Array.isArray(value) && value.every(isText),
    must: 'be a list of columns, such as ["Receipt"]',
  },
  date_format: { name: 'dateFormat', isGood: isText, must: 'be a date format, such as "dd/MM/yyyy"' },
  decimal_comma: { name: 'decimalComma', isGood: isBoolean, must: 'be true or false' },
  thousands: { name: 'thousands', isGood: isBoolean, must: 'be true or false' },
  encoding: { name: 'encoding', isGood: isText, must: 'be an encoding, such as "windows-1252"' },
  sheet: {
    name: 'sheet',
    isGood: (value) => isText(value) || (isCount(value) && value !== 0),
    must: "be a sheet's name, or its number from 1",
  },
  skip_top: { name: 'skipTop', isGood: isCount, must: 'be the number of lines above the header' },
  skip_bottom: { name: 'skipBottom', isGood: isCount, must: 'be the number of rows below the last record' },
};

function optionsOf(type: UploadType, options: unknown): MappedOptions {
  if (!isObject(options)) throw new FileError(`the value for ${type} is not an object; ${form}`);
  const complaints: string[] = [];
  const mapped: Record<string, unknown> = { map: {} };
  for (const [option, value] of Object.entries(options)) {
    const known = Object.hasOwn(typeOptions, option) ? typeOptions[option] : undefined;
    if (known === undefined)
      complaints.push(
        `"${option}" of ${type} is not an option; its options are ${Object.keys(typeOptions).join(', ')}; ${form}`,
      );
    else if (!known.isGood(value)) complaints.push(`"${option}" of ${type} must ${known.must}; ${form}`);
    else mapped[known.name] = value;
  }
  if (mapped.thousands === true && mapped.decimalComma === true)
    complaints.push(`"decimal_comma" of ${type} already reads 1.234,56, so leave out "thousands"`);
  if (complaints.length > 0) throw new FileError(...complaints);
  const columns = mapped.map as Record<string, string>;
  const unknown = Object.entries(columns).flatMap(([column, field]) =>
    complainAboutField(type, column, field),
  );
  if (unknown.length > 0) throw new FileError(...unknown);
  if (typeof mapped.dateFormat === 'string') dateReader(mapped.dateFormat);
  fixedValuesOf(type, mapped);
  return { ...mapped, mappedColumns: [...Object.keys(columns), ...Object.keys(mapped.values ?? {})] };
}

function complainAboutField(type: UploadType, column: string, field: string): string[] {
  if (field === '' || Object.hasOwn(schemas[type].properties, field)) return [];
  const meant = suggestField(field, type, new Set());
  const hint = meant === undefined ? `see intake fields ${type}` : `did you mean ${meant}?`;
  return [`"columns" of ${type} maps "${column}" to ${field}, which is not a field of ${type}; ${hint}`];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
