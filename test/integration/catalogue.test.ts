import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Field } from '../../src/registry/fields.ts';
import { interaction } from '../../src/registry/interaction.ts';
import { idFieldOf, resources, resourceTypes } from '../../src/registry/resources.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const sqlNames: Record<Field['column'], string> = {
  uuid: 'uuid',
  text: 'text',
  date: 'date',
  timestamptz: 'timestamp with time zone',
  numeric: 'numeric',
  float8: 'double precision',
  bool: 'boolean',
  jsonb: 'jsonb',
};

/** Tables that do not belong to a record type. */
const others = [
  'jobs',
  'organisations',
  'tenants',
  'api_keys',
  'admin_tokens',
  'audit_log',
  'interactions',
  'interaction_idempotency_keys',
  'interaction_partitions',
  'receipts',
  'receipt_batches',
  'upload_idempotency_keys',
  'runs',
  'run_file_claims',
  'rejections',
  'rejection_kinds',
  'rejection_count_changes',
  'unsettled_batches',
  'record_counts',
  'record_count_changes',
  'changes',
  'change_counters',
  'report_progress',
  'report_interactions',
  'report_visits',
  'report_transactions',
  'report_sums',
  'schema_migrations',
  'schema_compatibility',
  'restores',
  'leases',
  'cursor_key',
  'console_sessions',
  'console_links',
  'processes',
  'organisation_activity',
  'chore_runs',
  'operator_sessions',
  'erasures',
  'erasure_ids',
  'suppressions',
  'erasure_keys',
  'access_requests',
  'access_request_ids',
  'access_request_records',
  'removals',
  'retention_progress',
  'quota_usage',
  'lake_progress',
  'lake_slots',
  'lake_processes',
  'lake_place',
  'log_backups',
];

const tableNamed = (type: string) => type.replaceAll('-', '_');

async function columnsOf(table: string): Promise<string[]> {
  const { rows } = await test.pool.query<{ line: string }>(
    `select a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end as line
     from pg_attribute a where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [table],
  );
  return rows.map(({ line }) => line);
}

async function primaryKeyOf(table: string): Promise<string[]> {
  const { rows } = await test.pool.query<{ name: string }>(
    `select a.attname as name from pg_constraint c
     cross join unnest(c.conkey) with ordinality as k(attnum, at)
     join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum
     where c.conrelid = $1::regclass and c.contype = 'p' order by k.at`,
    [table],
  );
  return rows.map(({ name }) => name);
}

function expectedColumns(fields: Record<string, Field>): string[] {
  return Object.entries(fields).map(([name, { column, required, fallback }]) => {
    const notNull = required || fallback !== undefined ? ' not null' : '';
    return `${name} ${sqlNames[column]}${notNull}`;
  });
}

describe.each(resourceTypes)('%s', (type) => {
  it('has a table whose columns are its fields, in name, type, order and nullability', async () => {
    expect(await columnsOf(tableNamed(type))).toEqual([
      'organisation_id uuid not null',
      ...expectedColumns(resources[type].fields),
      'stored_at timestamp with time zone not null',
    ]);
  });

  it('is keyed by the organisation first', async () => {
    expect(await primaryKeyOf(tableNamed(type))).toEqual(['organisation_id', idFieldOf(type)]);
  });
});

it('interactions have a column for each field, the instant and the id', async () => {
  const expected = [
    'organisation_id uuid not null',
    'interaction_id uuid not null',
    ...expectedColumns(interaction),
    'event_time timestamp with time zone not null',
  ];
  expect((await columnsOf('interactions')).toSorted()).toEqual(expected.toSorted());
  expect(await primaryKeyOf('interactions')).toEqual(['organisation_id', 'interaction_id']);
});

it('every table in the database is a type of the registry or one of the few others', async () => {
  const { rows } = await test.pool.query<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`,
  );
  const expected = [...resourceTypes.map(tableNamed), ...others];
  expect(rows.map(({ name }) => name).toSorted()).toEqual(expected.toSorted());
});

it('every index, except on organisations, keys, tokens and the audit log, starts with the organisation', async () => {
  const { rows } = await test.pool.query<{ line: string }>(
    `select t.relname || ': ' || a.attname as line from pg_index i
     join pg_class t on t.oid = i.indrelid join pg_attribute a on a.attrelid = t.oid and a.attnum = i.indkey[0]
     where t.relnamespace = 'public'::regnamespace and a.attname <> 'organisation_id'
       and t.relname not in ('organisations', 'api_keys', 'admin_tokens', 'audit_log', 'schema_migrations', 'schema_compatibility', 'restores', 'cursor_key', 'console_sessions', 'console_links', 'operator_sessions', 'processes', 'organisation_activity', 'chore_runs')`,
  );
  // In the background, expired idempotency keys and runs are purged for all organisations together. Leases and partitions do not
  // belong to an organisation.
  expect(rows.map(({ line }) => line).toSorted()).toEqual([
    'access_requests: state',
    'erasures: state',
    'interaction_idempotency_keys: claimed_at',
    'interaction_partitions: first_id',
    'interaction_partitions: name',
    'lake_place: is_only',
    'lake_processes: process_id',
    'lake_slots: slot',
    'leases: name',
    'log_backups: is_only',
    'run_file_claims: claimed_at',
    'runs: run_id',
    'upload_idempotency_keys: claimed_at',
  ]);
});

it('a removal clears every column that refers to an organisation or a key', async () => {
  const { rows } = await test.pool.query<{ place: string }>(
    `select c.relname || '.' || a.attname as place from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and a.attnum > 0 and not a.attisdropped and a.attname ~ '(organisation|slug|^key_id|successor)'
       and not (a.attname in ('organisation_id', 'key_id') and c.relname in (select organisation_tables()))`,
  );
  // A removal finds all other tables with an organisation's data automatically, but finish_removal lists these by name.
  expect(rows.map(({ place }) => place).toSorted()).toEqual([
    'api_keys.key_id',
    'api_keys.organisation_id',
    'api_keys.successor_of',
    'audit_log.key_id',
    'audit_log.organisation_id',
    'console_links.key_id',
    'console_sessions.key_id',
    'jobs.organisation_id',
    'organisations.organisation_id',
    'organisations.slug',
    'quota_usage.organisation_id',
    'removals.organisation_id',
    'tenants.organisation_id',
  ]);
});
