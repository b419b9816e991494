import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkerOf } from '../../src/parsing/values/check-record.ts';
import { deriveId } from '../../src/parsing/values/derived-id.ts';
import { sha1Hex } from '../../src/parsing/values/sha1.ts';
import { ids, makeFile, readAll } from './support.ts';

describe('--id-from', () => {
  it('derives UUIDv5s that never change', () => {
    // These are the values that Python's uuid.uuid5 returns for the namespace 0f6d3f1c-5c0e-4a0f-9a56-3d1f5b7c2e94.
    expect(deriveId('shops', ['S001'])).toBe('5bff1905-c268-5765-b5ee-5691e1799bb1');
    expect(deriveId('shops', ['Café'])).toBe('d06aa2f3-bc32-5377-bb38-e65679b0abaa');
    expect(deriveId('transactions', ['North', '17'])).toBe('0e857f6e-1870-50f0-95d2-906025ef55ec');
  });

  it('gives different ids to keys of several columns and of other types', () => {
    const keys = [['ab', 'c'], ['a', 'bc'], ['abc']].map((key) => deriveId('shops', key));
    expect(new Set([...keys, deriveId('branches', ['abc'])]).size).toBe(4);
  });

  it('gives a reference the id of its record, whatever format either is in', async () => {
    const shops = await readAll(makeFile('shops.csv', 'code,name,region\n 17 ,Corner Bakery,GB\n'), {
      idFrom: ['code'],
    });
    const shopId = shops.sent[0]!.shop_id;
    expect(shopId).toBe(deriveId('shops', ['17']));
    const csv = 'Till,No,shop_id,region,savings,amount,student_id,offer_id\nNorth,17,17,GB,1,2,42,\n';
    const transactions = await readAll(makeFile('transactions.csv', csv), { idFrom: ['Till', 'No'] });
    expect(transactions.sent).toEqual([
      {
        transaction_id: '0e857f6e-1870-50f0-95d2-906025ef55ec',
        shop_id: shopId,
        region: 'GB',
        savings: 1,
        amount: 2,
        // Students are customers.
        student_id: '59b657e2-2161-5ce2-b12f-e0e316771206',
      },
    ]);
    const json = `{"key": 42, "user": "${ids.user}", "region": "GB", "institute_id": "I1"}\n`;
    const customers = await readAll(makeFile('customers.ndjson', json), {
      idFrom: ['key'],
      map: { user: 'user_id' },
    });
    expect(customers.sent).toMatchObject([
      {
        customer_id: '59b657e2-2161-5ce2-b12f-e0e316771206',
        user_id: ids.user,
        institute_id: deriveId('institutes', ['I1']),
      },
    ]);
  });

  it('never derives a user_id, which is not the id of a record, so that a wrong one fails', async () => {
    const message = 'must be a UUID, such as 5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01';
    for (const [name, text] of [
      ['customers.csv', 'Student No,Login,region\n1,4711,GB\n'],
      ['customers.ndjson', '{"Student No": 1, "Login": 4711, "region": "GB"}\n'],
    ] as const) {
      const { sent } = await readAll(makeFile(name, text), {
        idFrom: ['Student No'],
        map: { Login: 'user_id' },
      });
      expect(sent).toMatchObject([{ customer_id: deriveId('customers', ['1']), user_id: '4711' }]);
      expect(checkerOf('customers')(sent[0]!)).toEqual([
        { field: 'user_id', code: 'invalid_format', message },
      ]);
    }
  });

  it('leaves UUIDs unchanged, so that one column of keys among UUIDs is enough', async () => {
    const csv = `transaction_id,shop_id,region,savings,amount\n${ids.transaction},S001,GB,1,2\nT2,${ids.shop},GB,1,2\n`;
    const { sent } = await readAll(makeFile('transactions.csv', csv), { idFrom: ['transaction_id'] });
    expect(sent.map(({ transaction_id, shop_id }) => [transaction_id, shop_id])).toEqual([
      [ids.transaction, deriveId('shops', ['S001'])],
      [deriveId('transactions', ['T2']), ids.shop],
    ]);
  });

  it('works for a folder: a file without its columns has the key instead of the id', async () => {
    const idFrom = ['code'];
    const csv = await readAll(makeFile('shops.csv', 'shop_id,name,region\nS001,Corner Bakery,GB\n'), {
      idFrom,
    });
    const ndjson = await readAll(makeFile('shops.ndjson', '{"shop_id": "S001"}\n{"code": "S001"}\n{}\n'), {
      idFrom,
    });
    expect([...csv.sent, ...ndjson.sent].map(({ shop_id }) => shop_id)).toEqual(
      Array(3).fill(deriveId('shops', ['S001'])),
    );
    expect(ndjson.failures).toMatchObject([{ line: 3, problems: { length: 3 } }]);
    expect(ndjson.failures[0]?.problems[0]).toMatchObject({ column: 'code', code: 'required' });
    await expect(readAll(makeFile('shops.csv', 'name,region\nx,GB\n'), { idFrom })).rejects.toThrow(
      '--id-from refers to "code"',
    );
    const some = makeFile('shops.csv', 'code,shop_id,name,region\n1,2,x,GB\n');
    await expect(readAll(some, { idFrom: ['town', 'code'] })).rejects.toThrow('--id-from refers to "town"');
  });

  it('fails a record with an empty key', async () => {
    const { failures } = await readAll(
      makeFile('shops.csv', 'town,code,name,region\nYork, ,Corner Bakery,GB\n'),
      {
        idFrom: ['town', 'code'],
      },
    );
    expect(failures).toMatchObject([
      { line: 2, problems: [{ column: 'town,code', field: 'shop_id', code: 'required' }] },
    ]);
  });
});

it('the SHA-1 of any bytes and text is the same as in Node', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 20 }),
      fc.string({ unit: 'binary', maxLength: 2_000 }),
      (prefix, text) => {
        const expected = hash('sha1', Buffer.concat([prefix, Buffer.from(text)]), 'hex');
        expect(sha1Hex(prefix, text)).toBe(expected);
      },
    ),
  );
});
