import { type UploadType, uploadTypes } from '../generated/resources.ts';
import { FileError } from './file-error.ts';

export type FileFormat = 'csv' | 'ndjson' | 'json' | 'parquet' | 'xlsx';

const formats = new Map<string, FileFormat>([
  ['csv', 'csv'],
  ['tsv', 'csv'],
  ['ndjson', 'ndjson'],
  ['jsonl', 'ndjson'],
  ['json', 'json'],
  ['parquet', 'parquet'],
  ['xlsx', 'xlsx'],
]);

/** Returns the format that the file name indicates, ignoring .gz and .zst. */
export function formatOfName(fileName: string): FileFormat | undefined {
  const name = fileName.toLowerCase().replace(/\.(gz|zst)$/, '');
  return formats.get(name.slice(name.lastIndexOf('.') + 1));
}

/**
 * Returns the type that the file name indicates. For example, transactions.csv, 02-transactions_2026.csv.gz,
 * export_shop_categories.json and shopCategory.csv all contain the name of a type. The longest match wins, because
 * shop-categories contains categories. A plural wins over a singular, because shop-transactions means transactions.
 */
export function typeOfName(name: string): UploadType {
  const words = name
    .replace(/([a-z])(?=[A-Z])|([a-zA-Z])(?=\d)|(\d)(?=[a-zA-Z])/g, '$&-')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-');
  const named = namesIn(`-${words}-`, (type) => type);
  const found = named.length > 0 ? named : namesIn(`-${words}-`, singularOf);
  const [type] = found;
  if (type !== undefined && found.length === 1) return type;
  const meant = otherNames.find(([word]) => `-${words}-`.includes(`-${word}-`))?.[1];
  if (type === undefined && meant !== undefined)
    throw new FileError(
      `its name contains no type; did you mean ${meant}? Start the name with ${meant}, or add --type ${meant}`,
    );
  const what = type === undefined ? 'its name contains no type' : `its name contains ${found.join(' and ')}`;
  throw new FileError(
    `${what}; specify the type with --type, or start the name with one of ${uploadTypes.join(', ')}`,
  );
}

/**
 * Common names for types. They are only suggested, because an export may use them for something else. The first match wins,
 * because student-favorites contains student.
 */
const otherNames: readonly (readonly [string, UploadType])[] = [
  ['favourites', 'student-favourites'],
  ['favorites', 'student-favourites'],
  ['student', 'customers'],
  ['students', 'customers'],
  ['store', 'shops'],
  ['stores', 'shops'],
  ['sales', 'transactions'],
  ['orders', 'transactions'],
  ['purchases', 'transactions'],
  ['events', 'interactions'],
];

/** Returns the types whose names occur in the file name, without those that are only part of another match. */
function namesIn(words: string, nameOf: (type: UploadType) => string): UploadType[] {
  const isNamed = (name: string) =>
    words.includes(`-${name}-`) || words.includes(`-${name.replace('-', '')}-`);
  const named = uploadTypes.filter((type) => isNamed(nameOf(type)));
  return named.filter(
    (type) => !named.some((other) => other !== type && nameOf(other).includes(nameOf(type))),
  );
}

function singularOf(type: UploadType): string {
  return type.replace(/(ch)es$|(.)ies$|s$/, (_, ch, before) => ch ?? (before ? `${before}y` : ''));
}
