import { describe, expect, it } from 'vitest';
import { parseMap, readMapping } from '../../src/files/mapping.ts';
import { openFile } from '../../src/files/reading/read-file.ts';
import { suggestField } from '../../src/parsing/columns/suggest-field.ts';
import { ids, makeFile, readAll } from './support.ts';

const row = `${ids.transaction},${ids.shop},GB,1,2`;

describe('the columns of a file', () => {
  it('that nearly match a field stop the file with a suggestion', async () => {
    const path = makeFile('transactions.csv', `transaction_id,Shop ID,region,Saving,amount\n${row}\n`);
    await expect(openFile(path, {})).rejects.toThrow(
      [
        `${path}:`,
        `  column "Shop ID" is not a field of transactions; did you mean shop_id? Add --map 'Shop ID=shop_id', or --map 'Shop ID=' to leave the column out`,
        `  column "Saving" is not a field of transactions; did you mean savings? Add --map 'Saving=savings', or --map 'Saving=' to leave the column out`,
      ].join('\n'),
    );
    const { sent } = await readAll(path, { map: { 'Shop ID': 'shop_id', Saving: 'savings' } });
    expect(sent).toEqual([
      { transaction_id: ids.transaction, shop_id: ids.shop, region: 'GB', savings: 1, amount: 2 },
    ]);
  });

  it.each([
    ['Shop ID', 'shop_id'],
    ['shopId', 'shop_id'],
    ['SHOP-ID', 'shop_id'],
    ['ammount', 'amount'],
    ['id', 'transaction_id'],
    ['Is Deleted?', 'is_deleted'],
    ['transacton id', 'transaction_id'],
    ['currency', undefined],
    ['shop', undefined],
    ['till', undefined],
    ['constructor', undefined],
  ])('"%s" suggests %s', (column, field) => {
    expect(suggestField(column, 'transactions', new Set())).toBe(field);
  });

  it('that resemble no field are left out and listed, and so are columns mapped to nothing', async () => {
    const path = makeFile(
      'transactions.csv',
      `transaction_id,shop_id,region,savings,amount,till,Created,constructor\n${row},7,never,x\n`,
    );
    const { file, sent } = await readAll(path, { map: { Created: '' } });
    expect(file.ignoredColumns).toEqual(['till', 'constructor']);
    expect(Object.keys(sent[0]!)).toEqual(['transaction_id', 'shop_id', 'region', 'savings', 'amount']);
  });

  it('can be looked up by field, to name the column in the service’s errors', async () => {
    const path = makeFile('transactions.csv', `Receipt,Shop ID,region,savings,amount\n${row}\n`);
    const file = await openFile(path, { map: { 'Shop ID': 'shop_id' }, idFrom: ['Receipt'] });
    expect(['shop_id', 'amount', 'transaction_id', 'source'].map((field) => file.columnOf(field))).toEqual([
      'Shop ID',
      'amount',
      'Receipt',
      null,
    ]);
  });

  it('must include every required field', async () => {
    const path = makeFile('transactions.csv', `shop_id,region,savings\n${ids.shop},GB,1\n`);
    await expect(openFile(path, {})).rejects.toThrow(
      /no column matches transaction_id, .*--id-from.*\n.*no column matches amount/,
    );
  });

  it('must not be the same field twice', async () => {
    const path = makeFile(
      'transactions.csv',
      `transaction_id,shop_id,Shop,region,savings,amount\n${row},1\n`,
    );
    await expect(openFile(path, { map: { Shop: 'shop_id' } })).rejects.toThrow(
      `the columns "shop_id" and "Shop" both match shop_id; leave one out with --map 'Shop='`,
    );
  });

  it('may be mapped for other files of the upload, but not to a field of another type', async () => {
    const path = makeFile('transactions.csv', `transaction_id,shop_id,region,savings,amount\n${row}\n`);
    expect((await readAll(path, { map: { Shop: 'shop_id', Name: 'name' } })).records.length).toBe(1);
    await expect(openFile(path, { map: { amount: 'name' } })).rejects.toThrow(
      'name is not a field of transactions',
    );
    await expect(openFile(path, { map: { amount: 'ammount' } })).rejects.toThrow('did you mean amount?');
  });
});

describe('a mapping', () => {
  it('is given as column=field', () => {
    expect(parseMap(['Shop ID=shop_id', 'a=b=amount', 'Till='])).toEqual({
      'Shop ID': 'shop_id',
      'a=b': 'amount',
      Till: '',
    });
    expect(() => parseMap(['Shop ID=shopid'])).toThrow('"Shop ID" is mapped to shopid, which no type has');
    expect(() => parseMap(['Shop ID'])).toThrow("write it as --map 'column=field'");
  });

  it('may be a file, for all types or by type', async () => {
    const flat = await readMapping(makeFile('map.json', '{"Shop ID": "shop_id"}'));
    expect(flat('transactions')).toEqual({ map: { 'Shop ID': 'shop_id' } });
    const byType = await readMapping(
      makeFile(
        'map.json',
        '{"transactions": {"columns": {"Shop ID": "shop_id"}, "id_from": ["Till", "No"], "date_format": "dd/MM/yyyy", "decimal_comma": true}}',
      ),
    );
    expect(byType('transactions')).toMatchObject({
      map: { 'Shop ID': 'shop_id' },
      idFrom: ['Till', 'No'],
      dateFormat: 'dd/MM/yyyy',
      decimalComma: true,
    });
    expect(byType('shops')).toEqual({});
  });

  it.each([
    '',
    '[]',
    '{"sales": {}}',
    '{"shops": []}',
    '{"shops": {"id_from": "x"}}',
    '{"shops": {"map": {}}}',
  ])('that is invalid is reported with the expected form: %s', async (text) => {
    await expect(readMapping(makeFile('map.json', text))).rejects.toThrow(
      /map\.json: .*(write \{|use one of)/,
    );
  });
});
