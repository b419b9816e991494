import { describe, expect, it } from 'vitest';
import { type Cell, makeXlsx } from './make-xlsx.ts';
import { ids, makeFile, readAll } from './support.ts';

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

  it('with errors of formulas, or formulas without a result, is refused row by row, with the error', async () => {
    const error = (text: string) => ({ xml: `s="0" t="e"><f>1/0</f><v>${text}</v>` });
    const formula = (value: string) => ({ xml: `t="str"><f>A1</f>${value}` });
    const shop = (...cells: Parameters<typeof makeXlsx>[1][number]) => ['K1', 'Eck', 'DE', ...cells];
    const path = makeXlsx('shops.xlsx', [
      ['Nr', 'name', 'region', 'is_public', 'updated'],
      ['K1', error('#REF!'), 'DE', null],
      shop(error('#DIV/0!')),
      [error('#N/A'), 'Eck', 'DE'],
      ['K2', formula('<v>Am Markt</v>'), formula('<v>DE</v>'), { xml: '><f>1&lt;2</f><v/>' }],
      ['K3', formula(''), 'DE'],
      ['K4', 'Eck', 'DE', null, formula('<v></v>')],
    ]);
    const options = { idFrom: ['Nr'], isMerged: true };
    const { sent, failures } = await readAll(path, options);
    expect(
      failures.map(({ line, problems: [problem] }) => [line, problem?.column, problem?.message]),
    ).toEqual([
      [2, 'name', expect.stringContaining('#REF!')],
      [3, 'is_public', expect.stringContaining('#DIV/0!')],
      [4, 'Nr', expect.stringContaining('#N/A')],
      [5, 'is_public', expect.stringContaining('formula without a result')],
      [6, 'name', expect.stringContaining('formula without a result')],
    ]);
    expect(sent).toMatchObject([{ name: 'Eck', updated: null }]);
    expect(failures[0]?.sendable).toBeUndefined();
    expect(failures[0]?.record).toMatchObject({ name: { unclear: '#REF!' } });
    const csv = makeFile('shops.csv', 'Nr,name,region\nK1,#BEZUG!,DE\n#NV,Eck,DE\nK2,#1 Shop,DE\n');
    expect((await readAll(csv, options)).failures).toHaveLength(2);
    const replaced = await readAll(csv, { ...options, values: { name: { '#BEZUG!': null } } });
    expect(replaced.failures).toHaveLength(1);
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

describe('a spreadsheet with several sheets, titles and totals', () => {
  const shop = (name: string) => [ids.shop, name, 'GB'];
  const columns = ['shop_id', 'name', 'region'];
  const path = () =>
    makeXlsx('shops.xlsx', [columns, shop('first')], {
      others: {
        Notes: [[]],
        Shops: [['Shops of 2026'], [], columns, shop('second'), [], ['Total', null, null], []],
        Third: [columns, shop('third')],
      },
    });

  it('is read from the sheet that the mapping names, and the others with data are listed', async () => {
    const { file, sent } = await readAll(path());
    expect(sent.map(({ name }) => name)).toEqual(['first']);
    expect(file.otherSheets).toEqual(['Shops', 'Third']);
    for (const sheet of ['Third', 4]) {
      const named = await readAll(path(), { sheet });
      expect(named.sent.map(({ name }) => name)).toEqual(['third']);
      expect(named.file.otherSheets).toEqual([]);
    }
    const others = { Old: [columns, shop('old')] };
    const chart = makeXlsx('shops.xlsx', [columns, shop('first')], { others, hasChart: true });
    expect((await readAll(chart)).file.otherSheets).toEqual(['Old']);
    expect((await readAll(chart, { sheet: 2 })).sent.map(({ name }) => name)).toEqual(['old']);
    await expect(readAll(path(), { sheet: 'shops' })).rejects.toThrow(
      'it has no sheet "shops"; its sheets are "Sheet1", "Notes", "Shops", "Third"',
    );
    await expect(readAll(path(), { sheet: 'Notes' })).rejects.toThrow('its sheet "Notes" is empty');
  });

  it('is read without the rows to skip, with the rows numbered as in the sheet', async () => {
    const options = { sheet: 'Shops', skipTop: 2, skipBottom: 1 };
    const { file, records, failures } = await readAll(path(), options);
    expect(failures).toEqual([]);
    expect(records.map(({ line, record }) => [line, record.name])).toEqual([[4, 'second']]);
    expect(file.skippedRows?.()).toEqual([
      { line: 1, text: 'Shops of 2026' },
      { line: 6, text: 'Total' },
    ]);
    await expect(readAll(path(), { sheet: 'Third', skipBottom: 1 })).rejects.toThrow(
      'row 2 is a complete record, but "skip_bottom" in the mapping file leaves it out',
    );
    await expect(readAll(path(), { ...options, skipBottom: 9 })).rejects.toThrow(
      'leave no row for the header',
    );
  });
});
