import type { ParseArgsOptionsConfig } from 'node:util';
import type { Found } from '../../files/find-files.ts';
import { parseMap, readMapping } from '../../files/mapping.ts';
import { type UploadType, uploadTypes } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import type { FileOptions, OpenedFile } from '../../parsing/opened-file.ts';
import { say, warn } from '../terminal/terminal.ts';
import { textOf, textsOf, UsageError, type Values } from './command.ts';

const skippedShownMax = 20;

/** The options for reading files, which `upload` and `check` share. */
export const fileOptions: ParseArgsOptionsConfig = {
  type: { type: 'string' },
  map: { type: 'string', multiple: true },
  mapping: { type: 'string' },
  'date-format': { type: 'string' },
  'decimal-comma': { type: 'boolean' },
  thousands: { type: 'boolean' },
  encoding: { type: 'string' },
  'id-from': { type: 'string' },
  replace: { type: 'boolean' },
};

export const fileOptionsHelp = `  --type <type>            record type of the files; default: taken from their names
  --map '<column>=<field>' takes a field from a column with another name; repeatable
  --mapping <file>         takes the mapping from a JSON file
  --date-format <format>   format of the dates, for example dd.MM.yyyy
  --decimal-comma          numbers are written 1.234,56
  --thousands              numbers are written 1,234.56
  --encoding <encoding>    character encoding, for example windows-1252; default: UTF-8, or the detected encoding
  --id-from <columns>      derives each id from these columns; the same values give the same id
  --replace                replaces stored records as a whole: fields that the files leave out become empty. Without it, fields
                           without a column keep their values`;

export function typeOf(values: Values): UploadType | undefined {
  return textOf(values, 'type') === undefined ? undefined : asType(textOf(values, 'type'));
}

export function asType(text: string | undefined): UploadType {
  const type = uploadTypes.find((each) => each === text);
  if (type !== undefined) return type;
  throw new UsageError(`There is no record type ${text}. Use one of ${uploadTypes.join(', ')}.`);
}

/** Reads the options for each type. The command line overrides the mapping file. */
export async function readFileOptions(values: Values): Promise<(type: UploadType) => FileOptions> {
  const mappingFile = textOf(values, 'mapping');
  const mapping = mappingFile === undefined ? () => ({}) : await readMapping(mappingFile);
  const map = parseMap(textsOf(values, 'map'));
  const dateFormat = textOf(values, 'date-format');
  const encoding = textOf(values, 'encoding');
  const idFrom = textOf(values, 'id-from')
    ?.split(',')
    .map((column) => column.trim());
  if (values.thousands && values['decimal-comma'])
    throw new UsageError('--decimal-comma already reads 1.234,56, so leave out --thousands.');
  return (type) => {
    const kept: FileOptions = mapping(type);
    return {
      ...kept,
      type,
      map: { ...kept.map, ...map },
      ...(dateFormat !== undefined && { dateFormat }),
      ...(values['decimal-comma'] === true && { decimalComma: true }),
      ...(values.thousands === true && { thousands: true }),
      ...(encoding !== undefined && { encoding }),
      ...(idFrom !== undefined && { idFrom, keepsUserIds: false }),
      ...(isMerged(type, values) && { isMerged: true }),
    };
  };
}

/** Returns whether records are merged with the stored ones. Interactions never are. */
function isMerged(type: UploadType, { replace }: Values): boolean {
  return type !== 'interactions' && replace !== true;
}

/** Returns the columns specified with --map. */
export function mappedColumns(values: Values): readonly string[] {
  return Object.keys(parseMap(textsOf(values, 'map')));
}

/** Warns about the parts of a file that are not sent, and about fields that new records need. */
export function warnUnread(file: OpenedFile, verb: string): void {
  const { path, type, ignoredColumns, otherSheets = [] } = file;
  const absentFields = file.absentFields();
  if (ignoredColumns.length > 0)
    warn(`${path}: these columns are not fields of ${type} and ${verb}: ${ignoredColumns.join(', ')}`);
  if (otherSheets.length > 0)
    warn(
      `${path}: only the first sheet is read. To read another, specify "sheet" in a mapping file: ${otherSheets.map((sheet) => `"${sheet}"`).join(', ')}`,
    );
  const needed = schemas[type].required.filter((field) => absentFields.includes(field));
  if (needed.length > 0)
    warn(`${path}: ${type} that are not stored yet will fail, because they need ${needed.join(', ')}`);
}

/** Warns about the files in a folder that are not uploaded. */
export function warnSkipped({ skipped }: Found): void {
  if (skipped.length === 0) return;
  const shown = skipped.slice(0, skippedShownMax).join(', ');
  const more = skipped.length - skippedShownMax;
  say(`Skipped: ${shown}${more > 0 ? `, and ${more} more` : ''}`);
}

/** Returns the options as the user would type them on the command line. */
export function typedOptions(values: Values): string {
  return Object.keys(fileOptions)
    .flatMap((option) => {
      const value = values[option];
      if (value === true) return [`--${option}`];
      return [value]
        .flat()
        .flatMap((each) => (typeof each === 'string' ? [`--${option} ${quoted(each)}`] : []));
    })
    .join(' ');
}

function quoted(text: string): string {
  return /^[\w.,/:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
