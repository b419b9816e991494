// @module-tag full

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { erasePeople } from '../support/erase-people.ts';
import { linesOf } from '../support/lines-of.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { tablesWith } from '../support/tables-with.ts';

/**
 * People are erased after a backup, and the backup is restored. restore.test.ts restores a real backup; here, a copy of the
 * database stands for it.
 */

async function start(DATABASE_URL: string): Promise<{ server: BuiltServer; api: Api }> {
  const server = await startBuiltServer({ DATABASE_URL });
  onTestFinished(() => server.stop());
  return { server, api: apiOf(server.url, await server.createKey('acme', ...everyPermission)) };
}

/** Copies the database, which must not be in use. */
async function copyOf(databaseUrl: string): Promise<string> {
  const name = new URL(databaseUrl).pathname.slice(1);
  await queryDatabase(inject('postgresUrl'), `create database ${name}_copy template ${name}`);
  return `${databaseUrl}_copy`;
}

/** Writes the ledger of the lost database, repeats it in the restored one, and starts a server there. */
async function restore(lost: BuiltServer, copyUrl: string) {
  const folder = mkdtempSync(join(tmpdir(), 'intake-ledger-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const ledger = join(folder, 'ledger');
  writeFileSync(ledger, await lost.run('erasures'));
  await lost.stop();
  const stopped = await startBuiltServer({ DATABASE_URL: copyUrl });
  await stopped.stop();
  await stopped.run('after-restore', '--revoke-all-keys', '--erasures', ledger);
  const restored = await start(copyUrl);
  const admin = new pg.Client({ connectionString: copyUrl });
  await admin.connect();
  onTestFinished(() => admin.end());
  return { ...restored, admin };
}

const newCustomer = () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' });

async function expectAllSwept(admin: pg.Client): Promise<void> {
  const open = async () =>
    (await admin.query(`select from erasures where state in ('requested', 'sweeping')`)).rowCount;
  await expect.poll(open, { interval: 200 }).toBe(0);
}

it('people who are only in rejections, receipts, keys and access requests are erased again', async () => {
  const databaseUrl = await createTestDatabase();
  const first = await start(databaseUrl);
  const shop = newShop();
  const [rejected, inKey, asked, stored] = [newCustomer(), newCustomer(), newCustomer(), newCustomer()];
  await first.api.upload('shops', [shop]);
  await first.api.upload('customers', [stored]);
  expect((await first.api.upload('customers', [{ ...rejected, region: 'nowhere' }])).status).toBe(400);
  const key = { 'idempotency-key': `nightly ${inKey.customer_id}` };
  expect((await first.api.post('/v1/data/shops', { records: [shop] }, key)).status).toBe(200);
  const wanted = { customer_ids: [asked.customer_id], user_ids: [asked.user_id] };
  expect((await first.api.post('/v1/access-requests', wanted)).status).toBe(202);
  await first.server.stop();
  const copyUrl = await copyOf(databaseUrl);

  const people = [rejected, inKey, asked, stored];
  const ids = people.flatMap(({ customer_id, user_id }) => [customer_id, user_id]);
  const second = await start(databaseUrl);
  await erasePeople(second.api, {
    customer_ids: people.map(({ customer_id }) => customer_id),
    user_ids: people.map(({ user_id }) => user_id),
  });
  const { admin } = await restore(second.server, copyUrl);
  expect((await admin.query('select from erasures')).rowCount).toBe(1);
  await expectAllSwept(admin);
  const left = await tablesWith(admin, ids);
  expect(Object.keys(left).filter((table) => table !== 'changes')).toEqual([]);
});

it('an erasure that had been lifted is swept and lifted again', async () => {
  const databaseUrl = await createTestDatabase();
  const person = newCustomer();
  const first = await start(databaseUrl);
  expect((await first.api.upload('customers', [person])).status).toBe(200);
  await first.server.stop();
  const copyUrl = await copyOf(databaseUrl);

  const second = await start(databaseUrl);
  const erasure = await erasePeople(second.api, { customer_ids: [person.customer_id] });
  const lifted = await second.api.send(`/v1/erasures/${erasure}/suppression`, { method: 'DELETE' });
  expect(lifted.status).toBe(200);
  const { api, admin } = await restore(second.server, copyUrl);
  expect((await admin.query('select from erasures')).rowCount).toBe(1);
  await expectAllSwept(admin);
  expect((await api.get(`/v1/data/customers/${person.customer_id}`)).status).toBe(404);
  const upload = async () => (await api.upload('customers', [person])).status;
  await expect.poll(upload).toBe(200);
});

it('a second restore keeps the acts and erasures from before and after the first one', async () => {
  const databaseUrl = await createTestDatabase();
  const [early, late] = [newCustomer(), newCustomer()];
  const first = await start(databaseUrl);
  expect((await first.api.upload('customers', [early, late])).status).toBe(200);
  await first.server.stop();
  const name = new URL(databaseUrl).pathname.slice(1);
  const copies = ['one', 'two'].map((copy) => `${databaseUrl}_${copy}`);
  for (const copy of ['one', 'two'])
    await queryDatabase(inject('postgresUrl'), `create database ${name}_${copy} template ${name}`);
  const folder = mkdtempSync(join(tmpdir(), 'intake-ledger-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [audit, erasures] = ['audit.ndjson', 'erasures.ndjson'].map((file) => join(folder, file));

  /** Backs up the logs of a database that is lost, and applies them to a copy of the first state. */
  const replace = async (lost: BuiltServer, copyUrl: string) => {
    await lost.run('backup-log', '--to', folder);
    await lost.stop();
    const stopped = await startBuiltServer({ DATABASE_URL: copyUrl });
    await stopped.stop();
    const said = await stopped.run('after-restore', '--audit', audit!, '--erasures', erasures!);
    return { said, ...(await start(copyUrl)) };
  };
  const entriesOf = async (server: BuiltServer) =>
    linesOf(await server.run('audit', '--json', '--since', '1d')).map(
      ({ audit_id, at, act, key_id, organisation }) => ({ audit_id, at, act, key_id, organisation }),
    );

  const second = await start(databaseUrl);
  await second.server.run('organisations', 'create', 'lost-later');
  await second.server.run('organisations', 'suspend', 'lost-later');
  await erasePeople(second.api, { customer_ids: [early.customer_id] });
  const before = await entriesOf(second.server);
  const once = await replace(second.server, copies[0]!);
  expect(once.said).toContain('1 erasures are repeated');
  const between = await entriesOf(once.server);
  // The organisation is lost, so its entries state its slug.
  expect(between.map(({ audit_id, at, act }) => ({ audit_id, at, act }))).toEqual(
    expect.arrayContaining(before.map(({ audit_id, at, act }) => ({ audit_id, at, act }))),
  );
  const early404 = async () => (await once.api.get(`/v1/data/customers/${early.customer_id}`)).status;
  await expect.poll(early404).toBe(404);
  await erasePeople(once.api, { customer_ids: [late.customer_id] });

  const twice = await replace(once.server, copies[1]!);
  expect(twice.said).toContain('2 erasures are repeated');
  const after = await entriesOf(twice.server);
  expect(after).toEqual(expect.arrayContaining(between));
  expect(new Set(after.map(({ audit_id }) => audit_id)).size).toBe(after.length);
  for (const { customer_id } of [early, late])
    await expect
      .poll(async () => (await twice.api.get(`/v1/data/customers/${customer_id}`)).status)
      .toBe(404);

  // A ledger from before the second restore's erasures is refused.
  const old = join(folder, 'old.ndjson');
  const lines = linesOf(readFileSync(erasures!, 'utf8')).slice(0, -1);
  const [{ erasure_id }] = lines;
  const kept = lines.filter((line) => line.erasure_id === erasure_id);
  const write = (file: string, written: object[]) =>
    writeFileSync(file, written.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const attempt = (...flags: string[]) =>
    twice.server.run('after-restore', '--audit', audit!, '--erasures', old, ...flags);
  write(old, [...kept, { entries: kept.length }]);
  await expect(attempt()).rejects.toThrow('older than the restored time, because');
  // So are an empty one and another database's, unless it is known that the organisation was removed.
  const another = [{ ...kept[0], organisation_id: randomUUID(), erasure_id: randomUUID() }];
  for (const foreign of [[], another]) {
    write(old, [...foreign, { entries: foreign.length }]);
    await expect(attempt()).rejects.toThrow(/another database's, because it lacks .* of acme; use/);
    expect(await entriesOf(twice.server)).toEqual(after);
    expect(await attempt('--removed', 'acme')).toContain('lacks erasures of removed organisations: acme.');
    after.unshift((await entriesOf(twice.server))[0]!);
  }
  await expect(attempt('--removed', 'acne')).rejects.toThrow('not an organisation of this database');
  const newest = Number(after[0]!.audit_id) + 1;
  const removal = { slug: 'acme', organisation_id: kept[0]!.organisation_id };
  const lost = linesOf(readFileSync(audit!, 'utf8'));
  write(audit!, [
    { ...lost[0], audit_id: `${newest}`, act: 'organisation.remove', details: removal },
    ...lost,
  ]);
  expect(await attempt()).toContain('1 organisations were deleted again.');
});

it('a ledger and a log that are larger than the memory are applied', async () => {
  const databaseUrl = await createTestDatabase();
  const first = await start(databaseUrl);
  await first.server.stop();
  const copyUrl = await copyOf(databaseUrl);
  const folder = mkdtempSync(join(tmpdir(), 'intake-ledger-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [audit, erasures] = ['audit.ndjson', 'erasures.ndjson'].map((file) => join(folder, file));
  const second = await start(databaseUrl);
  await erasePeople(second.api, { customer_ids: [randomUUID()] });
  await second.server.run('backup-log', '--to', folder);
  await second.server.stop();

  const [entry] = linesOf(readFileSync(erasures!, 'utf8'));
  // The organisations other than acme were created after the backup.
  const organisations = [...many(5, () => randomUUID()), entry.organisation_id];
  const ofEach = 20_000;
  const large = organisations.flatMap((organisation_id) => {
    const erasure_id = randomUUID();
    const hashes = many(ofEach, () => randomUUID().replaceAll('-', ''));
    return hashes.map((hash) => ({ ...entry, organisation_id, erasure_id, hash }));
  });
  const write = (file: string, lines: readonly object[]) =>
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  write(erasures!, [...large, entry, { entries: large.length + 1 }]);
  const log = linesOf(readFileSync(audit!, 'utf8'));
  const acts = 5_000;
  const newer = many(acts, (n) => ({
    ...log[0],
    audit_id: String(Number(log[0].audit_id) + acts - n),
    act: 'test',
    details: { padding: '-'.repeat(5_000) },
  }));
  write(audit!, [...newer, ...log]);

  const small = await startBuiltServer({ DATABASE_URL: copyUrl, NODE_OPTIONS: '--max-old-space-size=48' });
  await small.stop();
  const said = await small.run('after-restore', '--audit', audit!, '--erasures', erasures!);
  expect(said).toContain('2 erasures are repeated');
  const [counts] = await queryDatabase(
    copyUrl,
    `select (select count(*)::integer from suppressions) as hashes,
       (select count(*)::integer from audit_log where act = 'test' and imported_at is not null) as entries`,
  );
  expect(counts).toEqual({ hashes: ofEach + 1, entries: acts });
});

it('the backup of the log is never replaced by one of a database that lacks its entries', async () => {
  const databaseUrl = await createTestDatabase();
  const first = await start(databaseUrl);
  await first.server.stop();
  const copyUrl = await copyOf(databaseUrl);
  const folder = mkdtempSync(join(tmpdir(), 'intake-ledger-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const second = await start(databaseUrl);
  await second.server.run('backup-log', '--to', folder);
  const files = () =>
    ['audit.ndjson', 'erasures.ndjson'].map((file) => readFileSync(join(folder, file), 'utf8'));
  const before = files();
  const other = await startBuiltServer({ DATABASE_URL: copyUrl });
  onTestFinished(() => other.stop());
  await expect(other.run('backup-log', '--to', folder)).rejects.toThrow(
    'has entries that this database lacks',
  );
  expect(files()).toEqual(before);
  await second.server.run('backup-log', '--to', folder);
  expect(files()[1]).toMatch(/\{"entries":0,"written_at":"[^"]+"\}\n$/);
  // More than a string can contain.
  truncateSync(join(folder, 'audit.ndjson'), 2 ** 30);
  await second.server.run('backup-log', '--to', folder);
  expect(statSync(join(folder, 'audit.ndjson')).size).toBeLessThan(1_000_000);
});

it('a ledger or a log from before the restored time is refused', async () => {
  const databaseUrl = await createTestDatabase();
  const server = await startBuiltServer({ DATABASE_URL: databaseUrl });
  await server.stop();
  const folder = mkdtempSync(join(tmpdir(), 'intake-ledger-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const fileOf = (time: string, name: string) => join(folder, time, `${name}.ndjson`);
  const backUp = (time: string) => server.run('backup-log', '--to', join(folder, time));
  await server.run('organisations', 'create', 'acme');
  await backUp('old');
  await server.run('organisations', 'create', 'globex');
  await backUp('new');
  const copyUrl = await copyOf(databaseUrl);

  const restored = await startBuiltServer({ DATABASE_URL: copyUrl });
  await restored.stop();
  const attempt = (log: string, ...flags: string[]) =>
    restored.run('after-restore', '--audit', fileOf(log, 'audit'), ...flags);
  const [old, newest] = ['old', 'new'].map((time) => ['--erasures', fileOf(time, 'erasures')]) as [
    string[],
    string[],
  ];
  await expect(attempt('new', ...old)).rejects.toThrow(
    /erasures.ndjson is from .*, but this database was restored to .* or later, .* add --without-erasures/,
  );
  await expect(attempt('new', ...newest, '--without-erasures')).rejects.toThrow('is not older than');
  // The operator accepts that later erasures are lost, and applies the others.
  expect(await attempt('new', ...old, '--without-erasures')).toContain('are not repeated');
  expect(await attempt('new', ...newest)).toContain('Keys work again');
  // The entry that the old log lacks is from clearly before the last backup.
  await queryDatabase(copyUrl, `update log_backups set written_at = now() + interval '2 minutes'`);
  await expect(attempt('old', '--without-erasures')).rejects.toThrow(
    /audit.ndjson is older than the restored time, .* or --revoke-all-keys/,
  );
});

it('the backup of the ledger is never replaced by one that lacks its erasures', async () => {
  const databaseUrl = await createTestDatabase();
  const server = await startBuiltServer({ DATABASE_URL: databaseUrl });
  onTestFinished(() => server.stop());
  const key = await server.createKey('acme', ...everyPermission);
  const folder = mkdtempSync(join(tmpdir(), 'intake-ledger-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [audit, erasures] = ['audit.ndjson', 'erasures.ndjson'].map((file) => join(folder, file));
  await server.run('backup-log', '--to', folder);
  await server.stop();
  const copyUrl = await copyOf(databaseUrl);

  // Erasures are not in the audit log, so its newest entry is in both databases.
  const second = await startBuiltServer({ DATABASE_URL: databaseUrl });
  onTestFinished(() => second.stop());
  await erasePeople(apiOf(second.url, key), { customer_ids: [randomUUID()] });
  await second.run('backup-log', '--to', folder);
  const ledger = () => readFileSync(erasures!, 'utf8');
  const before = ledger();
  expect(linesOf(before)).toHaveLength(2);
  await second.stop();
  const restored = await startBuiltServer({ DATABASE_URL: copyUrl });
  await restored.stop();
  const backUp = () => restored.run('backup-log', '--to', folder);
  for (let attempt = 0; attempt < 2; attempt++)
    await expect(backUp()).rejects.toThrow('erasures.ndjson has erasures that this database lacks');
  expect(ledger()).toBe(before);

  const said = await restored.run('after-restore', '--audit', audit!, '--erasures', erasures!);
  expect(said).toContain('1 erasures are repeated');
  const swept = await start(copyUrl);
  const open = () => queryDatabase(copyUrl, `select from erasures where state in ('requested', 'sweeping')`);
  await expect.poll(open, { interval: 200 }).toEqual([]);
  await swept.server.run('backup-log', '--to', folder);
  expect(linesOf(ledger()).slice(0, -1)).toEqual(linesOf(before).slice(0, -1));
  // The time of the backup is both in the ledger and in the database.
  const known = await queryDatabase<{ written_at: Date }>(copyUrl, 'select written_at from log_backups');
  expect(known[0]?.written_at.toISOString()).toBe(linesOf(ledger()).at(-1).written_at);
  for (const damaged of ['{"entries":0}\n', '{"entr']) {
    writeFileSync(erasures!, damaged);
    await expect(swept.server.run('backup-log', '--to', folder)).rejects.toThrow(
      'erasures.ndjson has erasures',
    );
  }
});
