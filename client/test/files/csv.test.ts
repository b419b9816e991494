import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openFile } from '../../src/files/reading/read-file.ts';
import { CsvParser } from '../../src/parsing/text/csv-parser.ts';
import { ids, makeFile, readAll } from './support.ts';

const bakery = { shop_id: ids.shop, name: 'Corner Bakery', region: 'GB' };

describe('a CSV file', () => {
  it('may have a byte order mark, CRLF, blank lines and spaces around its column names', async () => {
    const path = makeFile('shops.csv', `\ufeffshop_id, name ,region\r\n\r\n${ids.shop},Corner Bakery,GB\r\n`);
    const { records, failures } = await readAll(path);
    expect(failures).toEqual([]);
    expect(records).toEqual([{ line: 3, record: bakery, cells: [ids.shop, 'Corner Bakery', 'GB'] }]);
  });

  it('may have another separator, and no newline at its end if its last value is in quotes', async () => {
    for (const separator of [';', '\t', '|', ','])
      expect(
        (
          await readAll(
            makeFile(
              'shops.csv',
              `shop_id${separator}"name"${separator}region\n${ids.shop}${separator}Corner Bakery${separator}"GB"`,
            ),
          )
        ).sent,
      ).toEqual([bakery]);
  });

  it('may be UTF-16 with a byte order mark, as spreadsheets write "Unicode text"', async () => {
    const text = `\ufeffshop_id\tname\tregion\r\n${ids.shop}\tCafé 東\tGB\r\n`;
    const { sent } = await readAll(makeFile('shops.csv', Buffer.from(text, 'utf16le')));
    expect(sent).toEqual([{ ...bakery, name: 'Café 東' }]);
  });

  it('may have separators, doubled quotes and newlines within quotes, and lines are counted correctly', async () => {
    const path = makeFile(
      'shops.csv',
      `shop_id,name,region\n${ids.shop},"Fish, ""chips""\r\nand more",GB\n${ids.shop},5" nails,GB\n${ids.shop},"",GB\n`,
    );
    const { records } = await readAll(path);
    expect(records.map(({ line, record }) => [line, record.name])).toEqual([
      [2, 'Fish, "chips"\r\nand more'],
      [4, '5" nails'],
      [5, undefined],
    ]);
  });

  it.each([
    ['shops.csv', `shop_id,name,region\n${ids.shop},Corner Bakery,GB\n`, `${ids.shop},Corner Bakery,G`],
    ['shops.csv', `shop_id,name,region\n${ids.shop},Corner Bakery,GB\n`, `${ids.shop},"Corner`],
    ['shops.csv', `shop_id,name,region\n${ids.shop},Corner Bakery,GB\n`, `${ids.shop},Corner`],
    ['shops.ndjson', `${JSON.stringify(bakery)}\n`, JSON.stringify(bakery).slice(0, -1)],
  ])('%s whose last line is cut off is refused after the line before', async (name, complete, last) => {
    const file = await openFile(makeFile(name, complete + last), {});
    const read: unknown[] = [];
    const reading = async () => {
      for await (const { records } of file.chunks()) read.push(...records.map(({ record }) => record));
    };
    await expect(reading()).rejects.toThrow(
      /line [23] .* no line break at its end, so the file may be cut off/,
    );
    expect(read).toEqual([bakery]);
    expect((await readAll(makeFile(name, complete))).sent).toEqual([bakery]);
  });

  it('is not stopped by a malformed row, and each failure has its line and its cells', async () => {
    const path = makeFile(
      'shops.csv',
      [
        'shop_id,name,region',
        `${ids.shop},"Corner" Bakery,GB`,
        `${ids.shop},Corner Bakery`,
        `${ids.shop},Corner,Bakery,GB`,
        `${ids.shop},Corner Bakery,GB,,`,
        `${ids.shop},"Corner Bakery,GB`,
        `${ids.shop},Corner Bakery,GB`,
        `${ids.shop},"Corner Bakery",GB`,
        `${ids.shop},"never closed,GB`,
        `${ids.shop},Corner Bakery,GB`,
        '',
      ].join('\n'),
    );
    const { records, failures } = await readAll(path);
    expect(records.map(({ line }) => line)).toEqual([5, 7, 8, 10]);
    expect(records.every(({ record }) => record.name === 'Corner Bakery')).toBe(true);
    expect(failures.map(({ line, problems }) => [line, problems[0]!.code])).toEqual(
      [2, 3, 4, 6, 9].map((line) => [line, 'malformed_row']),
    );
    expect(failures[1]!.problems[0]!.message).toContain('has 2 cells where the header has 3');
    expect(failures[1]!.cells).toEqual([ids.shop, 'Corner Bakery']);
  });

  it('reports the line and the column of characters that are not UTF-8', async () => {
    const mixed = Buffer.concat([
      Buffer.from(`shop_id,name,region\n${ids.shop},Käse,DE\n`),
      Buffer.from(`${ids.shop},Café,GB\n${ids.shop},Corner Bakery,GB\n`, 'latin1'),
    ]);
    const { sent, failures } = await readAll(makeFile('shops.csv', mixed));
    expect(sent.slice(1)).toEqual([bakery]);
    expect(failures).toMatchObject([{ line: 3, problems: [{ column: 'name', code: 'invalid_characters' }] }]);
  });

  it('continues after an endless line, and keeps none of it in memory', async () => {
    const path = makeFile(
      'shops.csv',
      `shop_id,name,region\n${'x'.repeat(1_000_000)}\n${ids.shop},Corner Bakery,GB\n${ids.shop},"${'y,\n'.repeat(200_000)}`,
    );
    const { records, failures } = await readAll(path);
    expect(failures[0]).toMatchObject({ line: 2, problems: [{ code: 'malformed_row' }] });
    expect(records).toMatchObject([{ line: 3, record: bakery }]);
    expect(failures.length).toBe(1 + 200_000);
  });

  it('can be continued after the records that were read before', async () => {
    const rows = Array.from(
      { length: 5_000 },
      (_, at) => `${ids.shop},Shop ${at},${at % 7 === 0 ? 'GB,1,2' : 'GB'}`,
    );
    const path = makeFile('shops.csv', `shop_id,name,region\n${rows.join('\n')}\n`);
    const all = await readAll(path);
    const rest = await readAll(path, { skipRecords: 1_234 });
    expect(rest.records.length + rest.failures.length).toBe(5_000 - 1_234);
    expect(rest.records).toEqual(all.records.filter(({ line }) => line >= 1_236));
    expect(rest.failures).toEqual(all.failures.filter(({ line }) => line >= 1_236));
    expect((await readAll(path, { skipRecords: 5_000 })).records).toEqual([]);
  });

  it('is read the same wherever it is split', () => {
    const text = 'a;b\r\n"x ""y""";"1\r\n2"\r\n\r\n3;4" \n"5";\r\n"";"6"';
    const whole = new CsvParser(';').push(text, true);
    expect(whole.map(({ line, cells }) => [line, ...cells])).toEqual([
      [1, 'a', 'b'],
      [2, 'x "y"', '1\r\n2'],
      [5, '3', '4" '],
      [6, '5', ''],
      [7, '', '6'],
    ]);
    for (let cut = 1; cut < text.length; cut++)
      for (let second = cut; second < text.length; second++) {
        const parser = new CsvParser(';');
        const pieces = [text.slice(0, cut), text.slice(cut, second), text.slice(second)];
        expect(pieces.flatMap((piece, at) => parser.push(piece, at === 2))).toEqual(whole);
      }
  });

  it('returns every table that is quoted according to RFC 4180', () => {
    const cell = fc.string({ unit: fc.constantFrom('a', 'é', '"', ',', '\n', '\r', ' '), maxLength: 6 });
    const quote = (text: string, isQuoted: boolean) =>
      isQuoted || text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const table = fc
      .integer({ min: 1, max: 4 })
      .chain((width) =>
        fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 6 }),
      );
    fc.assert(
      fc.property(
        table,
        fc.boolean(),
        fc.constantFrom('\n', '\r\n'),
        fc.array(fc.nat(80)),
        (rows, isQuoted, end, cuts) => {
          const text = rows.map((row) => row.map((each) => quote(each, isQuoted)).join(',') + end).join('');
          const places = [0, ...cuts.sort((a, b) => a - b), text.length];
          const parser = new CsvParser(',');
          const read = places.flatMap((place, at) =>
            parser.push(text.slice(place, places[at + 1] ?? place), at === places.length - 1),
          );
          expect(read.map(({ cells }) => cells)).toEqual(rows);
          expect(read.every(({ malformed }) => malformed === undefined)).toBe(true);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('explains what to do if it is empty, missing, a folder or a spreadsheet', async () => {
    await expect(readAll(makeFile('shops.csv', ''))).rejects.toThrow(/shops\.csv: it is empty/);
    await expect(readAll(makeFile('shops.csv', '\n\n'))).rejects.toThrow(/it is empty; it needs a header/);
    await expect(readAll('no-such/shops.csv')).rejects.toThrow('no-such/shops.csv: there is no such file');
    await expect(readAll('.', { type: 'shops' })).rejects.toThrow('it is a folder');
    const sheet = makeFile('shops.csv', Buffer.from([0x50, 0x4b, 3, 4, 0, 0]));
    await expect(readAll(sheet)).rejects.toThrow(
      'it is a ZIP archive; unpack it, or, if it is a spreadsheet, name it .xlsx',
    );
  });
});
