import type pg from 'pg';

/** Uses SQL to fill tables, whatever their columns are, with as many rows as years of use would leave. */

/** An SQL expression for ascending ids, because inserting a million random ids into an index takes ten times as long. */
const uuidOf = (number: string) => `lpad(to_hex(${number}), 32, '0')::uuid`;

/** Fixed, so that rows which are added later are older by `n`, however long the tests took between. */
const started = new Date().toISOString();

/** The SQL expression for a column's value in row n, by the column's type. */
const byType: Readonly<Record<string, string>> = {
  uuid: uuidOf('n'),
  text: `'text'`,
  numeric: 'n % 100',
  integer: 'n % 100',
  smallint: '(array[200, 207, 400])[1 + n % 3]',
  bigint: 'n % 100',
  boolean: 'n % 100 = 0',
  date: `date '2000-01-01' + n % 1000`,
  bytea: `'x'::bytea`,
  jsonb: `to_jsonb(n)`,
  'timestamp with time zone': `timestamptz '${started}' - n * interval '1 ms'`,
  'double precision': 'n % 90',
  'text[]': `array['text']`,
  'integer[]': `array[1]`,
  'uuid[]': `array[${uuidOf('n')}]`,
  'bigint[]': 'array[1]',
  'timestamp with time zone[]': 'array[now()]',
  xid8: `(n % 1000)::text::xid8`,
};

/**
 * The id of a received row. There is one row per millisecond from the start of today, so that one existing partition
 * contains all rows. PostgreSQL would choose a full scan for a partition with few rows.
 */
const received = `(lpad(to_hex((extract(epoch from date_trunc('day', now(), 'UTC')) * 1000)::bigint + n), 12, '0')
  || '70008000' || lpad(to_hex(n), 12, '0'))::uuid`;

/** One organisation has 90% of all rows, and two others share the rest. */
const organisation = `organisations[case when n % 10 > 0 then 1 else 2 + n / 10 % 2 end]`;

/** Columns whose values must be distinct or must match another table. */
const byColumn: Readonly<Record<string, string>> = {
  organisation_id: organisation,
  type: `(array['shops', 'tags', 'transactions', 'offers'])[1 + n % 4]`,
  idempotency_key: `'key ' || n`,
  user_id: `'user ' || n / 10`,
  'interactions.interaction_id': received,
  'changes.change_id': received,
  'changes.number': 'n',
  'change_counters.organisation_id': uuidOf('n'),
  'report_progress.organisation_id': uuidOf('n'),
  'removals.organisation_id': uuidOf('n'),
  'jobs.organisation_id': uuidOf('n'),
  'retention_progress.organisation_id': uuidOf('n'),
  'quota_usage.organisation_id': uuidOf('n'),
  'lake_progress.organisation_id': uuidOf('n'),
  'report_sums.dimension': `(array['all', 'item', 'country', 'recommendation'])[1 + n % 4]`,
  'report_sums.value': `'value ' || n / 100`,
  'report_sums.day': `date '2026-01-01' + n % 100`,
  'report_visits.day': `date '2026-01-01' + n % 100`,
  'receipts.request_id': received,
  'receipt_batches.request_id': received,
  // One upload in three names a run of a hundred requests.
  'receipts.run_id': `case when n % 3 = 0 then ${uuidOf('n / 300')} end`,
  'runs.run_id': received,
  'runs.key_sha256': 'sha256(n::text::bytea)',
  'runs.files': `'[]'`,
  'runs.unseen': `'[]'`,
  'runs.name': `'name ' || n / 100`,
  'runs.status': `case when n % 10000 = 0 then 'open' else 'finished' end`,
  'run_file_claims.sha256': 'sha256(n::text::bytea)',
  'rejections.rejection_id': received,
  'rejections.request_id': uuidOf('n / 100'),
  'rejections.record': `'{}'`,
  'rejections.kind_id': uuidOf('n % 100'),
  'rejection_kinds.kind_id': uuidOf('n'),
  'organisations.organisation_id': uuidOf('n'),
  'tenants.organisation_id': uuidOf('n'),
  'organisations.slug': `'organisation-' || n`,
  // One organisation in a thousand is deleted, but no organisation is being removed.
  'organisations.deleted_at': `case when n % 1000 = 0 then now() end`,
  'organisations.removal_started_at': 'null',
  'api_keys.key_id': `'key' || n`,
  'api_keys.browser_origins': 'null',
  'api_keys.successor_of': `case when n % 100 = 2 then 'key' || n - 1 end`,
  'customers.user_id': uuidOf('n'),
  'erasures.mode': `'anonymise'`,
  'erasures.state': `case when n % 100 = 0 then 'requested' else 'done' end`,
  'erasures.lake_state': `case when n % 100 = 0 then 'pending' end`,
  'lake_progress.removing_since': 'null',
  'access_requests.state': `case when n % 100 = 0 then 'requested' else 'done' end`,
  'access_requests.records': `'{"customers": 1}'`,
  'access_request_records.id': `'id ' || n`,
  'access_request_records.access_request_id': uuidOf('n / 100'),
  'access_request_records.people': `to_jsonb(array['person ' || n])`,
  'suppressions.hash': 'sha256(n::text::bytea)',
  'erasure_keys.fingerprint': 'sha256(n::text::bytea)',
  'suppressions.lifted_at': 'null',
  'suppressions.lifted_before': 'null',
  token_sha256: 'sha256(n::text::bytea)',
  'record_counts.organisation_id': uuidOf('n / 4'),
};

/**
 * Adds the rows with numbers `from` to `to`. Indexes are built afterwards, which takes a third of the time. With
 * `organisation`, all rows belong to that organisation, and PostgreSQL's statistics do not include them.
 */
export async function fillTable(
  client: pg.Client,
  table: string,
  from: number,
  to: number,
  organisation?: string,
): Promise<void> {
  const { rows: columns } = await client.query<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, null) as type from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attidentity = '' order by attnum`,
    [table],
  );
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') as definition
     from pg_index where indrelid = $1::regclass
       and not exists (select from pg_constraint where conindid = indexrelid)`,
    [table],
  );
  for (const { name } of indexes) await client.query(`drop index ${name}`);
  await client.query(
    `insert into ${table} (${columns.map(({ name }) => `"${name}"`).join(', ')})
     select ${columns.map(({ name, type }) => expressionFor(table, name, type)).join(', ')}
     from generate_series(${from}, ${to}) as n,
       (select array_agg(coalesce($1::uuid, ${uuidOf('o')}) order by o) as organisations
        from generate_series(1, 3) as o) as known`,
    [organisation ?? null],
  );
  for (const { definition } of indexes) await client.query(definition);
  if (organisation !== undefined) return;
  // Without the vacuum, the cost of an index-only scan would depend on whether autovacuum has run.
  await client.query(`vacuum analyze ${table}`);
}

function expressionFor(table: string, column: string, type: string): string {
  const value = byColumn[`${table}.${column}`] ?? byColumn[column] ?? byType[type];
  if (value === undefined) throw new Error(`no value is known for ${table}.${column}, ${type}`);
  return value;
}
