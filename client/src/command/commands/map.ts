import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFiles } from '../../files/find-files.ts';
import { findTable, type Layout } from '../../files/find-table.ts';
import { notWritten } from '../../files/write-whole.ts';
import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { suggestColumns } from '../../parsing/columns/suggest-columns.ts';
import { type SuggestedFormats, suggestFormats } from '../../parsing/columns/suggest-formats.ts';
import { suggestIdFrom } from '../../parsing/columns/suggest-ids.ts';
import { FileError } from '../../parsing/file-error.ts';
import { type Command, textOf, UsageError } from '../options/command.ts';
import { typeOf, warnSkipped } from '../options/file-options.ts';
import { print } from '../terminal/terminal.ts';

export const map: Command = {
  summary: 'write a mapping file that you can edit',
  help: `Usage: intake map <files or folders...> [options]

Writes mapping.json, in the folder if you specify one. It maps every column of the files to the field that its name suggests,
or to "" if the column is not sent. If the first records show how dates and numbers are written, that the ids are not UUIDs,
which values stand for true, false and countries, or that the columns begin below a title or on another sheet, it adds the
options for them, and prints why. Edit the file, then pass it to check and upload with --mapping.

Options:
  --type <type>            record type of the files; default: taken from their names
  --encoding <encoding>    character encoding of the files, for example windows-1252

Examples:
  intake map exports/
  intake upload exports/ --mapping exports/mapping.json`,
  options: { type: { type: 'string' }, encoding: { type: 'string' } },
  takesFiles: true,
  async run(values, positionals) {
    const [first] = positionals;
    if (first === undefined)
      throw new UsageError('Specify the files or folders to map. See intake map --help.');
    const found = await findFiles(positionals, typeOf(values));
    warnSkipped(found);
    if (found.problems.length > 0) throw new FileError(...found.problems);
    const mapping: Partial<Record<UploadType, Mapped>> = {};
    const reasons: string[] = [];
    for (const { path, type } of found.files) {
      const added = await mappedWith(
        mapping[type],
        path,
        type,
        textOf(values, 'encoding'),
        mapping.customers?.id_from !== undefined,
      );
      mapping[type] = added.mapped;
      reasons.push(...added.reasons.map((reason) => `${path}: ${reason}`));
    }
    const isFolder = positionals.length === 1 && first !== '-' && (await stat(first)).isDirectory();
    const output = isFolder ? join(first, 'mapping.json') : 'mapping.json';
    await writeNew(output, `${JSON.stringify(mapping, null, 2)}\n`);
    await print(
      `Wrote ${output}. Edit it, then run: intake check ${positionals.join(' ')} --mapping ${output}`,
      ...reasons,
      ...Object.entries(mapping).flatMap(([type, mapped]) => missingOf(type as UploadType, mapped)),
    );
    return 0;
  },
};

interface Mapped extends SuggestedFormats, Layout {
  readonly columns: Record<string, string>;
  id_from?: readonly string[];
}

const formatOptions = ['date_format', 'decimal_comma', 'thousands', 'sheet', 'skip_top'] as const;

/** Adds a file's columns to the mapping, which all files of the same type share. */
async function mappedWith(
  mapped: Mapped = { columns: {} },
  path: string,
  type: UploadType,
  encoding: string | undefined,
  derivesUsers: boolean,
): Promise<{ readonly mapped: Mapped; readonly reasons: readonly string[] }> {
  const { layout, header, cellsOf, ...table } = await findTable(path, type, encoding);
  const { columns } = mapped;
  const known = new Set(Object.keys(columns));
  Object.assign(columns, suggestColumns(type, header, columns));
  const ofFile = Object.fromEntries(header.map((column) => [column, columns[column] ?? '']));
  const ids = suggestIdFrom(type, ofFile, (column) => cellsOf(column).map(String), derivesUsers);
  // Numbers and booleans in JSON need no conversion.
  const textsOf = (column: string) => cellsOf(column).filter((cell) => typeof cell === 'string');
  const suggested = suggestFormats(type, ofFile, textsOf);
  const reasons = [...table.reasons, ...ids.reasons, ...suggested.reasons];
  if (ids.idFrom !== undefined) mapped.id_from ??= ids.idFrom;
  const options = { ...suggested.formats, ...layout };
  for (const option of known.size > 0 ? formatOptions : []) {
    if (mapped[option] === options[option]) continue;
    // One format for both files could read a number or a date of one of them wrong.
    delete mapped[option];
    delete options[option];
    reasons.push(`"${option}" is left out, because other files of ${type} are written in another way`);
  }
  const values = { ...mapped.values, ...options.values };
  Object.assign(mapped, options, Object.keys(values).length > 0 && { values });
  return { mapped, reasons };
}

function missingOf(type: UploadType, { columns, id_from }: Mapped): string[] {
  const mapped = Object.values(columns);
  return schemas[type].required
    .filter((field) => !mapped.includes(field) && !(id_from && field === resources[type].idField))
    .map((field) => `${type}: no column matches ${field}, which is required; specify its column in the file`);
}

async function writeNew(path: string, text: string): Promise<void> {
  await writeFile(path, text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw new UsageError(`${path} already exists. Remove it to write it again.`);
    throw notWritten(path, error);
  });
}
