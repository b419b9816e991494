import { appendFileSync, truncateSync } from 'node:fs';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, it } from 'vitest';
import { packRow } from '../../src/command/uploading/file-cut.ts';
import { openFile } from '../../src/files/reading/read-file.ts';
import { openSheet } from '../../src/parsing/tables/sheet.ts';
import { ids, makeFile, readAll } from './support.ts';

const header = 'shop_id,name,region\n';
const rows = (count: number) =>
  Array.from({ length: count }, (_, at) => `${ids.shop},Bakery ${at},GB\n`).join('');

describe('compressed files', () => {
  const sizes = [10, 20_000];

  it.each(sizes)('gzip with zeros after it is read like gzip, %i rows', async (count) => {
    for (const zeros of [1, 511, 32_768, 100_000]) {
      const padded = Buffer.concat([gzipSync(header + rows(count)), Buffer.alloc(zeros)]);
      expect((await readAll(makeFile('shops.csv.gz', padded))).sent).toHaveLength(count);
    }
  });

  it.each(sizes)('gzip of several members is read to its end, %i rows', async (count) => {
    for (const level of [0, 6] as const) {
      const members = [gzipSync(header + rows(count), { level }), gzipSync(rows(count)), gzipSync('')];
      const padded = Buffer.concat([...members, Buffer.alloc(100)]);
      for (const file of [Buffer.concat(members), padded])
        expect((await readAll(makeFile('shops.csv.gz', file))).sent).toHaveLength(2 * count);
    }
  });

  it('a member may end where a read ends', async () => {
    const text = header + rows(1);
    const stored = gzipSync(text, { level: 0 });
    const first = gzipSync(`${text}${'\n'.repeat(32_768 - stored.length)}`, { level: 0 });
    expect(first).toHaveLength(32_768);
    const file = makeFile('shops.csv.gz', Buffer.concat([first, gzipSync(rows(5))]));
    expect((await readAll(file)).sent).toHaveLength(6);
  });

  it.each(sizes)('other data after the compressed data is refused, %i rows', async (count) => {
    for (const rest of [Buffer.from('\0\0more'), Buffer.concat([Buffer.alloc(50_000), gzipSync('x')])]) {
      const file = makeFile('shops.csv.gz', Buffer.concat([gzipSync(header + rows(count)), rest]));
      await expect(readAll(file)).rejects.toThrow('other data after its compressed data');
    }
  });

  it('zstd of several frames is refused', async () => {
    const frames = [zstdCompressSync(header + rows(20)), zstdCompressSync(rows(20))];
    const file = makeFile('shops.csv.zst', Buffer.concat(frames));
    await expect(readAll(file)).rejects.toThrow('other data after its compressed data');
  });
});

describe('a file that changes while it is read', () => {
  it.each<[string, (path: string) => void]>([
    ['is appended to', (path) => appendFileSync(path, rows(1))],
    ['is cut', (path) => truncateSync(path, 300_000)],
  ])('and %s is refused, and what was added is not read', async (_what, change) => {
    const path = makeFile('shops.csv', header + rows(20_000));
    const file = await openFile(path, {});
    let read = 0;
    const reading = async () => {
      for await (const { records } of file.chunks()) {
        if (read === 0) change(path);
        read += records.length;
      }
    };
    await expect(reading()).rejects.toThrow('it changed while it was read; wait until it is written');
    expect(read).toBeLessThanOrEqual(20_000);
  });
});

const transaction = `${ids.transaction},${ids.shop},GB,1`;
const ofAmount = (amount: string) =>
  makeFile('transactions.csv', `transaction_id,shop_id,region,savings,amount\n${transaction},${amount}\n`);

describe('long numbers', () => {
  it.each([
    ['9.9900000000000002', 9.99],
    ['3.3333333333333333', 3.3333333333333335],
    ['52.520006599999995', 52.520006599999995],
    ['12345678.123456789', 12345678.123456789],
    ['1234567890123.12', 1234567890123.12],
    ['0.0000000000000000001', 1e-19],
    ['100000000000000000000', 1e20],
  ])('%s is %d', async (text, amount) => {
    expect((await readAll(ofAmount(text))).sent).toMatchObject([{ amount }]);
  });

  it.each(['12345678901234.567', '12345678901234567890', '123456789012345678.5', '9007199254740993'])(
    '%s is refused in every format',
    async (text) => {
      const record = `{"transaction_id":"${ids.transaction}","shop_id":"${ids.shop}","region":"GB","savings":1,"amount":${text}}`;
      const problem = { code: 'out_of_range', message: expect.stringContaining('has more digits') };
      for (const file of [
        ofAmount(text),
        makeFile('transactions.ndjson', `${record}\n`),
        makeFile('transactions.json', `[${record}]`),
      ])
        expect((await readAll(file)).failures).toMatchObject([{ problems: [problem] }]);
      const comma = await readAll(ofAmount(`"${text.replace('.', ',')}"`), { decimalComma: true });
      expect(comma.failures).toMatchObject([{ problems: [problem] }]);
    },
  );

  it('of 32 bits in Parquet are the shortest decimals', async () => {
    const numbers = [9.99, 0.1, 16_777_216, 1e-7, 123_456.79, 3.4e38];
    const column = <T>(name: string, data: T[]) => ({ name, data });
    const file = parquetWriteBuffer({
      columnData: [
        column(
          'transaction_id',
          numbers.map(() => ids.transaction),
        ),
        column(
          'shop_id',
          numbers.map(() => ids.shop),
        ),
        column(
          'region',
          numbers.map(() => 'GB'),
        ),
        {
          ...column(
            'savings',
            numbers.map(() => 0.3),
          ),
          type: 'FLOAT' as const,
        },
        { ...column('amount', numbers), type: 'FLOAT' as const },
      ],
    });
    const { sent } = await readAll(makeFile('transactions.parquet', Buffer.from(file)));
    expect(sent.map(({ amount }) => amount)).toEqual(numbers);
    expect(sent.every(({ savings }) => savings === 0.3)).toBe(true);
  });
});

describe('times in a spreadsheet', () => {
  const read = async (...times: Date[]) => {
    const sheet = [
      ['shop_id', 'name', 'region', 'created'],
      ...times.map((time) => [ids.shop, 'Bakery', 'GB', time]),
    ];
    const found: unknown[] = [];
    for await (const { records, failures } of openSheet(
      [{ sheet: 'Sheet1', data: sheet }],
      1,
      'shops',
      {},
    ).chunks()) {
      found.push(...records.map(({ record }) => record.created));
      found.push(...failures.map(({ problems }) => problems[0]?.message));
    }
    return found;
  };

  it('are rounded to seconds, because the spreadsheet library rounds down', async () => {
    const times = ['2026-03-14T09:26:53Z', '2026-03-14T09:26:52.999Z', '2026-03-14T00:00:00Z'];
    expect(await read(...times.map((time) => new Date(time)))).toEqual([
      '2026-03-14T09:26:53.000Z',
      '2026-03-14T09:26:53.000Z',
      '2026-03-14T00:00:00.000Z',
    ]);
  });

  it.each(['.123', '.499', '.110', '.001'])(
    'of a column with fractions of a second such as %s are refused, unless they are whole days',
    async (fraction) => {
      const times = [`2026-03-14T09:26:53${fraction}Z`, '2026-03-14T09:26:53Z', '2026-03-14T00:00:00Z'];
      const refused = expect.stringContaining('fractions of a second');
      expect(await read(...times.map((time) => new Date(time)))).toEqual([
        '2026-03-14T00:00:00.000Z',
        refused,
        refused,
      ]);
      expect(await read(new Date(`2026-03-14T09:26:53${fraction}Z`))).toEqual([refused]);
    },
  );

  it('that are the last millisecond of a day are refused, because whole days are exact', async () => {
    const refused = expect.stringContaining('fractions of a second');
    expect(await read(new Date('2026-12-31T23:59:59.999Z'))).toEqual([refused]);
  });

  it('are refused before 1910, because they may be durations', async () => {
    const refused = expect.stringContaining('duration');
    for (const time of ['1899-12-31T02:30:00Z', '1900-03-02T12:00:00Z', '1904-01-01T02:30:00Z'])
      expect(await read(new Date(time))).toEqual([refused]);
    expect(await read(new Date('1910-01-01T00:00:00Z'))).toEqual(['1910-01-01T00:00:00.000Z']);
  });
});

it('a row is kept as it is, even if its cells contain the separator of the packed form', () => {
  const cells = ['a\u001fb', '', '\u001f'];
  expect(JSON.parse(packRow({ line: 7, cells, record: {} }).split('\u001f').slice(2).join('\u001f'))).toEqual(
    cells,
  );
});
