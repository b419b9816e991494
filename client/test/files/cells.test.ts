import { describe, expect, it } from 'vitest';
import type { FileOptions } from '../../src/parsing/opened-file.ts';
import { dateReader } from '../../src/parsing/values/date-format.ts';
import { ids, makeFile, readAll } from './support.ts';

/** Reads a transaction with this cell in the given column. */
function transaction(column: string, cell: string, options: FileOptions = {}) {
  const cells: Record<string, string> = {
    transaction_id: ids.transaction,
    shop_id: ids.shop,
    region: 'GB',
    savings: '1',
    amount: '2',
    [column]: cell,
  };
  const quoted = Object.values(cells).map((each) => `"${each}"`);
  return readAll(makeFile('transactions.csv', `${Object.keys(cells)}\n${quoted}\n`), options);
}

async function read(column: string, cell: string, options: FileOptions = {}) {
  const { sent, failures } = await transaction(column, cell, options);
  return sent.length === 1 ? sent[0]![column] : failures[0]!.problems[0]!.code;
}

describe('a cell becomes the type of its field', () => {
  it('a number', async () => {
    expect(await read('amount', '22.49')).toBe(22.49);
    expect(await read('amount', ' 1e3 ')).toBe(1_000);
    expect(await read('discount_value', '-0.5')).toBe(-0.5);
    for (const cell of ['22,49', '1,234.50', '£5', '5 GBP', '0x1F', 'Infinity', 'NaN', '12-5'])
      expect(await read('amount', cell), cell).toBe('wrong_type');
  });

  it('a number with a decimal comma, if requested', async () => {
    const options = { decimalComma: true };
    const good = {
      '22,49': 22.49,
      '1.234,50': 1234.5,
      '1 234,5': 1234.5,
      '1.234': 1234,
      '-5': -5,
      '1234567': 1234567,
    };
    for (const [cell, number] of Object.entries(good))
      expect(await read('amount', cell, options), cell).toBe(number);
    // A point that does not separate groups of three digits may be a decimal point. Ignoring it would turn 12.5 into 125.
    for (const cell of ['12.5', '1.23,4', '1,2,3', '1,5 €'])
      expect(await read('amount', cell, options)).toBe('wrong_type');
  });

  it('a number with separators between thousands, if requested', async () => {
    const options = { thousands: true };
    const good = {
      '1,234.50': 1234.5,
      '1,234': 1234,
      "1'234'567.5": 1234567.5,
      '1 234': 1234,
      '-12.5': -12.5,
    };
    for (const [cell, number] of Object.entries(good))
      expect(await read('discount_value', cell, options), cell).toBe(number);
    for (const cell of ['12,5', '1,2345', '1.234,5', '1,234,5', '£1,234'])
      expect(await read('discount_value', cell, options), cell).toBe('wrong_type');
  });

  it('true or false', async () => {
    for (const cell of ['true', 'TRUE', 'yes', 'Y', 't', '1'])
      expect(await read('is_deleted', cell), cell).toBe(true);
    for (const cell of ['false', 'No', 'n', 'F', '0'])
      expect(await read('is_deleted', cell), cell).toBe(false);
    expect(await read('is_deleted', '2')).toBe('wrong_type');
  });

  it('a date or a date-time in ISO 8601, also in the forms of databases and spreadsheets', async () => {
    expect(await read('created', '2026-03-14T09:26:53.589793+01:00')).toBe(
      '2026-03-14T09:26:53.589793+01:00',
    );
    expect(await read('created', '2026-03-14 09:26:53')).toBe('2026-03-14T09:26:53');
    expect(await read('created', '2026-03-14 09:26:53 +0100')).toBe('2026-03-14T09:26:53+0100');
    expect(await read('created', '2026-03-14')).toBe('2026-03-14T00:00:00Z');
    expect(await read('created', '14/03/2026')).toBe('invalid_format');
    const customers = `customer_id,user_id,region,birthdate\n${ids.customer},${ids.user},GB,2004-02-29 00:00:00\n`;
    expect((await readAll(makeFile('customers.csv', customers))).sent[0]!.birthdate).toBe('2004-02-29');
  });

  it('nothing if it is empty or has only spaces, but text is kept unchanged', async () => {
    for (const column of ['student_id', 'source', 'discount_value', 'created', 'is_deleted'])
      expect((await transaction(column, '')).sent[0]).not.toHaveProperty(column);
    for (const column of ['student_id', 'discount_value', 'created', 'is_deleted'])
      expect((await transaction(column, '  ')).sent[0]).not.toHaveProperty(column);
    expect(await read('source', ' in-store ')).toBe(' in-store ');
    expect(await read('shop_id', ` ${ids.shop} `)).toBe(ids.shop);
  });

  it('or a failure with line and column of every bad cell', async () => {
    const header = 'transaction_id,shop_id,region,savings,amount,Made';
    const path = makeFile(
      'transactions.csv',
      `${header}\n${ids.transaction},${ids.shop},GB,none,"2,50",yesterday\n`,
    );
    const { failures } = await readAll(path, { map: { Made: 'created' } });
    expect(failures).toMatchObject([
      {
        line: 2,
        cells: [ids.transaction, ids.shop, 'GB', 'none', '2,50', 'yesterday'],
        problems: [
          { column: 'savings', field: 'savings', code: 'wrong_type' },
          {
            column: 'amount',
            field: 'amount',
            code: 'wrong_type',
            message: expect.stringContaining('--decimal-comma'),
          },
          { column: 'Made', field: 'created', message: expect.stringContaining('--date-format') },
        ],
      },
    ]);
  });
});

describe('--date-format', () => {
  it('reads dates and date-times of the same file', async () => {
    const header = 'customer_id,user_id,region,birthdate,created,updated';
    const path = makeFile(
      'customers.csv',
      `${header}\n${ids.customer},${ids.user},GB,29/02/2004,14/03/2026,14/03/2026 09:26:53\n`,
    );
    const { sent } = await readAll(path, { dateFormat: 'dd/MM/yyyy' });
    expect(sent[0]).toMatchObject({
      birthdate: '2004-02-29',
      created: '2026-03-14T00:00:00Z',
      updated: '2026-03-14T09:26:53Z',
    });
  });

  it.each([
    ['dd/MM/yyyy', '14/03/2026 09:26', '2026-03-14T09:26:00Z'],
    ['dd/MM/yyyy', '14/03/2026T09:26:53.5+01:00', '2026-03-14T09:26:53.5+01:00'],
    ['d.M.yyyy', '1.3.2026', '2026-03-01T00:00:00Z'],
    ['yyyyMMdd', '20260314', '2026-03-14T00:00:00Z'],
    ['MM/dd/yyyy hh:mm a', '03/14/2026 09:26 PM', '2026-03-14T21:26:00Z'],
    ['MM/dd/yyyy hh:mm a', '03/14/2026', '2026-03-14T00:00:00Z'],
    ['M/d/yyyy h:mm a', '3/4/2026 12:05 am', '2026-03-04T00:05:00Z'],
    ['dd-MMM-yyyy HH:mm:ss', '14-Mar-2026 09:26:53', '2026-03-14T09:26:53Z'],
    ["yyyy/MM/dd'T'HH:mm:ss.SSSX", '2026/03/14T09:26:53.589+0100', '2026-03-14T09:26:53.589+0100'],
  ])('%s reads %s', (format, cell, iso) => {
    expect(dateReader(format)(cell, 'date-time')).toBe(iso);
    const isMidnight = iso.startsWith('T00:00:00Z', 10);
    expect(dateReader(format)(cell, 'date')).toBe(isMidnight ? iso.slice(0, 10) : undefined);
  });

  it.each([
    ['dd/MM/yyyy', '31/02/2026'],
    ['dd/MM/yyyy', '03/14/2026'],
    ['dd/MM/yyyy', '4/3/2026'],
    ['dd/MM/yyyy', '14/03/26'],
    ['dd/MM/yyyy', '14/03/2026 25:00'],
    ['dd/MM/yyyy', '14/03/2026 noon'],
    ['dd/MM/yyyy HH:mm', '14/03/2026 09:26:53'],
    ['hh:mm a dd/MM/yyyy', '13:00 pm 14/03/2026'],
  ])('%s does not read %s', (format, cell) => {
    expect(dateReader(format)(cell, 'date-time')).toBeFalsy();
  });

  it('reads ISO 8601 in addition to its own form, and fails a cell of neither', async () => {
    expect(await read('created', '2026-03-14T09:26:53Z', { dateFormat: 'dd/MM/yyyy' })).toBe(
      '2026-03-14T09:26:53Z',
    );
    expect(await read('created', '03/14/2026', { dateFormat: 'dd/MM/yyyy' })).toBe('invalid_format');
    const iso = { dateFormat: 'yyyy-MM-dd HH:mm' };
    expect(await read('created', '2026-03-14T09:26:53Z', iso)).toBe('2026-03-14T09:26:53Z');
  });

  it('takes precedence over ISO 8601', async () => {
    expect(await read('created', '2026-03-04', { dateFormat: 'yyyy-dd-MM' })).toBe('2026-04-03T00:00:00Z');
    expect(await read('created', '2026-03-14', { dateFormat: 'yyyy-dd-MM' })).toBe('invalid_format');
  });

  it('explains what is wrong with a format', () => {
    expect(() => dateReader('dd/MM/yy')).toThrow('a two-digit year has no century');
    expect(() => dateReader('DD/MM/yyyy')).toThrow('"DD" is not part of a date format');
    expect(() => dateReader('MM/yyyy')).toThrow('needs a year, a month and a day');
  });
});
