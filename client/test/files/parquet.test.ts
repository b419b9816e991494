import { Buffer } from 'node:buffer';
import { type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, it } from 'vitest';
import { ids, makeFile, readAll } from './support.ts';

type Options = Omit<Parameters<typeof parquetWriteBuffer>[0], 'columnData'>;

function makeParquet(
  columns: readonly ColumnSource[],
  options: Options = {},
  name = 'transactions.parquet',
): string {
  return makeFile(name, Buffer.from(parquetWriteBuffer({ columnData: [...columns], ...options })));
}

const count = 20_000;
const many = <T>(make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at));
const idOf = (at: number) => `e98e7d6c-5b43-4a21-8c09-${String(at).padStart(12, '0')}`;

/** Strings, dictionaries, nulls, doubles, integers, booleans and timestamps that are spread over many pages. */
const columns: ColumnSource[] = [
  { name: 'transaction_id', data: many(idOf), type: 'STRING' },
  { name: 'shop_id', data: many(() => ids.shop), type: 'UUID' },
  { name: 'region', data: many((at) => (at % 2 ? 'GB' : 'IE')), type: 'STRING' },
  { name: 'savings', data: many((at) => at / 4), type: 'DOUBLE' },
  { name: 'amount', data: many((at) => BigInt(at + 1)), type: 'INT64' },
  { name: 'source', data: many((at) => (at % 3 ? 'online' : null)), type: 'STRING', nullable: true },
  { name: 'created', data: many((at) => new Date(1_773_480_413_000 + at)), type: 'TIMESTAMP' },
  { name: 'is_deleted', data: many((at) => at % 5 === 0), type: 'BOOLEAN' },
];

const records = many((at) => ({
  transaction_id: idOf(at),
  shop_id: ids.shop,
  region: at % 2 ? 'GB' : 'IE',
  savings: at / 4,
  amount: at + 1,
  ...(at % 3 ? { source: 'online' } : {}),
  created: new Date(1_773_480_413_000 + at).toISOString(),
  is_deleted: at % 5 === 0,
}));

describe('a Parquet file', () => {
  it.each([
    ['in one row group of small pages', { pageSize: 1_000 }],
    ['in many row groups', { rowGroupSize: 777 }],
    ['uncompressed', { codec: 'UNCOMPRESSED' as const }],
  ])('is read page by page, %s', async (_, options) => {
    const path = makeParquet(columns, options);
    const { file, records: read, failures } = await readAll(path);
    expect(failures).toEqual([]);
    expect(read.map(({ record }) => record)).toEqual(records);
    expect([read[0]!.line, read.at(-1)!.line]).toEqual([1, count]);
    expect(file.bytesRead()).toBe(file.bytes);
    const rest = await readAll(path, { skipRecords: 12_345 });
    expect(rest.records).toEqual(read.slice(12_345));
  });

  it('keeps decimals, days and microseconds exact', async () => {
    const path = makeParquet(
      [
        { name: 'transaction_id', data: [ids.transaction] },
        { name: 'shop_id', data: [ids.shop] },
        { name: 'region', data: ['GB'] },
        { name: 'savings', data: [0.29] },
        { name: 'amount', data: [22.49] },
        { name: 'created', data: [1_773_480_413_589_793n] },
        { name: 'updated', data: [new Date('2026-03-14T00:00:00Z')] },
      ],
      {
        schema: [
          { name: 'root', num_children: 7 },
          { name: 'transaction_id', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
          { name: 'shop_id', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
          { name: 'region', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
          {
            name: 'savings',
            type: 'INT32',
            converted_type: 'DECIMAL',
            scale: 2,
            precision: 9,
            repetition_type: 'REQUIRED',
          },
          {
            name: 'amount',
            type: 'INT32',
            converted_type: 'DECIMAL',
            scale: 2,
            precision: 9,
            repetition_type: 'REQUIRED',
          },
          { name: 'created', type: 'INT64', converted_type: 'TIMESTAMP_MICROS', repetition_type: 'REQUIRED' },
          { name: 'updated', type: 'INT32', converted_type: 'DATE', repetition_type: 'REQUIRED' },
        ],
      },
    );
    expect((await readAll(path)).sent).toEqual([
      {
        transaction_id: ids.transaction,
        shop_id: ids.shop,
        region: 'GB',
        savings: 0.29,
        amount: 22.49,
        created: '2026-03-14T09:26:53.589793Z',
        updated: '2026-03-14T00:00:00Z',
      },
    ]);
  });

  it('is mapped and converted like a CSV, and failures have record and column', async () => {
    const path = makeParquet([
      { name: 'Receipt', data: [1, 2], type: 'INT32' },
      { name: 'Shop', data: ['S001', 'S001'] },
      { name: 'region', data: ['GB', 'GB'] },
      { name: 'savings', data: [1.5, 2.5], type: 'DOUBLE' },
      { name: 'amount', data: ['2,50', 'two'] },
    ]);
    await expect(readAll(path)).rejects.toThrow('no column matches transaction_id');
    const options = { map: { Shop: 'shop_id' }, idFrom: ['Receipt'], decimalComma: true };
    const { records, failures } = await readAll(path, options);
    expect(records).toMatchObject([{ line: 1, record: { savings: 1.5, amount: 2.5 } }]);
    expect(failures).toMatchObject([
      {
        line: 2,
        problems: [{ column: 'amount', code: 'wrong_type' }],
        record: { savings: 2.5, amount: 'two' },
      },
    ]);
  });

  it('that cannot be read explains why', async () => {
    await expect(readAll(makeFile('shops.parquet', 'PAR1 and no more'))).rejects.toThrow(
      /shops\.parquet: it cannot be read as Parquet/,
    );
    await expect(readAll(makeFile('shops.parquet.gz', ''))).rejects.toThrow('unpack the file first');
    const list = makeParquet(
      [
        { name: 'shop_id', data: [['a'], ['b']] },
        { name: 'name', data: ['x', 'y'] },
        { name: 'region', data: ['GB', 'GB'] },
      ],
      {
        schema: [
          { name: 'root', num_children: 3 },
          { name: 'shop_id', repetition_type: 'REQUIRED', num_children: 1, converted_type: 'LIST' },
          { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
          { name: 'element', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
          { name: 'name', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
          { name: 'region', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
        ],
      },
      'shops.parquet',
    );
    await expect(readAll(list)).rejects.toThrow('column "shop_id" is a list or a struct');
  });
});
