import { expect, it } from 'vitest';
import { suggestIdFrom } from '../../src/parsing/columns/suggest-ids.ts';
import { ids } from './support.ts';

type Cells = Readonly<Record<string, readonly string[]>>;

function suggested(
  columns: Readonly<Record<string, string>>,
  cells: Cells,
  type: 'shops' | 'customers' = 'shops',
) {
  return suggestIdFrom(type, columns, (column) => cells[column] ?? [], false);
}

it('the id column is suggested if it or a reference has keys, unless a key is repeated', () => {
  const columns = { Nr: 'customer_id', Kurs: 'course_id' };
  const { idFrom, reasons } = suggested(columns, { Nr: [ids.customer, ' 7 '], Kurs: [] }, 'customers');
  expect([idFrom, reasons]).toEqual([['Nr'], ['"id_from": ["Nr"], because the column has "7"']]);
  const course = suggested(columns, { Nr: [ids.customer, ids.customer], Kurs: ['', 'K1'] }, 'customers');
  expect(course.reasons).toEqual(['"id_from": ["Nr"], because column "Kurs" has "K1"']);
  expect(suggested(columns, { Nr: [ids.customer], Kurs: [''] }, 'customers').reasons).toEqual([]);
  const repeated = suggested(columns, { Nr: ['7', '8', '7 '] }, 'customers');
  expect(repeated).toEqual({
    reasons: ['column "Nr" has "7" several times; set "id_from" to the columns that identify a record'],
  });
});

it('the first column is suggested if no column is the id and each record has another key', () => {
  const columns = { Filiale: '', Name: 'name' };
  const names = ['a', 'b', 'c'];
  expect(suggested(columns, { Filiale: ['1', '2', ''], Name: names })).toEqual({
    idFrom: ['Filiale'],
    reasons: [
      '"id_from": ["Filiale"], because no column matches shop_id, and each record has its own "Filiale", such as "1"; check that it never changes',
    ],
  });
  for (const Filiale of [['1', '2', '1'], ['1', '', ''], ['1'], ['1', '2', ids.shop]])
    expect(suggested(columns, { Filiale, Name: names.slice(0, Filiale.length) })).toEqual({ reasons: [] });
  expect(
    suggested({ Name: 'name', Filiale: '' }, { Filiale: ['1', '2'], Name: ['a', 'b'] }).idFrom,
  ).toBeUndefined();
  // Numbers next to UUIDs may only count the rows.
  expect(suggested({ Nr: '', Id: '' }, { Nr: ['1', '2'], Id: [ids.shop, ids.user] }).idFrom).toBeUndefined();
});

it('keys of users in interactions are pointed out unless they are derived', () => {
  const suggestion = (derivesUsers: boolean) =>
    suggestIdFrom('interactions', { Kunde: 'user_id' }, () => ['', '100500'], derivesUsers);
  expect(suggestion(true)).toEqual({ reasons: [] });
  expect(suggestion(false).reasons).toEqual([
    'column "Kunde" has "100500", which is sent unchanged; add "id_from": [] if customers have such keys',
  ]);
});
