// @module-tag full
// @module-tag long
// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { startService } from '../../src/cli/serve.ts';
import { readConfig } from '../../src/config.ts';
import { adminOperations } from '../../src/http/admin/operations.ts';
import { allPermissions } from '../../src/keys/permissions.ts';
import { choresOf, counting } from '../../src/maintenance/chores.ts';
import { issueToken, listTokens, revokeToken } from '../../src/operator/admin-tokens.ts';
import {
  importEntries,
  lastBackup,
  listAuditEntries,
  noteBackup,
  reserveIds,
} from '../../src/operator/audit-log.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { inTransaction } from '../../src/postgres/transactions.ts';
import { tableOf } from '../../src/records/tables.ts';
import { resourceTypes } from '../../src/registry/resources.ts';
import { firstUuid, uuidFloor } from '../../src/registry/uuid-v7.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { apiOf } from '../support/api.ts';
import { erasureKey } from '../support/app.ts';
import { beginRemovals } from '../support/begin-removals.ts';
import { unlimited } from '../support/built-server.ts';
import { followFeed, readFeed } from '../support/change-feed.ts';
import { createTestDatabase, servingUrl, throughPooler } from '../support/database.ts';
import { eraseEverybody } from '../support/erase-everybody.ts';
import { askEverything, makeEveryRequest } from '../support/every-request.ts';
import { fillTable } from '../support/filled-tables.ts';
import { freePort } from '../support/free-port.ts';
import { moveThere } from '../support/move-there.ts';
import { newTag } from '../support/new-records.ts';
import { addOldChanges } from '../support/old-changes.ts';
import { addInteractions, addOldDay } from '../support/old-interactions.ts';
import { addOldWeek } from '../support/old-week.ts';
import { genericPlan, type Plan, statementsInside } from '../support/plans.ts';
import { linesThatQuery, type Recording, recordStatements } from '../support/recorded-statements.ts';
import { signInAndOut } from '../support/sign-in.ts';
import { signerOf } from '../support/signed-cursor.ts';
import { untilPasses } from '../support/until-passes.ts';
import { writeLakeOnce } from '../support/written-lake.ts';

/**
 * Runs each of the service's statements once, and plans it on small and on large tables. A prepared statement keeps its
 * generic plan as long as its connection is open, so the plan must be good for organisations of all sizes.
 */

/** Tables that grow with use. All record types have the same statements, so two large ones represent all fourteen. */
const large = [
  'transactions',
  'shops',
  'receipts',
  'receipt_batches',
  'runs',
  'run_file_claims',
  'rejections',
  'audit_log',
  'api_keys',
  'upload_idempotency_keys',
  'interaction_idempotency_keys',
  'suppressions',
  'access_request_records',
];
/** Statements on these tables are only checked for index use, so fewer rows are enough. */
const medium = [
  'interactions',
  'changes',
  'report_interactions',
  'report_visits',
  'report_transactions',
  'report_sums',
];
/** Tables that do not grow. Count differences are rolled up every ten seconds, batches are settled every two, people's
 * ids are deleted after their sweep or collection, a key or an admin token has at most a hundred sessions, and the
 * others have a few rows per organisation.
 */
const bounded = [
  'quota_usage',
  'console_sessions',
  'console_links',
  'organisation_activity',
  'operator_sessions',
  'erasures',
  'erasure_ids',
  'erasure_keys',
  'access_requests',
  'access_request_ids',
  'record_count_changes',
  'rejection_count_changes',
  'unsettled_batches',
  'organisations',
  'tenants',
  'record_counts',
  'rejection_kinds',
  'change_counters',
  'report_progress',
  ...['removals', 'retention_progress', 'jobs'],
  'lake_progress',
];
/** Tables with a few rows in total, or one row per day. */
const tiny = [
  'schema_migrations',
  'schema_compatibility',
  'restores',
  'leases',
  'lake_slots',
  'lake_processes',
  'cursor_key',
  ...['lake_place', 'log_backups'],
  'admin_tokens',
  'processes',
  'chore_runs',
  'interaction_partitions',
];
const records = resourceTypes.map((type) => tableOf(type).name);
/** Statements whose cost may grow with the tables, identified by a part of their text, with the reason. */
const mayCostMore: Readonly<Record<string, string>> = {
  'k.changed_in >= $1':
    'PostgreSQL estimates an unknown range as a 200th of the table; it is read by its index',
  '(request_id, rejection_id) >': 'the same: it is a range of one request, read by the index of requests',
  'order by version, hash limit': 'it reads up to 100,000 by their index, once for each process',
  'as count from suppressions': 'each process counts them once, by an index alone, and then reads them all',
  'join pg_attribute a on a.attrelid = c.oid':
    'it reads the catalogue, which this test makes larger by building indexes again',
  'as complete,': 'it counts the receipts of up to 31 days',
  'as failed from receipts': 'an unknown range: the receipts of one import, which have one millisecond',
  'offset 9999 limit 1': 'it reads 10,000 by an index alone, which costs more until the table is vacuumed',
  'as next order by rejection_id limit 10000':
    'it reads up to 10,000 of a type or a kind by their index; the small table has fewer of them',
};

/**
 * Statements that may scan a whole table, identified by a part of their text. Operators rarely list keys that expire
 * soon or were never used. An index on `last_used_at` would slow down its update, which happens once a minute per key.
 */
const mayReadWhole = ['expires_at < $', 'last_used_at is null'];

/**
 * This is small enough to fill quickly and large enough to reach the limits: a list scans 10,000 of an organisation's
 * records, and PostgreSQL assumes that a third of the records are after a cursor.
 */
const smallRows = 100_000;
/** A statement whose cost is proportional to the table size costs 3.5 times as much here. */
const largeRows = 350_000;

const instant = '2026-03-14T09:26:53Z';

const onCitus = inject('citus') !== null;
const hasPooler = inject('poolerPort') !== null;
/**
 * PostgreSQL 15 cannot explain a generic plan, and Citus does not make one (citus-tasks.test.ts explains the statements
 * there). With a pooler, the plans would be the same.
 */
const cannotExplain = process.env.TEST_POSTGRES === '15' || onCitus || hasPooler;
const test = it.skipIf(cannotExplain);

const ownerUrl = await createTestDatabase();
const owner = new pg.Client({ connectionString: ownerUrl });
let recording: Recording;
let statements: string[];
let small: Map<string, Plan>;
let grown: Map<string, Plan>;

beforeAll(async () => {
  await owner.connect();
  if (onCitus) return;
  recording = recordStatements();
  await useEverything();
  recording.stop();
  if (cannotExplain) return;
  const sent = [...recording.statements.keys()].filter((text) =>
    /^\s*(with|select|insert|update|delete)\b/.test(text),
  );
  const inside = new Set<string>();
  for (const text of sent) for (const body of await statementsInside(owner, text)) inside.add(body);
  statements = [...sent, ...inside];
  // This setting skips the foreign key check for each row.
  await owner.query('set session_replication_role = replica');
  for (const table of [...bounded, ...records]) await refill(table, 10_000);
  for (const table of [...large, ...medium]) await refill(table, smallRows);
  small = await plansOf(statements);
  for (const table of large) await fillTable(owner, table, smallRows + 1, largeRows);
  grown = await plansOf(statements);
});
afterAll(() => owner.end());

async function refill(table: string, rows: number): Promise<void> {
  await owner.query(`truncate ${table} cascade`);
  await fillTable(owner, table, 1, rows);
}

async function useEverything(): Promise<void> {
  const adminPort = await freePort();
  const config = readConfig({
    ...unlimited,
    DATABASE_URL: throughPooler(servingUrl(ownerUrl)),
    DATABASE_POOLER: hasPooler ? 'on' : 'off',
    ADMIN_DATABASE_URL: ownerUrl,
    ADMIN_PORT: String(adminPort),
    PORT: '0',
    LOG_LEVEL: 'silent',
    ERASURE_KEYS: erasureKey,
    LAKE_URL: 'file:///nowhere',
  });
  const service = await startService(config);
  const pool = createPool({ ...config, databaseUrl: ownerUrl }, () => {});
  const serving = createPool(config, () => {}, { plansOnce: true });
  try {
    const by = { actor: 'test' };
    const issuedToken = await issueToken(pool, by, { name: 'operator', role: 'full', expiresAt: null });
    const admin = apiOf(`http://127.0.0.1:${adminPort}`, issuedToken?.token);
    await admin.post('/admin/v1/organisations', { slug: 'acme' });
    await admin.send('/admin/v1/organisations/acme', {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        name: 'Acme',
        recommendations_report: true,
        interactions_kept_days: 3,
        receipts_kept_days: 3,
        rejections_kept_days: 3,
        records_stored_max: 1_000_000,
        bytes_stored_max: 1_000_000_000,
        lake: true,
      }),
    });
    const permissions = [...allPermissions, 'data:erase', 'data:access'];
    const { body: issued } = await admin.post('/admin/v1/keys', { organisation: 'acme', permissions });
    const { body: rotated } = await admin.post(`/admin/v1/keys/${issued.key_id}/rotate`, {});
    await admin.post(`/admin/v1/keys/${rotated.key_id}/revoke`, {});
    const names = { organisation: 'acme', slug: 'acme', key_id: issued.key_id, limit: '1' };
    const ofKeys = { expires_before: '2099-01-01T00:00:00Z', unused: 'true' };
    const ofActivity = { search: 'acme', by: 'requests', minutes: '5', days: '3' };
    const ofReceipts = { type: 'tags', status: '200', idempotency_key: 'twice', run_id: firstUuid };
    const ofTime = { from: instant, to: instant };
    const ofAudit = { actor: 'token:operator', action: 'key.issue', since: instant, until: instant };
    const values = {
      ...names,
      ...ofKeys,
      ...ofActivity,
      ...ofReceipts,
      ...ofTime,
      ...ofAudit,
      cursor: 'acme',
    };
    await askEverything(admin, adminOperations, values);
    for (const path of ['/admin/v1/audit?limit=1', '/admin/v1/audit?limit=1&organisation=acme']) {
      const { next_cursor } = (await admin.get(path)).body;
      expect((await admin.get(`${path}&cursor=${next_cursor}`)).status).toBe(200);
    }
    const { body: link } = await admin.post('/admin/v1/console-links', { organisation: 'acme' });
    await signInAndOut(`http://127.0.0.1:${adminPort}`, { token: issuedToken?.token ?? '' });
    await beginRemovals(admin, owner);
    await listTokens(pool, null, 10);
    for (let time = 0; time < 2; time++) await revokeToken(pool, by, 'operator');
    const api = apiOf(service.address, issued.key);
    await makeEveryRequest(api, await signerOf(ownerUrl, 'acme', 'report'));
    await waitForChange(api, service.address, issued.key);
    await signInAndOut(service.address, { link: link.path.split('#')[1] });
    await moveThere({ serving, admin: pool }, 'acme', [erasureKey]);
    await eraseEverybody(api, pool, owner);
    await doMaintenance(api);
    const { rows } = await owner.query<{ organisation_id: string }>(
      'select organisation_id from organisations',
    );
    const ofOne = { organisationId: rows[0]?.organisation_id, since: new Date(0) };
    for (const filter of [{}, ofOne]) await listAuditEntries(pool, filter, 10);
    const entries = (await listAuditEntries(pool, {}, 1_000)).toReversed();
    await reserveIds(pool, entries);
    await inTransaction(pool, (client) => importEntries(client, entries));
    await noteBackup(pool, new Date());
    await lastBackup(pool);
  } finally {
    await Promise.all([pool.end(), serving.end()]);
    await service.stop();
  }

  /** Starts a waiting reader, which polls for new changes. */
  async function waitForChange(api: ReturnType<typeof apiOf>, url: string, key: string): Promise<void> {
    const { cursor } = await readFeed(api, { query: 'limit=1000' });
    const ending = new AbortController();
    const lines = followFeed(url, key, { after: cursor, signal: ending.signal });
    await lines.next();
    await api.upload('tags', [newTag()]);
    expect((await lines.next()).value).toMatchObject({ type: 'tags' });
    ending.abort();
  }

  async function doMaintenance(api: ReturnType<typeof apiOf>): Promise<void> {
    await api.upload('tags', [{ tag_id: 'no' }]);
    await owner.query(`update rejections set rejection_id = '${uuidFloor(1)}' where type = 'tags'`);
    await owner.query(
      `insert into rejection_kinds (organisation_id, kind_id, type, fields, codes, messages, used_at)
       select organisation_id, gen_random_uuid(), 'tags', '{}', '{}', '{}', '2026-01-01' from organisations limit 1`,
    );
    for (const of of ['upload', 'interaction'])
      await owner.query(`update ${of}_idempotency_keys set claimed_at = now() - interval '2 days'`);
    await owner.query(
      `update runs set run_id = uuid_floor(now() - interval '400 days') where name = 'failed'`,
    );
    await owner.query(`update run_file_claims set claimed_at = now() - interval '500 days'`);
    await addOldWeek(owner, randomUUID(), 20);
    await addOldChanges(owner, [randomUUID()], 20);
    const { rows: organisations } = await owner.query('select organisation_id from organisations limit 1');
    const { organisation_id: acme } = organisations[0];
    // The service itself has already recorded that nothing has expired.
    await owner.query('delete from retention_progress');
    // One day is dropped. Another organisation keeps the other day, so that day's rows are deleted instead.
    await addInteractions(owner, acme, await addOldDay(owner, 21), 1);
    const shared = await addOldDay(owner, 22);
    for (const organisationId of [acme, randomUUID()])
      await addInteractions(owner, organisationId, shared, 1);
    // These counts make the service sample row sizes.
    await owner.query(`insert into record_counts select organisation_id, 'shops', 2000 from organisations
       on conflict (organisation_id, type) do update set records = 2000`);
    // Simulate data from before the report was enabled.
    await owner.query(
      `insert into report_progress select organisation_id, 0, 0, '${firstUuid}', '${firstUuid}' from organisations
       on conflict (organisation_id) do update set interactions_after = '${firstUuid}', transactions_after = '${firstUuid}'`,
    );
    const kept = {
      receiptsKeptDays: 30,
      changesKeptDays: 7,
      deletedOrganisationsKeptDays: 30,
      databaseTimeoutMs: 30_000,
    };
    const chores = choresOf(pool, kept, new Suppressions([erasureKey]));
    for (const chore of [...chores, ...counting(pool, kept, () => {})]) await chore.run();
    await writeLakeOnce(pool, owner, acme);
    expect((await api.get('/v1/lake')).status).toBe(200);
    await readFeed(api, { query: 'types=interactions' });
    await owner.query('update organisations set records_stored_max = 1');
    const keyed = () => ({ 'idempotency-key': randomUUID() });
    const isRefused = async () =>
      expect((await api.post('/v1/data/tags', { records: [newTag()] }, keyed())).status).toBe(403);
    await untilPasses(isRefused, 500);
    const visit = { interaction_type: 'SHARE', item_type: 'TAG', item_id: randomUUID(), event_timestamp: 1 };
    expect((await api.post('/user-interactions', visit, keyed())).status).toBe(403);
    // The next poll saves when keys were last used.
    const isNoted = () => expect([...recording.statements.keys()].join()).toContain('note_api_keys_used');
    await untilPasses(isNoted);
  }
}

async function plansOf(texts: readonly string[]): Promise<Map<string, Plan>> {
  const plans = new Map<string, Plan>();
  for (const text of texts) plans.set(text, await genericPlan(owner, text));
  return plans;
}

/** Statements for migrations, restored databases or Citus, which `serve` does not send to a single PostgreSQL server. */
const whenMigrating =
  /src\/(postgres\/schema\/(migrate|migration-checksums)|operator\/(roles|analytics-views|after-restore|erasure-ledger|distribute|cluster)|erasure\/(erasure-functions|sweep\/identify-people))\.ts/;

it.skipIf(onCitus)('PostgreSQL understands every statement, and the service may run it', () => {
  // Class 42 contains errors in a statement, including missing privileges. Class 0A contains unsupported features.
  const refused = [...recording.failures].filter(([, { code = '' }]) => /^(42|0A)/.test(code));
  expect(recording.statements.size).toBeGreaterThan(100);
  expect(refused.map(([text, { message }]) => `${message}: ${text}`)).toEqual([]);
});

// A pooler's sessions have their own settings, so the statements that change settings are not sent.
it.skipIf(onCitus || hasPooler)('every line of the source that sends a statement was executed', () => {
  const lines = linesThatQuery('src/!(cli|http)/**/*.ts').filter((line) => !whenMigrating.test(line));
  expect(lines.length).toBeGreaterThan(40);
  const isException = (line: string) => neverMet.some((what) => textOf(line).includes(what));
  expect(lines.filter((line) => !recording.lines.has(line) && !isException(line))).toEqual([]);
});

/**
 * Statements without a meaningful plan: cancellations, locks, temporary files, session settings behind a pooler, and the
 * key claims on Citus.
 */
const neverMet = [
  ...['pg_cancel_backend', 'pg_advisory_xact_lock', 'set timezone', 'blockedQuestion', 'spaceQuestion'],
  ...[
    'set local lock_timeout',
    'claimsInParts(keyed)',
    'await client.query<{ key: string }>(',
    'client.query<{ organisation_id: string; version: number }>(',
    'pool.query<{ name: string; port: number; is_active: boolean }>(',
    'pool.query<{ node: string; state: string; now_ms: number }>(',
    'pool.query<Shard>(',
  ],
];

function textOf(line: string): string {
  const [file = '', number] = line.split(':');
  const root = new URL('../../', import.meta.url);
  return readFileSync(new URL(file, root), 'utf8').split('\n')[Number(number) - 1] ?? '';
}

test('every table is listed as growing or not', async () => {
  const { rows } = await owner.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  const known = [...large, ...medium, ...bounded, ...tiny, ...records];
  expect(rows.filter(({ name }) => !known.includes(name))).toEqual([]);
});

test('no statement reads a growing table whole', () => {
  const found = statements.flatMap((text) => {
    if (mayReadWhole.some((part) => text.includes(part))) return [];
    const { readWhole, text: plan } = grown.get(text) as Plan;
    const tables = readWhole.filter((table) => [...large, ...medium].includes(table));
    return tables.length > 0 ? [`${tables.join()}: ${text}\n${plan}`] : [];
  });
  expect(found.join('\n\n')).toBe('');
});

test('failed records are looked up in a hash table, not compared one by one with all that are unsettled', () => {
  const text = statements.find((each) => each.includes('in (select unnest($3')) ?? '';
  expect(grown.get(text)?.text).toContain('hashed SubPlan');
});

test('no statement costs more on a large table', () => {
  const found = statements.flatMap((text) => {
    const [before, after] = [small.get(text) as Plan, grown.get(text) as Plan];
    if (after.tables.some((table) => medium.includes(table))) return [];
    if ([...Object.keys(mayCostMore), ...mayReadWhole].some((part) => text.includes(part))) return [];
    return after.cost > 3 * before.cost ? [`${before.cost} to ${after.cost}: ${text}\n${after.text}`] : [];
  });
  expect(found.join('\n\n')).toBe('');
});
