// @module-tag full
// @module-tag postgres-15

import { expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { createReleasedDatabase, releases } from '../support/database.ts';
import { runCommand } from '../support/run-command.ts';

/** The ids in each release's stored database. */
const shop_id = 'a0000000-0000-4000-8000-000000000001';
const customer_id = 'c0000000-0000-4000-8000-000000000001';
const transaction_id = 'd0000000-0000-4000-8000-000000000001';

it.each(releases)(
  'a database of %s is upgraded: its key works, its data is served and can be referenced',
  async (release) => {
    const { databaseUrl, key } = await createReleasedDatabase(release);
    expect(await runCommand(['migrate'], { DATABASE_URL: databaseUrl })).toMatchObject({
      exitCode: 0,
      stderr: '',
    });
    const server = await startBuiltServer({ DATABASE_URL: databaseUrl });
    const api = apiOf(server.url, key);
    const read = async (path: string) => (await api.get(path)).body;
    expect(await read(`/v1/data/shops/${shop_id}`)).toMatchObject({ name: 'Café Ünïted', region: 'GB' });
    expect(await read(`/v1/data/customers/${customer_id}`)).toMatchObject({ birthdate: '2001-02-28' });
    expect(await read(`/v1/data/transactions/${transaction_id}`)).toMatchObject({
      amount: 10.75,
      created: '2026-11-02T12:34:56.789012Z',
    });
    expect(await read(`/user-interactions?student_id=${customer_id}`)).toMatchObject({
      interactions: [{ item_id: shop_id, event_timestamp: 1762000000 }],
    });
    const transaction = { transaction_id, shop_id, region: 'GB', savings: 2, amount: 3 };
    expect((await api.batch('transactions', [transaction])).counts).toMatchObject({ updated: 1 });
    expect(await read('/v1/data')).toMatchObject({
      types: expect.arrayContaining([expect.objectContaining({ type: 'transactions', records: 1 })]),
    });
    await server.stop();
  },
);
