// @module-tag full

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import {
  auditOf,
  createEmpty,
  expectRefused,
  linesIn,
  manifestOf,
  moveEnvironment,
  rowsOf,
  runMove as run,
  runKilled,
} from '../support/move-organisation.ts';
import { many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { type CommandResult, runCommand } from '../support/run-command.ts';

/** Tests organisation exports and imports that are killed, run twice at the same time, or resumed too late. */

const tables = ['shops', 'customers', 'transactions', 'interactions'];
const folder = mkdtempSync(join(tmpdir(), 'intake-moving-'));
const otherFolder = join(folder, 'other');
const customerId = randomUUID();
let server: BuiltServer;
let target: string;
let large: Api;
const largeFolder = join(folder, 'large');
const transactions = 4_000;
const interactions = 12_345;

beforeAll(async () => {
  server = await startBuiltServer();
  target = await createTestDatabase();
  await apiOf(server.url, await server.createKey('other')).upload('tags', [newTag()]);
  expect((await run(server.databaseUrl, 'export', 'other', '--to', otherFolder)).exitCode).toBe(0);
  large = apiOf(server.url, await server.createKey('large'));
  const shop = newShop();
  await large.upload('shops', [shop]);
  await large.upload('customers', [{ customer_id: customerId, user_id: randomUUID(), region: 'GB' }]);
  await large.upload(
    'transactions',
    many(transactions, () => newTransaction(shop.shop_id)),
  );
  for (let from = 0; from < interactions; from += 5_000)
    await large.post('/user-interactions/batch', {
      records: many(Math.min(5_000, interactions - from), (at) => ({
        interaction_type: 'SHARE',
        item_type: 'SHOP',
        item_id: shop.shop_id,
        event_timestamp: 1_700_000_000 + from + at,
      })),
    });
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

it('a killed export is not accepted by an import, and continues', async () => {
  const killed = await runKilled(
    ['organisations', 'export', 'large', '--to', largeFolder],
    server.databaseUrl,
    // Customers are read after all types that reference them.
    (sent) => (/from customers/.test(sent) ? 'before' : undefined),
  );
  expect(killed.exitCode).toBeNull();
  const left = readdirSync(largeFolder);
  expect(left).toContain('interactions-000001.ndjson.zst');
  expect(left).not.toContain('manifest.json');
  expectRefused(await run(target, 'import', 'large', '--from', largeFolder), /not a finished export/);
  expectRefused(
    await run(server.databaseUrl, 'export', 'other', '--to', largeFolder),
    /unfinished export of another organisation/,
  );
  expect((await run(server.databaseUrl, 'export', 'large', '--to', largeFolder)).exitCode).toBe(0);
  const lines = await linesIn(largeFolder);
  expect([lines.transactions!.length, lines.interactions!.length]).toEqual([transactions, interactions]);
  expect(manifestOf(largeFolder).counts).toMatchObject({
    transactions,
    interactions,
    customers: 1,
    shops: 1,
  });
  expect(await auditOf(server.databaseUrl, 'large')).toMatchObject([
    { act: 'organisation.export', details: {} },
    { act: 'organisation.export', details: { continued: true } },
    { act: 'organisation.exported' },
  ]);
});

it('a killed import continues, and stores nothing twice', async () => {
  const args = ['organisations', 'import', 'large', '--from', largeFolder];
  let kills = 0;
  for (let result: CommandResult | undefined; result?.exitCode !== 0; ) {
    let commits = 0;
    const moment = kills % 2 === 0 ? 'after' : 'before';
    result = await runKilled(args, target, (sent) =>
      // If the rest of the import takes fewer commits, the command is not killed.
      sent.includes('commit\0') && ++commits === 4 ? moment : undefined,
    );
    if (result.exitCode === null) kills++;
    else expect(result).toMatchObject({ exitCode: 0 });
    expect(kills).toBeLessThan(20);
  }
  expect(kills).toBeGreaterThan(2);
  const moved = await rowsOf(target, 'large', tables);
  const source = await rowsOf(server.databaseUrl, 'large', tables);
  expect(moved.interactions).toHaveLength(interactions);
  // Concurrent requests may be stored in any order.
  const sorted = (rows: Record<string, string[]>) => ({
    ...rows,
    interactions: rows.interactions!.toSorted(),
  });
  expect(sorted(moved)).toEqual(sorted(source));
  expect(await auditOf(target, 'large')).toMatchObject([
    { act: 'organisation.import' },
    { act: 'organisation.imported' },
  ]);
});

it('an import or export whose connection is lost states that it can continue, and does', async () => {
  const exporting = ['organisations', 'export', 'large', '--to', join(folder, 'cut')];
  const importing = ['organisations', 'import', 'cut', '--from', largeFolder];
  for (const [args, databaseUrl, last] of [
    [exporting, server.databaseUrl, /from transactions/],
    [importing, target, /commit\0/],
  ] as const) {
    let met = 0;
    const cut = (sent: string) => (last.test(sent) && ++met === 4 ? 'cut' : undefined);
    expectRefused(
      await runKilled(args, databaseUrl, cut),
      /PostgreSQL at .*Then run it again: it continues$/,
    );
    expect((await run(databaseUrl, ...args.slice(1))).exitCode).toBe(0);
  }
  expect(manifestOf(join(folder, 'cut')).counts).toEqual(manifestOf(largeFolder).counts);
  const rows = await rowsOf(target, 'cut', tables);
  expect(Object.values(rows).map(({ length }) => length)).toEqual([1, 1, transactions, interactions]);
});

it('an import that runs twice at once stores nothing twice', async () => {
  await createEmpty(target, 'both');
  const both = await Promise.all(many(2, () => run(target, 'import', 'both', '--from', largeFolder)));
  for (const one of both.filter(({ exitCode }) => exitCode !== 0))
    expectRefused(one, /another process is importing the same export/);
  expect((await run(target, 'import', 'both', '--from', largeFolder)).exitCode).toBe(0);
  const rows = await rowsOf(target, 'both', tables);
  expect(Object.values(rows).map(({ length }) => length)).toEqual([1, 1, transactions, interactions]);
  expect(new Set(rows.interactions).size).toBe(interactions);
});

it('a killed import cannot continue with another export, or without its receipts', async () => {
  const killed = await runKilled(
    ['organisations', 'import', 'half', '--from', largeFolder],
    target,
    (sent) => (/insert interactions/.test(sent) ? 'before' : undefined),
  );
  expect(killed.exitCode).toBeNull();
  expectRefused(await run(target, 'import', 'half', '--from', otherFolder), /"half" already has data/);
  await queryDatabase(
    target,
    `delete from receipts where organisation_id = (select organisation_id from organisations where slug = 'half')`,
  );
  expectRefused(await run(target, 'import', 'half', '--from', largeFolder), /its receipts are gone/);
});

it('a killed export does not continue when somebody was erased meanwhile', async () => {
  const erasing = apiOf(server.url, await server.createKey('large', 'data:erase'));
  const unfinished = join(folder, 'unfinished');
  const kill = (sent: string) => (/from customers/.test(sent) ? 'before' : undefined);
  await runKilled(['organisations', 'export', 'large', '--to', unfinished], server.databaseUrl, kill);
  const { body } = await erasing.post('/v1/erasures', { customer_ids: [randomUUID()] });
  const stateOf = async () => (await erasing.get(`/v1/erasures/${body.erasure_id}`)).body.state;
  await expect.poll(stateOf).toBe('swept');
  expectRefused(
    await run(server.databaseUrl, 'export', 'large', '--to', unfinished),
    /people were erased while the export ran/,
  );
  expectRefused(await run(target, 'import', 'erased', '--from', unfinished), /not a finished export/);
});

it('an import does not bring back people who were erased from its organisation', async () => {
  const erasing = apiOf(server.url, await server.createKey('filled', 'data:erase'));
  const { status } = await erasing.post('/v1/erasures', { customer_ids: [customerId] });
  expect(status).toBe(202);
  const args = ['organisations', 'import', 'filled', '--from', largeFolder];
  const { ERASURE_KEYS: _, ...withoutKeys } = await moveEnvironment(server.databaseUrl);
  expectRefused(await runCommand(args, withoutKeys), /ERASURE_KEYS/);
  const { exitCode, stderr } = await run(server.databaseUrl, 'import', 'filled', '--from', largeFolder);
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/: 1 of them failed/) });
  const rows = await rowsOf(server.databaseUrl, 'filled', tables);
  expect(Object.values(rows).map(({ length }) => length)).toEqual([1, 0, transactions, interactions]);
});
