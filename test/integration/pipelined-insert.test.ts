// @module-tag postgres-15

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { inOneExchange } from '../../src/postgres/pipelined-insert.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestDatabase } from '../support/database.ts';

/** Pipelined statements form one transaction without BEGIN and COMMIT. */

const put = (name: string, ...numbers: number[]) => ({
  name,
  text: 'insert into numbers select unnest($1::integer[])',
  values: [numbers],
});

describe.each(['off', 'on'])('with DATABASE_POOLER=%s', (pooler) => {
  let pool: OwnPool;
  beforeAll(async () => {
    const databaseUrl = await createTestDatabase();
    const config = readConfig({ DATABASE_URL: databaseUrl, DATABASE_POOLER: pooler, PORT: '0' });
    pool = createPool({ ...config, databaseConnectionsMax: 1 }, () => {});
    await pool.query('create table numbers (number integer primary key)');
  });
  afterAll(() => pool.end());
  beforeEach(() => pool.query('truncate numbers'));

  async function run(...statements: ReturnType<typeof put>[]): Promise<number[]> {
    const client = await pool.connect();
    const running = inOneExchange(client, statements);
    await running.then(
      () => client.release(),
      () => client.release(true),
    );
    return (await running).map(({ rowCount }) => rowCount ?? 0);
  }
  const stored = async () => {
    const { rows } = await pool.query<{ number: number }>('select number from numbers order by number');
    return rows.map(({ number }) => number);
  };

  it('each reports the number of rows it wrote, repeatedly', async () => {
    for (const tens of [10, 20, 30])
      expect(await run(put('one', tens), put('two', tens + 1, tens + 2), put('three', tens + 3))).toEqual([
        1, 2, 1,
      ]);
    expect(await stored()).toHaveLength(12);
    expect(await run(put('one', 1))).toEqual([1]);
    expect(await run()).toEqual([]);
  });

  it('if one fails, nothing of the others is stored', async () => {
    await run(put('one', 5));
    await expect(run(put('one', 6), put('two', 5))).rejects.toMatchObject({ code: '23505' });
    await expect(run(put('one', 5), put('two', 7))).rejects.toMatchObject({ code: '23505' });
    expect(await stored()).toEqual([5]);
    expect(await run(put('one', 8), put('two', 9))).toEqual([1, 1]);
    expect(await stored()).toEqual([5, 8, 9]);
  });
});
