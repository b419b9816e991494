import { spawnSync } from 'node:child_process';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openFile } from '../../src/files/reading/read-file.ts';
import { JsonScanner } from '../../src/parsing/text/json-scanner.ts';
import { ids, makeFile, readAll } from './support.ts';

const shops = Array.from({ length: 3_000 }, (_, at) => ({
  shop_id: ids.shop,
  name: `Shop "${at}" \\ [{é`,
  region: 'GB',
}));
const ndjson = shops.map((shop) => `${JSON.stringify(shop)}\n`).join('');

describe('an NDJSON file', () => {
  it('is sent unchanged, with the line of each record', async () => {
    const { records, failures } = await readAll(
      makeFile('shops.ndjson', `\ufeff${ndjson.replaceAll('\n', '\r\n\r\n')}`),
    );
    expect(failures).toEqual([]);
    expect(records.map(({ record }) => record)).toEqual(shops);
    expect(records[2]!.line).toBe(5);
  });

  it('is not stopped by a malformed line', async () => {
    const text = `{"shop_id": "a"}\n{"shop_id": \n[1]\nnull\n{"name":"${'x'.repeat(1_500_000)}"}\n{"shop_id": "b"}`;
    const { records, failures } = await readAll(makeFile('shops.ndjson', text));
    expect(records).toEqual([
      { line: 1, record: { shop_id: 'a' } },
      { line: 6, record: { shop_id: 'b' } },
    ]);
    expect(failures.map(({ line, problems }) => [line, problems[0]!.code])).toEqual([
      [2, 'malformed_json'],
      [3, 'not_an_object'],
      [4, 'not_an_object'],
      [5, 'record_too_large'],
    ]);
    expect(failures[0]!.record).toBe('{"shop_id": ');
    const rest = await readAll(makeFile('shops.ndjson', text), { skipRecords: 3 });
    expect([rest.failures.length, rest.records.length]).toEqual([2, 1]);
  });

  it('is converted only if an option requires it', async () => {
    const sale = {
      transaction_id: ids.transaction,
      Shop: ids.shop,
      amount: '2,50',
      savings: 1.5,
      created: '14/03/2026',
      source: '',
    };
    const path = makeFile('transactions.ndjson', `${JSON.stringify(sale)}\n`);
    expect((await readAll(path)).sent).toEqual([sale]);
    const { sent } = await readAll(path, {
      map: { Shop: 'shop_id' },
      decimalComma: true,
      dateFormat: 'dd/MM/yyyy',
    });
    const { Shop: _, ...others } = sale;
    expect(sent).toEqual([{ ...others, shop_id: ids.shop, amount: 2.5, created: '2026-03-14T00:00:00Z' }]);
    const { failures } = await readAll(path, {
      map: { amount: 'savings', savings: '' },
      dateFormat: 'MM/dd/yyyy',
    });
    expect(failures).toMatchObject([{ line: 1, record: sale }]);
    // All problems are listed together, with the names that the file uses.
    expect(failures[0]?.problems).toMatchObject([
      { column: 'created', code: 'invalid_format' },
      { column: 'shop_id', code: 'required' },
      { column: 'region', code: 'required' },
      { column: 'amount', field: 'savings', code: 'wrong_type' },
      { column: 'amount', field: 'amount', code: 'required' },
    ]);
  });
});

describe('a JSON file', () => {
  it.each([
    ['an array', JSON.stringify(shops)],
    ['an indented array', JSON.stringify(shops, null, 2)],
    [
      'an object with records',
      JSON.stringify({ next: [{ records: [] }], records: shops, next_cursor: null }, null, 1),
    ],
  ])('may be %s', async (_, text) => {
    const { records, failures } = await readAll(makeFile('shops.json', text));
    expect(failures).toEqual([]);
    expect(records.map(({ record }) => record)).toEqual(shops);
    expect(records.at(-1)!.line).toBe(3_000);
    expect((await readAll(makeFile('shops.json', text), { skipRecords: 2_990 })).records).toEqual(
      records.slice(2_990),
    );
  });

  it('is read the same wherever it is split', () => {
    const text = ' {"a" : "]\\\\" , "records":[ {"x":"\\"}"} ,[1,{}],12, "s" ] , "b":{"c":[]} } ';
    for (let cut = 0; cut <= text.length; cut++) {
      const scanner = new JsonScanner();
      const found: string[] = [];
      scanner.push(text.slice(0, cut), false, found);
      scanner.push(text.slice(cut), false, found);
      scanner.push('', true, found);
      expect(found).toEqual(['{"x":"\\"}"}', '[1,{}]', '12', '"s"']);
    }
  });

  it('is not stopped by an invalid record', async () => {
    const { records, failures } = await readAll(
      makeFile('shops.json', '[{"name":"a"},7,{"name":tru},{"name":"b"}]'),
    );
    expect(records.map(({ line }) => line)).toEqual([1, 4]);
    expect(failures.map(({ line, problems }) => [line, problems[0]!.code])).toEqual([
      [2, 'not_an_object'],
      [3, 'malformed_json'],
    ]);
  });

  it.each([
    ['record 2 is cut off', '[{"name":"a"},{"na'],
    ['record 2 has no comma before it', '[{"name":"a"} {"name":"b"}]'],
    ['record 2 has an extra comma before it', '[{"name":"a"},,{"name":"b"}]'],
    ['record 2 has no comma before it', '[{"name":"a"}}'],
    ['name the file .ndjson', '{"name":"a"}\n{"name":"b"}'],
    ['more text after the end', '[{"name":"a"}]\n[{"name":"b"}]'],
    ['its "records" is not an array', '{"records": {}}'],
    ['begins with neither [ nor {', 'shop_id,name'],
    ['record 2 is larger than', `[{"name":"a"},{"name":"${'x'.repeat(1_500_000)}"}]`],
  ])('that is broken reports where: %s', async (message, text) => {
    const path = makeFile('shops.json', text);
    await expect(readAll(path)).rejects.toThrow(message);
    await expect(readAll(path)).rejects.toThrow(path);
  });
});

describe('a truncated JSON file', () => {
  it('is read up to there', async () => {
    const file = await openFile(makeFile('shops.json', '[{"name":"a"},{"name":"b"},{"na'), {});
    const names: unknown[] = [];
    const read = async () => {
      for await (const { records } of file.chunks()) names.push(...records.map(({ record }) => record.name));
    };
    await expect(read()).rejects.toThrow('record 3 is cut off');
    expect(names).toEqual(['a', 'b']);
  });
});

describe('a compressed file', () => {
  it.each([
    ['shops.ndjson.gz', gzipSync(ndjson)],
    ['shops.ndjson.zst', zstdCompressSync(ndjson)],
  ])('%s is read like its content', async (name, bytes) => {
    const { file, sent } = await readAll(makeFile(name, bytes));
    expect(sent).toEqual(shops);
    expect([file.bytes, file.bytesRead()]).toEqual([bytes.length, bytes.length]);
  });

  it.each([
    ['shops.ndjson.gz', gzipSync(ndjson)],
    ['shops.ndjson.zst', zstdCompressSync(ndjson)],
  ])('%s that is cut short is reported as such', async (name, bytes) => {
    await expect(readAll(makeFile(name, bytes.subarray(0, bytes.length / 2)))).rejects.toThrow(
      /it cannot be decompressed .*copy it again/,
    );
  });
});

describe('standard input', () => {
  const program = `
    import { openFile } from ${JSON.stringify(new URL('../../src/files/reading/read-file.ts', import.meta.url).href)};
    const file = await openFile('-', { type: 'shops' });
    let count = 0;
    for await (const { records } of file.chunks()) count += records.length;
    console.log(file.format, count, file.bytes);`;
  const run = (input: string | Buffer) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', program], { input, encoding: 'utf8' });

  it.each([
    [
      'csv',
      `shop_id,name,region\n${ids.shop},Corner Bakery,GB\n`.concat(
        `${ids.shop},Corner Bakery,GB\n`.repeat(2_999),
      ),
    ],
    ['ndjson', ndjson],
    ['json', JSON.stringify(shops)],
    ['json', JSON.stringify({ records: shops })],
    ['ndjson', gzipSync(ndjson)],
  ])('is recognised as %s by its first characters', (format, input) => {
    expect(run(input).stdout).toBe(`${format} 3000 undefined\n`);
  });

  it('cannot be Parquet', () => {
    expect(run('PAR1....').stderr).toContain('standard input: Parquet is read from its end');
  });
});
