// @module-tag full
// @module-tag postgres-15

import { expect, it } from 'vitest';
import { startAdminServer } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { createReleasedDatabase, releases } from '../support/database.ts';
import { MadeLake } from '../support/made-lake.ts';
import { replayRejections } from '../support/rejections.ts';
import { runCommand } from '../support/run-command.ts';
import { lakeFolder } from '../support/running-lake.ts';

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

/** Signed with the key in the stored database of 0.1.0, in every form in which a cursor was ever issued. */
const issued = {
  feed: '5-0-0-75bfcadd-l8PwWAqnBTzwLlPDledmGQ',
  replay: 'transactions.01a1e687-1891-7001-8dda-db945609551d.49xtFYGGUC48SGxKJnZt4g',
  days: 'tH4zlrOb5LWjt5V6Dh5qwK.2026-11-16',
  platforms: 'cXciDeP_8Hgmip5rbOXXjM.=WEB 2.0',
  lake: '1.5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01.nVmEcxZBBbw8XTwisyymaP',
  audit: '2.myvGa7X1fVv7a2VxvUEYhD',
  auditOfAcme: '2.Qqwn2mGaMLaCx0DUPCxFVQ',
};

it('cursors that were issued before the upgrade continue where they were', async () => {
  const { databaseUrl, key } = await createReleasedDatabase('0.1.0');
  expect(await runCommand(['migrate'], { DATABASE_URL: databaseUrl })).toMatchObject({ exitCode: 0 });
  const folder = lakeFolder();
  const server = await startAdminServer({
    DATABASE_URL: databaseUrl,
    LAKE_URL: folder.url,
    // Otherwise the rejection would expire as time goes by.
    RECEIPTS_KEPT_DAYS: '3650',
  });
  await server.run('organisations', 'set-report', 'acme', 'on');
  await server.run('organisations', 'set-lake', 'acme', 'on');
  new MadeLake(folder.path, '01a1e686-ca41-78e8-b2d0-ebf6f29e6e6a').commit([]);
  const api = apiOf(server.url, key);
  const asked = Object.entries(issued).map(([list, cursor]) => [list, encodeURIComponent(cursor)]);
  const { feed, days, platforms, lake, audit, auditOfAcme } = Object.fromEntries(asked);
  expect(await api.get(`/v1/changes?after=${feed}`)).toMatchObject({ status: 200, body: { changes: [] } });
  // The cursor points behind the only rejection.
  expect(await replayRejections(api, { cursor: issued.replay })).toMatchObject({
    status: 200,
    body: { batches: [], remaining: 1 },
  });
  const report = `/v1/reports/recommendations?group_by`;
  expect(await api.get(`${report}=day&cursor=${days}`)).toMatchObject({ status: 200 });
  expect(await api.get(`${report}=platform&cursor=${platforms}`)).toMatchObject({ status: 200 });
  expect(await api.get(`/v1/lake/interactions/files?cursor=${lake}`)).toMatchObject({
    status: 200,
    body: { version: 1, files: [] },
  });
  const { admin } = server;
  for (const path of [`cursor=${audit}`, `organisation=acme&cursor=${auditOfAcme}`])
    expect(await admin.get(`/admin/v1/audit?${path}`)).toMatchObject({
      status: 200,
      body: { entries: [{ audit_id: '1' }], next_cursor: null },
    });
  await server.stop();
  folder.remove();
});
