import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, it } from 'vitest';
import { suggestFormats } from '../../src/parsing/columns/suggest-formats.ts';
import { deriveId } from '../../src/parsing/values/derived-id.ts';
import { makeXlsx } from './make-xlsx.ts';
import { ids, makeFile, readAll } from './support.ts';

/** Each of these files looks fine, and nobody would notice that what is stored is wrong. */
describe('a value that could be read in a wrong way without an error', () => {
  it('is read right if it is a date with a type, whatever the date format of texts is', async () => {
    const options = { dateFormat: 'yyyy-dd-MM' };
    const header = ['shop_id', 'name', 'region', 'created', 'updated'];
    const day = { number: '46083', isDate: true };
    const sheet = makeXlsx('shops.xlsx', [header, [ids.shop, 'Eck', 'DE', day, '2026-05-03']]);
    const parquet = parquetWriteBuffer({
      columnData: [
        { name: 'shop_id', data: [ids.shop], type: 'STRING' },
        { name: 'name', data: ['Eck'], type: 'STRING' },
        { name: 'region', data: ['DE'], type: 'STRING' },
        { name: 'created', data: [new Date('2026-03-02T00:00:00Z')], type: 'TIMESTAMP' },
        { name: 'updated', data: ['2026-05-03'], type: 'STRING' },
      ],
    });
    for (const path of [sheet, makeFile('shops.parquet', new Uint8Array(parquet))]) {
      const { sent, failures } = await readAll(path, options);
      expect(failures).toEqual([]);
      const [{ created, updated } = {}] = sent;
      expect([created, updated].map((time) => String(time).slice(0, 10))).toEqual([
        '2026-03-02',
        '2026-03-05',
      ]);
    }
  });

  it('is refused if two members of an object are read as the same field', async () => {
    const lines = [
      { shop_id: ids.shop, Name: 'a', name: 'b' },
      { shop_id: ids.shop, Name: 'a' },
    ];
    const path = makeFile('shops.ndjson', lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { sent, failures } = await readAll(path, { map: { Name: 'name' }, isMerged: true });
    expect(failures).toMatchObject([{ line: 1, problems: [{ column: 'name', field: 'name' }] }]);
    expect(failures[0]?.sendable).toBeUndefined();
    expect(sent).toEqual([{ shop_id: ids.shop, name: 'a' }]);
  });

  it('is refused if it is a key that has no text', async () => {
    const lines = [{ Nr: { id: 1 } }, { Nr: [2] }, { Nr: 3 }];
    const path = makeFile('shops.ndjson', lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { sent, failures } = await readAll(path, { idFrom: ['Nr'], map: { Nr: '' } });
    expect(failures.map(({ line, problems: [problem] }) => [line, problem?.code])).toEqual([
      [1, 'wrong_type'],
      [2, 'wrong_type'],
    ]);
    expect(sent).toEqual([{ shop_id: deriveId('shops', ['3']) }]);
  });

  it('is refused if the column of a key is in the header twice', async () => {
    for (const [header, idFrom] of [
      ['Nr,name,region,Nr', ['Nr']],
      ['shop_id,name,region,shop_id', ['shop_id']],
      ['shop_id,name,region,Filiale', []],
    ] as const) {
      const path = makeFile('shops.csv', `${header}\n1,Eck,DE,2\n`);
      await expect(readAll(path, { idFrom, map: { Filiale: 'shop_id' } })).rejects.toThrow(
        'both match shop_id',
      );
    }
  });

  it('is refused if it is a day or a spreadsheet date that could be epoch seconds or milliseconds', async () => {
    const read = async (dateFormat?: string) => {
      const times = [
        '20260314',
        '20260314092653',
        '202603140926',
        '46095',
        '1773480413',
        '1773480413000',
        '7',
      ];
      const rows = times.map((time) => `SHARE,SHOP,${ids.shop},${time}\n`).join('');
      const text = `interaction_type,item_type,item_id,event_timestamp\n${rows}`;
      const { sent } = await readAll(makeFile('interactions.csv', text), { dateFormat });
      return sent.map(({ event_timestamp }) => event_timestamp);
    };
    expect(await read()).toEqual([1773480413, 1773480413000, 7]);
    expect(await read('yyyyMMdd')).toEqual(['2026-03-14T00:00:00Z']);
    expect(await read('yyyyMMddHHmmss')).toEqual([
      '2026-03-14T00:00:00Z',
      '2026-03-14T09:26:53Z',
      expect.anything(),
    ]);
  });

  it('is refused if the file is UTF-8 although another encoding is specified', async () => {
    const text = (name: string) => `shop_id,name,region\n${ids.shop},${name},DE\n`;
    const read = (name: string, from: BufferEncoding, encoding: string) =>
      readAll(makeFile('shops.csv', Buffer.from(text(name), from)), { encoding });
    for (const encoding of ['windows-1252', 'latin1', 'iso-8859-2'])
      await expect(read('Bäckerei', 'utf8', encoding)).rejects.toThrow(
        `it is UTF-8, although its encoding is specified as ${encoding}`,
      );
    await expect(read('“Łódź”', 'utf8', 'windows-1250')).rejects.toThrow('it is UTF-8');
    // These bytes are UTF-8 too, but not a Western letter.
    expect((await read('MEN\xdc\x96', 'latin1', 'windows-1252')).sent).toMatchObject([{ name: 'MENÜ–' }]);
    expect((await read('Bäckerei', 'latin1', 'windows-1252')).sent).toMatchObject([{ name: 'Bäckerei' }]);
  });

  it('is refused if it is a time in a field that is a day, which may be another day elsewhere', async () => {
    const rows = ['29.02.2004', '29.02.2004 00:00', '28.02.2004 23:00'].map(
      (birthdate) => `${ids.customer},${ids.user},DE,${birthdate}\n`,
    );
    const path = makeFile('customers.csv', `customer_id,user_id,region,birthdate\n${rows.join('')}`);
    const { sent, failures } = await readAll(path, { dateFormat: 'dd.MM.yyyy' });
    expect(sent.map(({ birthdate }) => birthdate)).toEqual(['2004-02-29', '2004-02-29']);
    expect(failures).toMatchObject([
      { line: 4, problems: [{ column: 'birthdate', code: 'invalid_format' }] },
    ]);
  });

  it('is pointed out by map if its point may separate thousands', () => {
    const suggest = (...cells: string[]) =>
      suggestFormats('transactions', { Betrag: 'amount' }, () => cells).reasons;
    expect(suggest('1.234', '12', '-20.500')).toEqual([
      'column "Betrag" has "1.234", in which the point is read as a decimal point; set "decimal_comma" if it separates thousands',
    ]);
    expect([suggest('1.234', '2.5'), suggest('0.125'), suggest('12')]).toEqual([[], [], []]);
  });

  it('counts as empty if it has only spaces', async () => {
    const path = makeFile('shops.csv', `shop_id,name,region,is_public\n${ids.shop},Eck,  , \n`);
    const { sent } = await readAll(path, { isMerged: true });
    expect(sent).toEqual([{ shop_id: ids.shop, name: 'Eck', region: null, is_public: null }]);
  });
});
