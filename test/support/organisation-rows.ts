import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Pool } from '../../src/postgres/pool.ts';
import { fingerprintOf } from '../../src/suppression/suppression-key.ts';
import { erasureKey } from './app.ts';
import { fillTable } from './filled-tables.ts';

/** Tables with one or a few rows per organisation, whose columns must be consistent with each other. */
const single: Readonly<Record<string, string>> = {
  change_counters: `insert into change_counters values ($1, 7, 3, 'before', '[]') on conflict (organisation_id) do update set last_number = 7`,
  report_progress: `insert into report_progress values ($1, 3, 5, null, null) on conflict do nothing`,
  retention_progress: `insert into retention_progress (organisation_id, type, expired_below, waiting_since)
    values ($1, 'interactions', '00000000-0000-0000-0000-000000000001', '2026-03-14T09:26:53Z')`,
  lake_progress: `insert into lake_progress (organisation_id, number, epoch, as_of) values ($1, 5, '00000000', now()) on conflict do nothing`,
  // With any other key, the processes under test would not be ready.
  erasure_keys: `insert into erasure_keys values ($1, '\\x${fingerprintOf(erasureKey).toString('hex')}') on conflict do nothing`,
  record_counts: `insert into record_counts (organisation_id, type, records) values ($1, 'tags', 5), ($1, 'shops', 7) on conflict do nothing`,
};

/** Returns the tables that contain organisations' data, from the system catalogue. */
export async function organisationTables(admin: Pick<Pool, 'query'>): Promise<string[]> {
  const { rows } = await admin.query<{ name: string }>(
    'select t.name from organisation_tables() as t(name) order by t.name',
  );
  return rows.map(({ name }) => name);
}

/** Adds an organisation's rows to every table that can contain them: a few rows, or the given number. */
export async function fillOrganisation(
  admin: pg.Client,
  organisationId: string,
  rows: Readonly<Record<string, number>> = {},
): Promise<void> {
  for (const table of await organisationTables(admin)) {
    const statement = single[table];
    if (statement !== undefined) await admin.query(statement, [organisationId]);
    else await fillTable(admin, table, 1, rows[table] ?? 5, organisationId);
  }
}

/** Returns the number of an organisation's rows and a hash of them, by table. */
export async function rowsOf(
  admin: Pick<Pool, 'query'>,
  organisationId: string,
): Promise<Record<string, { readonly count: number; readonly hash: string }>> {
  const found: Record<string, { count: number; hash: string }> = {};
  for (const table of [...(await organisationTables(admin)), 'tenants', 'api_keys']) {
    const { rows } = await admin.query<{ line: string }>(
      `select t::text as line from ${table} t where organisation_id = $1 order by 1`,
      [organisationId],
    );
    const hash = createHash('sha256').update(rows.map(({ line }) => line).join('\n'));
    found[table] = { count: rows.length, hash: hash.digest('hex') };
  }
  return found;
}
