import { viewOf } from '../postgres/binary/array-writer.ts';
import { readNumeric } from '../postgres/binary/binary-numeric.ts';
import { type EncodedRows, IndexedRows } from '../postgres/binary/encoded-rows.ts';
import type { ColumnType } from '../registry/fields.ts';
import { perType } from '../registry/resources.ts';
import { dateOf, isoOf } from '../registry/times.ts';
import { sentFields, type UploadType } from '../registry/upload-types.ts';

const membersOf = perType((type: UploadType) => {
  return Object.entries(sentFields(type)).map(([name, { column }]) => ({
    name: JSON.stringify(name),
    read: readers[column],
  }));
});

/** Writes rows as JSON, each with the fields in `sent`, or without null if it is undefined. */
export function recordWriter(type: UploadType, rows: EncodedRows): (row: number, sent?: number) => string {
  const indexed = new IndexedRows(rows);
  const members = membersOf(type);
  return (row, sent) => {
    const written = members.flatMap(({ name, read }, at) => {
      const isNull = indexed.isNullAt(at, row);
      const isLeftOut = sent === undefined ? isNull : (sent & (1 << at)) === 0;
      return isLeftOut ? [] : [`${name}:${isNull ? 'null' : read(indexed.valueAt(at, row))}`];
    });
    return `{${written.join(',')}}`;
  };
}

/** Values start after their length of four bytes. */
const start = 4;

function textOf(value: Buffer): string {
  return value.toString('utf8', start);
}

const readers: Record<ColumnType, (value: Buffer) => string> = {
  uuid: (value) => `"${value.toString('hex', start).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}"`,
  text: (value) => JSON.stringify(textOf(value)),
  date: (value) => `"${dateOf(value.readInt32BE(start))}"`,
  timestamptz: (value) => `"${isoOf(instantIn(value)).replace(/\.?0+Z$/, 'Z')}"`,
  numeric: (value) => String(readNumeric(viewOf(value), start)),
  float8: (value) => String(value.readDoubleBE(start)),
  bool: (value) => String(value[start] === 1),
  // Sent as text.
  jsonb: textOf,
};

function instantIn(value: Buffer): bigint {
  return value.readBigInt64BE(start);
}
