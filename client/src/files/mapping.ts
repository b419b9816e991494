import { readFile } from 'node:fs/promises';
import { type UploadType, uploadTypes } from '../generated/resources.ts';
import { schemas } from '../generated/schemas.ts';
import { FileError, withPath } from '../parsing/file-error.ts';
import type { FileOptions } from '../parsing/opened-file.ts';

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
  'write {"Shop ID": "shop_id"}, or by type {"transactions": {"columns": {"Shop ID": "shop_id"}, "id_from": ["Receipt"], "date_format": "dd/MM/yyyy", "decimal_comma": true, "thousands": false, "encoding": "windows-1252"}}';

/**
 * Reads a mapping file. The file maps columns to fields, either for all files or per type. A type may also set the other
 * file options, because an export's files may have different keys.
 */
export async function readMapping(path: string): Promise<(type: UploadType) => MappedOptions> {
  try {
    const mapping = parse(await readFile(path, 'utf8').catch(notFound));
    if (Object.values(mapping).every((field) => typeof field === 'string'))
      return () => ({
        map: Object.fromEntries(Object.entries(mapping as Record<string, string>).map(knownField)),
      });
    const byType = new Map(
      Object.entries(mapping).map(([type, options]) => [typeNamed(type), optionsOf(type, options)]),
    );
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

function optionsOf(type: string, options: unknown): MappedOptions {
  if (!isObject(options)) throw new FileError(`the value for ${type} is not an object; ${form}`);
  const {
    columns = {},
    id_from: idFrom,
    date_format: dateFormat,
    decimal_comma: decimalComma,
    thousands,
    encoding,
    ...others
  } = options;
  const isGood =
    isObject(columns) &&
    Object.values(columns).every((field) => typeof field === 'string') &&
    (idFrom === undefined ||
      (Array.isArray(idFrom) && idFrom.every((column) => typeof column === 'string'))) &&
    (dateFormat === undefined || typeof dateFormat === 'string') &&
    (decimalComma === undefined || typeof decimalComma === 'boolean') &&
    (thousands === undefined || typeof thousands === 'boolean') &&
    (encoding === undefined || typeof encoding === 'string') &&
    Object.keys(others).length === 0;
  if (!isGood) throw new FileError(`the value for ${type} is invalid; ${form}`);
  return {
    map: columns as Record<string, string>,
    idFrom: idFrom as string[] | undefined,
    dateFormat,
    decimalComma,
    thousands,
    encoding,
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
