import { strToU8, zipSync } from 'fflate';
import { describe, expect, it } from 'vitest';
import { ids, makeFile, readAll } from './support.ts';

interface Cell {
  readonly number: string;
  readonly isDate?: boolean;
}

/** Creates a spreadsheet like the ones that Excel writes, with strings in a shared table and dates as styled numbers. */
function makeXlsx(
  name: string,
  rows: readonly (readonly (string | boolean | Cell | null)[])[],
  { is1904 = false } = {},
): string {
  const texts: string[] = [];
  const cellOf = (cell: string | boolean | Cell | null, at: string) => {
    if (cell === null) return '';
    if (typeof cell === 'boolean') return `<c r="${at}" t="b"><v>${cell ? 1 : 0}</v></c>`;
    if (typeof cell === 'string') return `<c r="${at}" t="s"><v>${texts.push(cell) - 1}</v></c>`;
    return `<c r="${at}"${cell.isDate ? ' s="1"' : ''}><v>${cell.number}</v></c>`;
  };
  const rowsXml = rows.map((row, at) => {
    const cells = row.map((cell, index) => cellOf(cell, `${String.fromCharCode(65 + index)}${at + 1}`));
    return `<row r="${at + 1}">${cells.join('')}</row>`;
  });
  const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
  const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
  const parts = {
    'xl/workbook.xml': `<workbook xmlns="${main}" xmlns:r="${relations}"><workbookPr date1904="${is1904 ? 1 : 0}"/><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="${relations}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="${relations}/styles" Target="styles.xml"/><Relationship Id="rId3" Type="${relations}/sharedStrings" Target="sharedStrings.xml"/></Relationships>`,
    'xl/styles.xml': `<styleSheet xmlns="${main}"><cellStyleXfs count="1"><xf numFmtId="0"/></cellStyleXfs><cellXfs count="2"><xf numFmtId="0" xfId="0"/><xf numFmtId="22" xfId="0" applyNumberFormat="1"/></cellXfs></styleSheet>`,
    'xl/worksheets/sheet1.xml': `<worksheet xmlns="${main}"><sheetData>${rowsXml.join('')}</sheetData></worksheet>`,
    'xl/sharedStrings.xml': `<sst xmlns="${main}">${texts.map((text) => `<si><t>${text}</t></si>`).join('')}</sst>`,
  };
  const xml = (text: string) => strToU8(`<?xml version="1.0" encoding="UTF-8"?>${text}`);
  const zipped = Object.entries(parts).map(([path, text]) => [path, xml(text)] as const);
  return makeFile(name, zipSync(Object.fromEntries(zipped)));
}

const header = ['transaction_id', 'shop_id', 'region', 'savings', 'amount', 'created', 'is_deleted', null];
const number = (text: string): Cell => ({ number: text });
/** 14 March 2026, 09:26:53, as the number of days that Excel stores. The number is slightly too low, as in real files. */
const time: Cell = { number: '46095.393668981480', isDate: true };

describe('a spreadsheet', () => {
  it('is read like a CSV: numbers, times and booleans by their type, empty rows skipped, rows numbered', async () => {
    const path = makeXlsx('transactions.xlsx', [
      [],
      header,
      [ids.transaction, ids.shop, 'GB', number('2.5'), number('22.49'), time, false, null],
      [],
      [ids.transaction, ids.shop, 'GB', 'a lot', number('22.49'), time, true],
    ]);
    const { file, records, failures } = await readAll(path);
    expect(file).toMatchObject({ format: 'xlsx', type: 'transactions' });
    expect(records).toMatchObject([
      { line: 3, record: { savings: 2.5, amount: 22.49, is_deleted: false, shop_id: ids.shop } },
    ]);
    expect(records[0]?.record.created).toBe('2026-03-14T09:26:53.000Z');
    expect(failures).toMatchObject([{ line: 5, problems: [{ column: 'savings', code: 'wrong_type' }] }]);
  });

  it('is continued after the records that are done', async () => {
    const row = (amount: string) => [
      ids.transaction,
      ids.shop,
      'GB',
      number('1'),
      number(amount),
      null,
      null,
    ];
    const path = makeXlsx('transactions.xlsx', [header, row('1'), [], row('2'), row('3')]);
    const { records } = await readAll(path, { skipRecords: 2 });
    expect(records).toMatchObject([{ line: 5, record: { amount: 3 } }]);
  });

  it('may have numbers in texts, and keys that are numbers', async () => {
    const path = makeXlsx('transactions.xlsx', [
      ['Receipt', 'shop_id', 'region', 'savings', 'amount'],
      [number('1001'), number('7'), 'DE', '1.234,50', number('22.49')],
    ]);
    const { sent, records } = await readAll(path, { decimalComma: true, idFrom: ['Receipt'] });
    expect(sent).toMatchObject([{ savings: 1234.5, amount: 22.49 }]);
    expect(records[0]?.keys).toEqual({ shop_id: '7' });
    const csv = makeFile('transactions.csv', 'Receipt,shop_id,region,savings,amount\n1001,7,DE,1,1\n');
    const { sent: same } = await readAll(csv, { idFrom: ['Receipt'] });
    expect(sent[0]).toMatchObject({ transaction_id: same[0]?.transaction_id, shop_id: same[0]?.shop_id });
  });

  it.each([false, true])('may count days from 1904 (%s), and its durations are not dates', async (is1904) => {
    const created = async (...days: number[]) => {
      const cells = days.map((day): Cell => ({ number: String(day - (is1904 ? 1_462 : 0)), isDate: true }));
      const rows = cells.map((cell) => [ids.shop, 'Bakery', 'GB', cell]);
      const path = makeXlsx('shops.xlsx', [['shop_id', 'name', 'region', 'created'], ...rows], { is1904 });
      const { sent, failures } = await readAll(path);
      return [...sent.map((one) => one.created), ...failures.map(({ problems }) => problems[0]?.message)];
    };
    const second = 1 / 86_400;
    // Whether a sum comes out too low depends on its last bits.
    const times = Array.from({ length: 100 }, (_, at) => 46_095 + at * 977 * second);
    expect(await created(...times)).toEqual(
      times.map((_, at) => new Date(Date.UTC(2026, 2, 14, 0, 0, at * 977)).toISOString()),
    );
    const refused = expect.stringContaining('fractions of a second');
    const halves = Array.from({ length: 10 }, (_, at) => 46_095.4 + (at + 0.499) * second);
    expect(await created(...halves)).toEqual(halves.map(() => refused));
    expect(await created(46_095.4 + 0.499 * second)).toEqual([refused]);
    // A duration of 100 days and 2.5 hours.
    const duration = 100 + 2.5 / 24 + (is1904 ? 1_462 : 0);
    expect(await created(duration)).toEqual([expect.stringContaining('is a duration')]);
  });

  it('may have numbers that are formatted as dates, which are refused with their row and column', async () => {
    const ean = '4006381333931';
    const path = makeXlsx('shops.xlsx', [
      ['shop_id', 'name', 'region', 'created', 'note'],
      [ids.shop, 'Bakery', 'GB', time, { number: ean, isDate: true }],
      [ids.shop, 'Bakery', 'GB', { number: ean, isDate: true }, null],
      [ids.shop, { number: '5551234', isDate: true }, 'GB', time, null],
      [{ number: ean, isDate: true }, 'Bakery', 'GB', time, null],
      [null, null, null, { number: ean, isDate: true }],
    ]);
    const { records, failures } = await readAll(path);
    expect(records).toMatchObject([{ line: 2, record: { created: '2026-03-14T09:26:53.000Z' } }]);
    const message = expect.stringContaining('is a number that is formatted as a date');
    expect(failures).toMatchObject([
      { line: 3, problems: [{ column: 'created', field: 'created', message }] },
      { line: 4, problems: [{ column: 'name', field: 'name', message }] },
      { line: 5, problems: [{ column: 'shop_id', field: 'shop_id', message }] },
      { line: 6, problems: [{ column: 'created', message }] },
    ]);
  });

  it('never derives an id from a number that is formatted as a date', async () => {
    const path = makeXlsx('shops.xlsx', [
      ['EAN', 'name', 'region'],
      [{ number: '4006381333931', isDate: true }, 'Bakery', 'GB'],
      [number('4006381333931'), 'Bakery', 'GB'],
    ]);
    const { records, failures } = await readAll(path, { idFrom: ['EAN'] });
    expect(records).toMatchObject([{ line: 3 }]);
    const message = expect.stringContaining('is a number that is formatted as a date');
    expect(failures).toMatchObject([{ line: 2, problems: [{ column: 'EAN', field: 'shop_id', message }] }]);
    expect(failures[0]?.problems).toHaveLength(1);
    expect(failures[0]?.record).not.toHaveProperty('shop_id');
  });

  it('that is empty, not one, or too large explains what to do', async () => {
    await expect(readAll(makeXlsx('shops.xlsx', []))).rejects.toThrow(/its first sheet is empty; it needs/);
    await expect(readAll(makeFile('shops.xlsx', 'shop_id,name\n'))).rejects.toThrow(
      /shops\.xlsx: it cannot be read as a spreadsheet .*; save it again as \.xlsx, or save the sheet as CSV/,
    );
    await expect(readAll(makeFile('shops.xlsx', Buffer.alloc(10_485_761)))).rejects.toThrow(
      /it is larger than 10 MiB.*save the sheet as CSV/,
    );
  });
});
