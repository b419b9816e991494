import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFiles } from '../../files/find-files.ts';
import { openFile } from '../../files/reading/read-file.ts';
import { notWritten } from '../../files/write-whole.ts';
import { resources, type UploadType } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { suggestColumns } from '../../parsing/columns/suggest-columns.ts';
import { FileError } from '../../parsing/file-error.ts';
import { formats } from '../../parsing/values/formats.ts';
import { type Command, textOf, UsageError } from '../options/command.ts';
import { typeOf, warnSkipped } from '../options/file-options.ts';
import { print } from '../terminal/terminal.ts';

export const map: Command = {
  summary: 'write a mapping file that you can edit',
  help: `Usage: intake map <files or folders...> [options]

Writes mapping.json, in the folder if you specify one. It maps every column of the files to the field that its name suggests,
or to "" if the column is not sent. If the ids in a CSV file are not UUIDs, id_from derives them. Edit the file, then pass
it to check and upload with --mapping.

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
    for (const { path, type } of found.files)
      mapping[type] = await mappedWith(mapping[type], path, type, textOf(values, 'encoding'));
    const isFolder = positionals.length === 1 && first !== '-' && (await stat(first)).isDirectory();
    const output = isFolder ? join(first, 'mapping.json') : 'mapping.json';
    await writeNew(output, `${JSON.stringify(mapping, null, 2)}\n`);
    await print(
      `Wrote ${output}. Edit it, then run: intake check ${positionals.join(' ')} --mapping ${output}`,
      ...Object.entries(mapping).flatMap(([type, { columns }]) => missingOf(type as UploadType, columns)),
    );
    return 0;
  },
};

interface Mapped {
  readonly columns: Record<string, string>;
  id_from?: readonly string[];
}

/** Adds a file's columns to the mapping, which all files of the same type share. */
async function mappedWith(
  mapped: Mapped = { columns: {} },
  path: string,
  type: UploadType,
  encoding: string | undefined,
): Promise<Mapped> {
  const file = await openFile(path, { type, encoding, isHeaderOnly: true });
  const { header, idOf } = await sampleOf(file);
  const { columns } = mapped;
  const known = new Set(Object.keys(columns));
  Object.assign(columns, suggestColumns(type, header, columns));
  for (const column of header.filter((each) => !known.has(each))) {
    if (columns[column] !== resources[type].idField) continue;
    const id = idOf(column);
    if (id !== undefined && !formats.uuid.test(id)) mapped.id_from = [column];
  }
  return mapped;
}

/** Returns a file's columns, or the keys of its first JSON objects, and the first value of each CSV column. */
async function sampleOf(file: Awaited<ReturnType<typeof openFile>>) {
  const chunks = file.chunks()[Symbol.asyncIterator]();
  const { value } = await chunks.next();
  await chunks.return?.(undefined);
  await file.close();
  const [first] = value?.records ?? [];
  const members = (value?.records ?? []).flatMap(({ record }: { record: object }) => Object.keys(record));
  const header: readonly string[] = file.header ?? [...new Set<string>(members)];
  return {
    header,
    idOf: (column: string): string | undefined => first?.cells?.[header.indexOf(column)]?.trim(),
  };
}

function missingOf(type: UploadType, columns: Readonly<Record<string, string>>): string[] {
  const mapped = Object.values(columns);
  return schemas[type].required
    .filter((field) => !mapped.includes(field))
    .map((field) => `${type}: no column matches ${field}, which is required; specify its column in the file`);
}

async function writeNew(path: string, text: string): Promise<void> {
  await writeFile(path, text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw new UsageError(`${path} already exists. Remove it to write it again.`);
    throw notWritten(path, error);
  });
}
