import { expect, it } from 'vitest';
import { suggestFormats } from '../../src/parsing/columns/suggest-formats.ts';

const columns = { Datum: 'created', Betrag: 'amount', Aktiv: 'is_deleted', Land: 'region', Ort: '' };

function suggested(cells: Partial<Record<keyof typeof columns, readonly string[]>>) {
  return suggestFormats('transactions', columns, (column) => cells[column as keyof typeof columns] ?? []);
}

it('formats and values are suggested if all cells confirm them, each with its reason', () => {
  const { formats, reasons } = suggested({
    Datum: ['14.03.2026', '', '01.02.2026 09:26'],
    Betrag: ['12', '1.234,5'],
    Aktiv: ['ja', 'Nein', 'no'],
    Land: ['Deutschland', 'AT', 'Switzerland'],
  });
  expect(formats).toEqual({
    date_format: 'dd.MM.yyyy',
    decimal_comma: true,
    values: { Aktiv: { ja: true, Nein: false }, Land: { Deutschland: 'DE', Switzerland: 'CH' } },
  });
  expect(reasons).toEqual([
    '"date_format": "dd.MM.yyyy", because column "Datum" has "14.03.2026"',
    '"decimal_comma": true, because column "Betrag" has "1.234,5"',
    '"values": {"ja":true,"Nein":false}, because column "Aktiv" has "ja"',
    '"values": {"Deutschland":"DE","Switzerland":"CH"}, because column "Land" has "Deutschland"',
  ]);
});

it('nothing is suggested for cells that need nothing, or that can be read in several ways', () => {
  expect(suggested({ Datum: ['2026-03-14'], Betrag: ['1.5'], Aktiv: ['yes'], Land: ['GB'] })).toEqual({
    formats: {},
    reasons: [],
  });
  const { formats, reasons } = suggested({
    Datum: ['01/02/2026'],
    Betrag: ['1,234'],
    Aktiv: ['ja', 'perhaps'],
    Land: ['Atlantis'],
  });
  expect(formats).toEqual({});
  expect(reasons).toEqual([
    'column "Datum" has "01/02/2026", but the day or the month may come first; set "date_format" yourself',
    'column "Betrag" has "1,234", but the comma may also separate thousands; set "decimal_comma" yourself',
  ]);
  expect(suggested({ Datum: ['01/13/2026', '1/2/2026'], Betrag: ['1,234.5'] }).formats).toEqual({
    date_format: 'M/d/yyyy',
    thousands: true,
  });
});
