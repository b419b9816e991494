import { describe, expect, it } from 'vitest';
import { checkHeaders } from '../../src/files/check-headers.ts';
import { readMapping } from '../../src/files/mapping.ts';
import type { UploadType } from '../../src/generated/resources.ts';
import { deriveId } from '../../src/parsing/values/derived-id.ts';
import { ids, makeFile, readAll } from './support.ts';

const mappingOf = (mapping: object) => readMapping(makeFile('map.json', JSON.stringify(mapping)));

async function readWith(mapping: object, type: UploadType, name: string, text: string) {
  return readAll(makeFile(name, text), (await mappingOf({ [type]: mapping }))(type));
}

const german = {
  columns: { Filiale: 'shop_id', Name: 'name', Land: 'region', Aktiv: 'is_public', Angelegt: 'created' },
  values: {
    Land: { Deutschland: 'DE', '-': null },
    Aktiv: { ja: true, nein: false },
    Angelegt: { nie: '01.01.2000' },
  },
  constant: { is_deleted: false },
  default: { region: 'AT' },
  id_from: ['Filiale'],
  date_format: 'dd.MM.yyyy',
};

describe('a mapping file', () => {
  it('replaces values, and sets fields without a column and empty cells, in CSV and JSON', async () => {
    const rows = [
      ['K1', 'a', ' Deutschland ', 'ja', '14.03.2026'],
      ['K2', 'b', '', 'nein', 'nie'],
      ['K3', 'c', '-', 'no', ''],
      ['K4', 'd', 'CH', 'vielleicht', ''],
    ];
    const header = Object.keys(german.columns);
    const expected = [
      { name: 'a', region: 'DE', is_public: true, created: '2026-03-14', is_deleted: false },
      { name: 'b', region: 'AT', is_public: false, created: '2000-01-01', is_deleted: false },
      { name: 'c', region: 'AT', is_public: false, is_deleted: false },
    ];
    const csv = [header, ...rows].map((row) => `${row.join(';')}\n`).join('');
    const { sent, failures } = await readWith(german, 'shops', 'shops.csv', csv);
    const short = sent.map(({ shop_id: _, created, ...others }) => ({
      ...others,
      ...(created !== undefined && { created: String(created).slice(0, 10) }),
    }));
    expect(short).toEqual(expected);
    expect(failures.map(({ line, problems }) => [line, problems[0]?.column])).toEqual([[5, 'Aktiv']]);
    const objects = rows.map((row) =>
      JSON.stringify(Object.fromEntries(row.map((cell, at) => [header[at], cell]))),
    );
    const json = await readWith(german, 'shops', 'shops.ndjson', `${objects[0]}\n`);
    expect(json.sent).toMatchObject([
      { shop_id: deriveId('shops', ['K1']), ...expected[0], created: '2026-03-14T00:00:00Z' },
    ]);
    const other = JSON.stringify({ Filiale: 'K9', Name: 'x', is_deleted: true });
    const conflict = await readWith(german, 'shops', 'shops.ndjson', `${other}\n`);
    expect(conflict.failures[0]?.problems[0]).toMatchObject({ field: 'is_deleted', code: 'invalid_value' });
    expect(conflict.failures[0]?.sendable).toBeUndefined();
  });

  it('skips lines above the header and rows below the last record, but not in a file of failed records', async () => {
    const shop = (name: string) => `${ids.shop};${name};GB\n`;
    const text = `"Shops, ""all"""\n\nshop_id;name;region\n${shop('a')}${shop('b')}x\n\nTotal;2\n`;
    const mapping = { skip_top: 2, skip_bottom: 1 };
    const { records, failures } = await readWith(mapping, 'shops', 'shops.csv', text);
    expect(records.map(({ line }) => line)).toEqual([4, 5]);
    expect(failures.map(({ line }) => line)).toEqual([6]);
    const resumed = await readAll(makeFile('shops.csv', text), { skipTop: 2, skipBottom: 1, skipRecords: 2 });
    expect([resumed.records.length, resumed.failures.length]).toEqual([0, 1]);
    await expect(readWith(mapping, 'shops', 'shops.csv', text.trimEnd())).rejects.toThrow(
      'line 8 has no line break',
    );
    const failed = `shop_id;name;region;failed_reason\n${ids.shop};a;GB;line 4: wrong\n`;
    expect((await readWith(mapping, 'shops', 'shops.failed.csv', failed)).sent).toHaveLength(1);
  });

  it('derives the keys in interactions without id_from', async () => {
    const text = 'interaction_type,item_id,student_id,event_timestamp\nSHARE,K1,S1,1\n';
    const mapping = { constant: { item_type: 'SHOP' } };
    const { sent } = await readWith(mapping, 'interactions', 'interactions.csv', text);
    expect(sent).toMatchObject([
      { item_type: 'SHOP', item_id: deriveId('shops', ['K1']), student_id: deriveId('customers', ['S1']) },
    ]);
    expect((await mappingOf({ shops: { id_from: ['Code'] } }))('interactions')).toEqual({
      idFrom: [],
      keepsUserIds: true,
    });
  });

  it('derives the users of interactions only if those of customers are derived, or id_from says so', async () => {
    const text =
      'interaction_type,item_type,item_id,event_timestamp,user_id\nSHARE,SHOP,K1,1,7\nSHARE,SHOP,K1,1,\n';
    const usersWith = async (mapping: object) => {
      const options = (await mappingOf(mapping))('interactions');
      const { sent } = await readAll(makeFile('interactions.csv', text), options);
      expect(sent[0]?.item_id).toBe(deriveId('shops', ['K1']));
      return sent.map(({ user_id }) => user_id);
    };
    const interactions = { default: { user_id: 'guest' } };
    const derived = ['7', 'guest'].map((key) => deriveId('users', [key]));
    expect(await usersWith({ customers: { id_from: ['Nr'] }, interactions })).toEqual(derived);
    expect(await usersWith({ interactions: { ...interactions, id_from: [] } })).toEqual(derived);
    expect(await usersWith({ interactions })).toEqual(['7', 'guest']);
    const others = { shops: { id_from: ['Nr'] }, customers: { columns: { Nr: 'customer_id' } } };
    expect(await usersWith(others)).toEqual(['7', undefined]);
  });

  it('needs each of its columns in each file, or another column for the same field', async () => {
    const columns = { Nummer: 'shop_id', Filiale: 'shop_id', Name: 'name', Land: 'region', Ort: '' };
    const mapping = { columns, values: { is_public: { '-': null } } };
    const check = async (header: string, one: object = { shops: mapping }) =>
      checkHeaders(
        { files: [{ path: makeFile('shops.csv', `${header}\n`), type: 'shops' }], skipped: [], problems: [] },
        await mappingOf(one),
        [],
      );
    await check('Filiale,Name,Land,is_public');
    await expect(check('Filiale,Name,is_public')).rejects.toThrow(
      'the mapping file refers to the column "Land", but the header only has "Filiale", "Name", "is_public"',
    );
    await expect(check('Filiale,Name,Land')).rejects.toThrow('refers to the column "is_public"');
    const flat = { Nummer: 'shop_id', Name: 'name', Land: 'region', Betrag: 'amount' };
    await check('Nummer,Name,Land', flat);
    await expect(check('shop_id,Name,Land', flat)).rejects.toThrow(
      'the mapping file refers to the column "Nummer"',
    );
    await expect(check('shop_id,name,region', { shops: { default: { is_public: true } } })).rejects.toThrow(
      'no column matches it; use "constant"',
    );
    await expect(check('shop_id,name,region', { shops: { constant: { region: 'DE' } } })).rejects.toThrow(
      '"constant" sets region, but the column "region" has its values',
    );
  });

  it.each([
    [{ date_fromat: 'x' }, '"date_fromat" of shops is not an option; its options are columns, values,'],
    [{ skip_top: '2' }, '"skip_top" of shops must be the number of lines above the header'],
    [{ sheet: 0 }, '"sheet" of shops must be a sheet\'s name, or its number from 1'],
    [{ values: { Land: 'DE' } }, '"values" of shops must map columns to their values'],
    [
      { columns: { Land: 'regio' } },
      'maps "Land" to regio, which is not a field of shops; did you mean region?',
    ],
    [
      { values: { Land: { D: 'DE' } } },
      'the column "Land", which is not mapped to a field of shops; map it in "columns"',
    ],
    [
      { columns: { Land: 'region' }, values: { Land: { D: 'DEU' } } },
      'region must be a country code of two letters',
    ],
    [{ constant: { is_public: 'yes' } }, 'is_public must be true or false, without quotes'],
    [{ constant: { Land: 'DE' } }, 'Land is not a field of shops'],
    [{ constant: { shop_id: ids.shop } }, 'would give all records the same id; use "id_from"'],
    [{ default: { created: '14.03.2026' } }, 'created must be written as'],
    [{ decimal_comma: true, thousands: true }, 'leave out "thousands"'],
    [{ date_format: 'dd.MM.yy' }, 'a two-digit year has no century'],
  ])('that is wrong is refused by name: %j', async (mapping, message) => {
    await expect(mappingOf({ shops: mapping })).rejects.toThrow(message);
  });
});
