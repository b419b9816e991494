import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { FileOptions } from '../../src/parsing/opened-file.ts';
import { type Cell, makeXlsx } from './make-xlsx.ts';
import { makeFile, readAll } from './support.ts';

/** The types that JSON and spreadsheets have, and that CSV does not. */
type Value = string | number | boolean | null;

const text = fc.string({ unit: fc.constantFrom(...'aßé"\';,|#-€😀\n 1'), minLength: 1, maxLength: 8 });
const key = fc.oneof(fc.integer({ min: 1, max: 9_999_999 }), fc.stringMatching(/^[A-Z]-\d{1,4}$/));
const two = (number: number) => String(number).padStart(2, '0');
const day = fc
  .record({ day: fc.integer({ min: 1, max: 28 }), month: fc.integer({ min: 1, max: 12 }) })
  .map((date) => `${two(date.day)}.${two(date.month)}.2026`);
const amount = fc.integer({ min: 0, max: 999_999_999 }).map((cents) => cents / 100);

const row = fc.record({
  Bon: key,
  Filiale: key,
  Land: fc.constantFrom('Deutschland', 'AT', 'ch'),
  Betrag: fc.option(amount),
  Rabatt: amount,
  Datum: fc.option(day),
  // Formats that trim texts would store others, so a text has no spaces around it.
  Gutschein: fc.option(text.filter((one) => one.trim() === one)),
  is_deleted: fc.option(fc.boolean()),
});

const options: FileOptions = {
  isMerged: true,
  map: {
    Bon: '',
    Filiale: 'shop_id',
    Land: 'region',
    Betrag: 'amount',
    Rabatt: 'savings',
    Datum: 'created',
    Gutschein: 'discount_name',
  },
  values: { Land: { Deutschland: 'DE' } },
  default: { amount: 0.5 },
  idFrom: ['Filiale', 'Bon'],
  dateFormat: 'dd.MM.yyyy',
  decimalComma: true,
};

const form = fc.record({
  separator: fc.constantFrom(',', ';', '\t', '|'),
  lineBreak: fc.constantFrom('\n', '\r\n'),
  mark: fc.constantFrom('', '\ufeff'),
  isQuoted: fc.boolean(),
});

type Form = typeof form extends fc.Arbitrary<infer T> ? T : never;
type Row = Readonly<Record<string, Value>>;

function csvOf(header: readonly string[], rows: readonly Row[], how: Form) {
  const cellOf = (value: Value | undefined) => {
    const cell = typeof value === 'number' ? String(value).replace('.', ',') : String(value ?? '');
    const needsQuotes = how.isQuoted || cell.includes(how.separator) || /["\n]/.test(cell);
    return needsQuotes ? `"${cell.replaceAll('"', '""')}"` : cell;
  };
  const lines = [header.map(cellOf), ...rows.map((one) => header.map((name) => cellOf(one[name])))];
  return how.mark + lines.map((cells) => cells.join(how.separator) + how.lineBreak).join('');
}

function sheetCell(value: Value | undefined): string | boolean | Cell | null {
  return typeof value === 'number' ? { number: String(value) } : (value ?? null);
}

it('a table gives the same records as CSV, NDJSON, JSON and a spreadsheet, with the same mapping', async () => {
  const header = ['Bon', 'Filiale', 'Land', 'Betrag', 'Rabatt', 'Datum', 'Gutschein', 'is_deleted'];
  const read = async (path: string, rows: readonly Row[]) => {
    const { sent, failures } = await readAll(path, options);
    expect(failures).toEqual([]);
    expect(sent).toHaveLength(rows.length);
    return sent;
  };
  const property = fc.asyncProperty(
    fc.array(row, { minLength: 1, maxLength: 5 }),
    fc.shuffledSubarray(header, { minLength: header.length }),
    form,
    async (rows, columns, how) => {
      const objects = rows.map((one: Row) => Object.fromEntries(columns.map((name) => [name, one[name]])));
      const cells = rows.map((one: Row) => columns.map((name) => sheetCell(one[name])));
      const csv = await read(makeFile('transactions.csv', csvOf(columns, rows, how)), rows);
      const lines = objects.map((one) => `${JSON.stringify(one)}\n`).join('');
      expect(await read(makeFile('transactions.ndjson', lines), rows)).toEqual(csv);
      expect(await read(makeFile('transactions.json', JSON.stringify(objects)), rows)).toEqual(csv);
      expect(await read(makeXlsx('transactions.xlsx', [columns, ...cells]), rows)).toEqual(csv);
    },
  );
  await fc.assert(property, { numRuns: 50 });
});
