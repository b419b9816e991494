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

  it('gives a user the same id in customers and interactions, and leaves UUIDs unchanged', async () => {
    // Python: uuid.uuid5(UUID('0f6d3f1c-5c0e-4a0f-9a56-3d1f5b7c2e94'), 'users\x1f100500')
    const userId = '95c5e057-19cd-510e-929b-f9f2221b06cf';
    expect(deriveId('users', ['100500'])).toBe(userId);
    const options = { idFrom: ['Nr'], map: { Login: 'user_id' } };
    const users = async (name: string, text: string) =>
      (await readAll(makeFile(name, text), options)).sent.map(({ user_id }) => user_id);
    const customers = `Nr,Login,region\n1, 100500 ,GB\n2,${ids.user},GB\n`;
    expect(await users('customers.csv', customers)).toEqual([userId, ids.user]);
    const json = (others: object) =>
      ['100500', 100500, ids.user]
        .map((Login) => `${JSON.stringify({ ...others, Nr: 1, Login })}\n`)
        .join('');
    expect(await users('customers.ndjson', json({ region: 'GB' }))).toEqual([userId, userId, ids.user]);
    const view = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: 'K1', event_timestamp: 1 };
    expect(await users('interactions.ndjson', json(view))).toEqual([userId, userId, ids.user]);
    const header = `${Object.keys(view).join()},Login\n`;
    const rows = [' 100500 ', ids.user, ''].map((user) => `${Object.values(view).join()},${user}\n`);
    expect(await users('interactions.csv', header + rows.join(''))).toEqual([userId, ids.user, undefined]);
  });

  it('is suggested for a user_id that is not a UUID, which is otherwise unchanged', async () => {
    const customers = await readAll(
      makeFile('customers.csv', `customer_id,user_id,region\n${ids.customer},4711,GB\n`),
    );
    expect(checkerOf('customers')(customers.sent[0]!)[0]?.message).toMatch(/derive them with --id-from$/);
    const csv = 'interaction_type,item_type,item_id,event_timestamp,user_id\nSHARE,SHOP,K1,1, visitor 7\n';
    const { sent } = await readAll(makeFile('interactions.csv', csv));
    expect(sent[0]?.user_id).toBe(' visitor 7');
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
