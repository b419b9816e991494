// @module-tag full

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LocalPostgres, startLocalPostgres, unprivilegedAccount } from '../../scripts/local-postgres.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { readFeed } from '../support/change-feed.ts';
import { servingLogin } from '../support/database.ts';
import { linesOf } from '../support/lines-of.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/** Follows the "Backup" and "Restore" sections in docs/operating/day-two.md on a separate cluster. */

const programs = '/usr/lib/postgresql/15/bin';
const isInstalled = existsSync(join(programs, 'pg_basebackup'));
if (!isInstalled) console.log('No backup is restored: PostgreSQL 15 of Debian is not installed');

let folder: string;
const clusters: LocalPostgres[] = [];
const servers: BuiltServer[] = [];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'intake-restore-'));
  chmodSync(folder, 0o755);
});
afterAll(async () => {
  for (const server of servers) await server.stop();
  for (const cluster of clusters) await cluster.stop().catch(() => {});
  rmSync(folder, { recursive: true, force: true });
});

/** Creates a folder owned by the account that PostgreSQL runs as. */
function ownFolder(...names: string[]): string {
  const path = join(folder, ...names);
  mkdirSync(dirname(path), { recursive: true });
  mkdirSync(path, { mode: 0o700 });
  const account = unprivilegedAccount();
  if (account) chownSync(path, account.uid, account.gid);
  return path;
}

const run = (program: string, ...args: string[]) =>
  execFileSync(join(programs, program), args, { ...unprivilegedAccount(), stdio: 'pipe' });

/** Returns a hash of each table's contents. */
async function hashesOf(url: string): Promise<Record<string, string>> {
  const tables = await queryDatabase<{ name: string }>(
    url,
    `select c.oid::regclass::text as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1`,
  );
  const hashes = tables.map(
    ({ name }) =>
      `select '${name}' as name,
         count(*) || ' ' || md5(coalesce(string_agg(t::text, chr(10) order by t::text), '')) as hash from only ${name} t`,
  );
  const rows = await queryDatabase<{ name: string; hash: string }>(url, hashes.join(' union all '));
  return Object.fromEntries(rows.map(({ name, hash }) => [name, hash]));
}

it.skipIf(!isInstalled)(
  'a base backup and the archived log bring back every row of a moment, but no key that was revoked and nobody who was erased after it',
  async () => {
    const archive = ownFolder('archive');
    const first = await startLocalPostgres(join(folder, 'first'), programs, {
      archive_mode: 'on',
      archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f`,
    });
    clusters.push(first);
    const url = first.url('intake');
    await queryDatabase(first.url('postgres'), 'create database intake');
    const intake = async (target: string, ...args: string[]) => {
      const { exitCode, stdout, stderr } = await runCommand(args, { DATABASE_URL: target });
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      return stdout;
    };
    await intake(url, 'migrate');
    const { password } = new URL(url);
    await queryDatabase(url, `create role ${servingLogin} login password '${password}' in role intake_serve`);
    await queryDatabase(url, `create role intake_ops login password '${password}' in role intake_admin`);
    const before = await startBuiltServer({ DATABASE_URL: url });
    servers.push(before);
    const issue = async () => {
      const key = await before.createKey('acme');
      return { key, key_id: key.split('_')[1] ?? '' };
    };
    const [stolen, kept] = [await issue(), await issue()];
    const erasing = await before.createKey(
      'acme',
      'data:erase',
      'data:read',
      'data:write',
      'interactions:write',
    );
    const returning = { customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' };
    const lifting = await before.createKey('globex', 'data:erase', 'data:read', 'data:write');
    await apiOf(before.url, lifting).upload('customers', [returning]);
    const [shop, customer_id, user_id] = [newShop(), randomUUID(), randomUUID()];
    const visitor = `visitor ${randomUUID()}`;
    await intake(url, 'organisations', 'limit', 'acme', '--bytes-in-flight', '100000000');
    await intake(
      url,
      'organisations',
      'set-retention',
      'acme',
      '--interactions',
      '90d',
      '--rejections',
      '9d',
    );
    const upload = () =>
      apiOf(before.url, kept.key).batch(
        'shops',
        many(500, () => newShop()),
      );
    expect(await upload()).toMatchObject({ http: 200 });
    const sender = apiOf(before.url, erasing);
    await sender.upload('shops', [shop]);
    await sender.upload('customers', [{ customer_id, user_id, region: 'GB' }]);
    await sender.upload('transactions', [newTransaction(shop.shop_id, { student_id: customer_id })]);
    const interaction = {
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp: 1_700_000_000,
      user_id: visitor,
    };
    for (const student of [{ student_id: customer_id }, {}])
      expect((await sender.post('/user-interactions', { ...interaction, ...student })).status).toBe(201);
    const restored = ownFolder('second', 'data');
    run(
      'pg_basebackup',
      '-d',
      first.url('postgres'),
      '-D',
      restored,
      '-X',
      'none',
      '--checkpoint=fast',
      '--no-manifest',
    );
    expect(await upload()).toMatchObject({ http: 200 });
    const { cursor } = await readFeed(apiOf(before.url, kept.key));
    await before.stop();

    const tooOld = join(folder, 'too-old.ndjson');
    writeFileSync(tooOld, await intake(url, 'erasures'));
    for (const name of ['stolen', 'kept']) await intake(url, 'tokens', 'issue', name);
    const sessionTables = ['console_sessions', 'console_links', 'operator_sessions'];
    for (const table of sessionTables)
      await queryDatabase(
        url,
        `insert into ${table} values (sha256('any'), 'kept', now() + interval '12 hours')`,
      );
    const noted = await hashesOf(url);
    const [{ moment } = { moment: '' }] = await queryDatabase<{ moment: string }>(
      url,
      'select clock_timestamp()::text as moment',
    );
    await sleep(1_000);
    const ledger = join(folder, 'erasures.ndjson');
    const later = await startBuiltServer({ DATABASE_URL: url });
    servers.push(later);
    const eraser = apiOf(later.url, erasing);
    const { erasure_id } = (
      await eraser.post('/v1/erasures', { customer_ids: [customer_id], user_ids: [visitor] })
    ).body;
    const stateOf = async (api: Api) => (await api.get(`/v1/erasures/${erasure_id}`)).body.state;
    await expect.poll(() => stateOf(eraser)).toBe('swept');
    const lifter = apiOf(later.url, lifting);
    const lifted = (await lifter.post('/v1/erasures', { customer_ids: [returning.customer_id] })).body;
    const suppression = `/v1/erasures/${lifted.erasure_id}/suppression`;
    const lift = async () => (await lifter.send(suppression, { method: 'DELETE' })).status;
    await expect.poll(lift).toBe(200);
    await later.stop();
    await intake(url, 'keys', 'revoke', stolen.key_id);
    await intake(url, 'tokens', 'revoke', 'stolen');
    await intake(url, 'tokens', 'issue', 'late');
    const late = await issue();
    await intake(url, 'organisations', 'limit', 'acme', '--requests-per-second', '7');
    await intake(url, 'organisations', 'limit', 'acme', '--requests-per-second', '9');
    await intake(url, 'organisations', 'set-retention', 'acme', '--interactions', 'off', '--receipts', '20d');
    await intake(url, 'organisations', 'set-lake', 'acme', 'on');
    await queryDatabase(url, 'delete from shops');
    await intake(url, 'backup-log', '--to', folder);
    const log = join(folder, 'audit.ndjson');
    expect(readFileSync(ledger, 'utf8')).not.toContain(customer_id);
    const lastAct = linesOf(readFileSync(log, 'utf8'))[0];
    await queryDatabase(url, 'select pg_switch_wal()');
    await first.stop();

    writeFileSync(join(restored, 'recovery.signal'), '');
    appendFileSync(
      join(restored, 'postgresql.auto.conf'),
      `restore_command = 'cp ${archive}/%f %p'\nrecovery_target_time = '${moment}'\nrecovery_target_action = 'promote'\n`,
    );
    copyFileSync(join(first.home, 'password'), join(folder, 'second', 'password'));
    const account = unprivilegedAccount();
    if (account)
      for (const name of readdirSync(restored)) chownSync(join(restored, name), account.uid, account.gid);
    const second = await startLocalPostgres(join(folder, 'second'), programs);
    clusters.push(second);
    const target = second.url('intake');
    const isRecovering = async () =>
      (await queryDatabase<{ is: boolean }>(target, 'select pg_is_in_recovery() as is'))[0]?.is;
    await expect.poll(isRecovering).toBe(false);
    expect(await hashesOf(target)).toEqual(noted);

    const server = await startBuiltServer({ DATABASE_URL: target });
    servers.push(server);
    const status = async (path: string, { key }: { key?: string } = {}) =>
      (await apiOf(server.url, key).get(path)).status;
    expect(await status('/v1/data', stolen)).toBe(503);
    expect(await status('/v1/data', kept)).toBe(503);
    expect(await status('/health/ready')).toBe(503);
    expect(server.log.join('\n')).toContain('until intake-server after-restore has run');

    await expect
      .poll(async () => (await apiOf(server.url).get('/health/ready')).body.message)
      .toContain('after-restore');
    const asOperator = new URL(target);
    asOperator.username = 'intake_ops';
    const env = { DATABASE_URL: asOperator.href };
    const attempt = (...flags: string[]) => runCommand(['after-restore', ...flags], env);
    const short = join(folder, 'short.ndjson');
    writeFileSync(short, `${readFileSync(log, 'utf8').split('\n', 1)[0]}\n`);
    const refused = await attempt('--audit', short, '--erasures', ledger);
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('does not reach back') });
    const unsaid = await attempt('--audit', log);
    expect(unsaid).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--without-erasures') });
    const cut = join(folder, 'cut.ndjson');
    const lines = readFileSync(ledger, 'utf8').trimEnd().split('\n');
    for (const left of [[], lines.slice(0, 1), lines.slice(0, -1), lines.slice(1)]) {
      writeFileSync(cut, left.map((line) => `${line}\n`).join(''));
      const { exitCode, stderr } = await attempt('--audit', log, '--erasures', cut);
      expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/cut off|incomplete/)]);
    }
    const early = await attempt('--audit', log, '--erasures', tooOld);
    expect(early).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('but this database was restored'),
    });
    // The timer must not replace the files that the restore needs.
    const overwriting = await runCommand(['backup-log', '--to', folder], env);
    expect(overwriting).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('after-restore') });
    expect(await status('/v1/data', kept)).toBe(503);
    // Retention deletes nothing after a restore, because the restored settings may be outdated.
    await expect(queryDatabase(target, 'select begin_expiry(null)')).rejects.toThrow('after-restore');
    await queryDatabase(
      target,
      `insert into lake_progress (organisation_id, number, epoch)
       select organisation_id, 1, 'a' from organisations where slug = 'acme'`,
    );
    const said = await intake(asOperator.href, 'after-restore', '--audit', log, '--erasures', ledger);
    expect(said).toMatch(/\d+ entries were added to the audit log/);
    const entries = linesOf(await intake(asOperator.href, 'audit', '--json', '--since', '1d'));
    expect(entries).toContainEqual({ ...lastAct, imported_at: expect.any(String) });
    const times = entries.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().toReversed());
    // The files may contain what the database has lost.
    const unremoved = 'select from lake_progress where removing_since is null';
    expect(await queryDatabase(target, unremoved)).toEqual([]);
    expect(said).toContain('2 erasures are repeated');
    expect(said).toContain('1 revoked keys, 1 revoked admin tokens and 0 suspended organisations');
    expect(said).toContain(`have to be issued again: ${late.key_id}, the admin token late\n`);
    const inUse = 'select name from admin_tokens where revoked_at is null';
    expect(await queryDatabase(target, inUse)).toEqual([{ name: 'kept' }]);
    // Sessions that were signed out since the backup do not work again, and no sign-in link works twice.
    for (const table of sessionTables)
      expect([table, await queryDatabase(target, `select from ${table}`)]).toEqual([table, []]);
    // The output shows only the lost limit, with its latest value.
    expect(said).toContain(
      'have to be set again:\n  intake-server organisations limit acme --requests-per-second 9\n',
    );
    expect(said).toContain('The retention of 1 organisations was set again.\n');
    expect(
      await queryDatabase(
        target,
        `select interactions_kept_days, receipts_kept_days, rejections_kept_days, lake from organisations where slug = 'acme'`,
      ),
    ).toEqual([
      { interactions_kept_days: null, receipts_kept_days: 20, rejections_kept_days: 9, lake: true },
    ]);
    expect(said).toContain('The lakes of 1 organisations were switched as recorded in the audit log.\n');
    // The first response other than 503 must say that the customer does not exist.
    const gone = () => status(`/v1/data/customers/${customer_id}`, kept);
    let answered = await gone();
    for (; answered === 503; answered = await gone()) await sleep(50);
    expect(answered).toBe(404);
    await expect.poll(() => status('/v1/data', kept)).toBe(200);
    await expect.poll(() => stateOf(apiOf(server.url, erasing))).toBe('swept');
    // The erasure that was lifted before the restore is repeated, and then lifted again.
    const lifterHere = apiOf(server.url, lifting);
    const repeated = async () => (await lifterHere.get(`/v1/erasures/${lifted.erasure_id}`)).body.state;
    await expect.poll(repeated).toBe('swept');
    const dump = run('pg_dump', target).toString();
    for (const personal of [user_id, visitor, returning.user_id]) expect(dump).not.toContain(personal);
    expect(await lifterHere.batch('customers', [returning])).toMatchObject({ counts: { created: 1 } });
    expect(await status('/v1/data', stolen)).toBe(401);
    // A reader's copy may contain changes that the restored database lacks.
    expect(await status(`/v1/changes?after=${cursor}`, kept)).toBe(410);
    await expect.poll(() => status('/health/ready')).toBe(200);
    await intake(asOperator.href, 'backup-log', '--to', folder);

    // Create a new database on a server whose settings still contain the recovery target.
    await queryDatabase(second.url('postgres'), 'create database newer');
    const newer = second.url('newer');
    await intake(newer, 'migrate');
    const fresh = await startBuiltServer({ DATABASE_URL: newer });
    servers.push(fresh);
    await expect.poll(async () => (await apiOf(fresh.url).get('/health/ready')).status).toBe(200);
    // Without the audit log, the command shows the current limits and retention.
    const shown = await intake(asOperator.href, 'after-restore', '--revoke-all-keys', '--erasures', ledger);
    expect(shown).toContain(
      '  intake-server organisations set-retention acme --interactions off --receipts 20d --rejections 9d\n',
    );
    expect(shown).toContain(
      'have their own limits:\n  intake-server organisations limit acme --requests-per-second default ' +
        '--interactions-per-second default --records-per-second default --bytes-in-flight 100000000 ' +
        '--records-stored default --bytes-stored default\n',
    );
  },
);
