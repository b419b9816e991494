import { functionName, makeErasureFunctions } from '../erasure/erasure-functions.ts';
import { limits } from '../limits.ts';
import { personalTables } from '../people/personal-tables.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { tableOf } from '../records/tables.ts';
import { resourceTypes } from '../registry/resources.ts';
import { keptTypes } from '../retention/kept-days.ts';
import { makeViews } from './analytics-views.ts';

/** Nobody logs in as these roles, because the logins are members of them. */
const grants: Readonly<Record<string, readonly string[]>> = {
  intake_serve: [
    'usage on schema public',
    'select, update (suppressions_version, user_ids_rewritten, user_ids_rewritten_from) on tenants',
    'select, insert, update on erasures',
    'select, insert, update, delete on jobs',
    'select, insert, delete on erasure_ids, access_request_ids, access_request_records',
    'select, insert, update (lifted_at) on suppressions',
    'select, insert on erasure_keys',
    'select, insert, update on access_requests',
    'update (record, people) on access_request_records',
    'update (answer) on receipt_batches',
    ...personalTables.map((table) => `execute on function ${functionName(table)}`),
    'select (organisation_id, recommendations_report, deleted_at, removal_started_at) on organisations',
    'select (lake) on organisations',
    'select, insert, update, delete on lake_progress',
    'select, update on lake_slots',
    'select, update (claim, fingerprint, url) on lake_place',
    'select, insert, update, delete on lake_processes',
    'select on removals, log_backups',
    `select (${keptTypes.map((type) => `${type}_kept_days`).join(', ')}) on organisations`,
    'select, update (deleted_below) on retention_progress',
    'select (records_stored_max, bytes_stored_max) on organisations',
    'select, delete on quota_usage',
    'execute on function note_quota_usage',
    ...resourceTypes.map((type) => `select, insert, update on ${tableOf(type).name}`),
    'select, insert on interactions, receipt_batches',
    'select, insert, update, delete on runs',
    'select, insert, delete on run_file_claims',
    'select, insert, update on receipts, record_counts, changes, change_counters',
    'select, insert, delete on record_count_changes, rejection_count_changes',
    'select, insert, update on leases, chore_runs',
    'select, insert, update, delete on processes',
    'select (ended_at), insert, delete on organisation_activity',
    `select, insert, update, delete
       on interaction_idempotency_keys, upload_idempotency_keys, rejections, rejection_kinds, unsettled_batches,
         report_transactions`,
    'select, insert, update on report_progress, report_sums',
    'select, insert on report_interactions, report_visits',
    'select on interaction_partitions, schema_migrations, schema_compatibility, cursor_key, keys_expiring',
    `execute on function look_up_key, find_key, find_api_key, changed_api_keys, note_api_keys_used, keys_can_be_trusted, ensure_interaction_partitions,
       index_interaction_partition, ensure_weekly_partitions, detach_weekly_partition, drop_detached_partition,
       ensure_change_partitions, detach_change_partition, drop_detached_changes, erase_from_report, erase_students_from_report, rewrite_user_ids, is_key_free, analyse_erased, people_are_hidden,
       begin_expiry, expire_interactions, expire_receipts, detach_expired_interactions, drop_detached_interactions,
       begin_console_session, find_console_session, end_console_session, use_console_link, organisation_tables,
       begin_removal, remove_rows, finish_removal`,
  ],
  intake_admin: [
    'usage on schema public',
    'select, insert, update on organisations, api_keys',
    'select, insert (name, token_sha256, role, created_by, expires_at), update (revoked_at) on admin_tokens',
    'select, insert (actor, act, organisation_id, key_id, request_id, details) on audit_log',
    'select on schema_migrations, schema_compatibility',
    'select on quota_usage',
    'select, insert (target), update (looks_for_people) on restores',
    'select, insert on erasures, suppressions, erasure_keys',
    'update (lifted_at, lifted_before) on suppressions',
    'select, update (suppressions_version) on tenants',
    'select, update on change_counters',
    'select (removing_since), update (removing_since) on lake_progress',
    'select, update (database_id) on lake_place',
    'select on removals',
    'execute on function keys_can_be_trusted, remove_link_keys, count_console_link, reserve_audit_ids, import_audit_entries',
    'select, update (written_at) on log_backups',
    'select, insert, delete on operator_sessions',
    'insert, delete on console_links',
    'delete on console_sessions',
    'select on processes, organisation_activity, chore_runs',
    'select (kind, since) on jobs',
    'select (organisation_id, batch_id) on unsettled_batches',
    'select (organisation_id, access_request_id, state) on access_requests',
    'select (organisation_id, records, last_upload) on record_counts',
  ],
  // Includes the tables behind the views, which Citus reads with the caller's privileges. The views hide no rows.
  intake_read_all: [
    'usage on schema public, analytics_all',
    'select on all tables in schema analytics_all',
    `select on ${resourceTypes.map((type) => tableOf(type).name).join(', ')}, interactions, record_counts`,
    'select (organisation_id, slug, name) on organisations',
  ],
};

/**
 * A view, because the serving role has no privileges on `api_keys`. It skips keys that were issued for only a few days
 * and keys whose successor is in use, because both are expected to expire.
 */
const keysExpiring = `
  create or replace view keys_expiring as
  select count(*)::integer as keys from api_keys k
  where not exists (select from organisations o where o.organisation_id = k.organisation_id and o.deleted_at is not null)
    and revoked_at is null and expires_at > now() and expires_at < now() + interval '${limits.keysExpiringDays} days'
    and last_used_at > now() - interval '${limits.keysExpiringDays} days'
    and expires_at - created_at > interval '${2 * limits.keysExpiringDays} days'
    and not exists (select from api_keys s where s.successor_of = k.key_id and s.last_used_at is not null)`;

/** Creates missing roles if permitted, and returns those that are still missing. */
export async function grantRoles(client: Client): Promise<string[]> {
  // Without the lock, two concurrent processes would overwrite each other's grants.
  await client.query(`select pg_advisory_xact_lock(hashtext('intake roles'))`);
  const roles = Object.keys(grants);
  // Roles come first, because Citus cannot create a role in a transaction that has already granted privileges.
  for (const role of await missingOf(client, roles)) await client.query(createRole(role));
  await makeViews(client);
  await makeErasureFunctions(client);
  await client.query(keysExpiring);
  const missing = await missingOf(client, roles);
  for (const role of roles.filter((one) => !missing.includes(one)))
    for (const right of grants[role] ?? []) await client.query(`grant ${right} to ${role}`);
  // By default, every login may create temporary tables and fill the disk with them. None of our roles needs any.
  await client.query(`do $$ begin
    execute format('revoke temporary on database %I from public', current_database());
  end $$`);
  return missing;
}

async function missingOf(client: Client, roles: readonly string[]): Promise<string[]> {
  const { rows } = await client.query<{ role: string }>(
    `select role from unnest($1::text[]) as wanted(role) where role not in (select rolname from pg_roles)`,
    [roles],
  );
  return rows.map(({ role }) => role);
}

/** Another database on the same server may have created the role already, or may be creating it now. */
function createRole(role: string): string {
  return `do $$ begin
    create role ${role} nologin;
  exception when duplicate_object or unique_violation or insufficient_privilege then null;
  end $$`;
}

/** Each string completes the sentence "it …". */
export async function surplusRights(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ rights: string[] }>(`
    select case when r.rolsuper then array['is a superuser'] else array_remove(array[
      case when r.rolcreaterole then 'may create roles' end,
      case when r.rolcreatedb then 'may create databases' end,
      case when r.rolreplication then 'may read the whole database as a replica' end,
      case when exists (
        select from pg_class c where c.relnamespace = 'public'::regnamespace and pg_has_role(c.relowner, 'member')
      ) then 'owns tables' end,
      case when has_schema_privilege('public', 'create') then 'may create tables' end,
      case when has_any_column_privilege('api_keys', 'select') then 'may read the hashes of all keys' end,
      case when has_any_column_privilege('organisations', 'update') or has_any_column_privilege('api_keys', 'insert, update')
        then 'may do what the operator does' end
    ], null) end as rights
    from pg_roles r where r.rolname = current_user`);
  return rows[0]?.rights ?? [];
}

/** Tests a privilege that only the serving role has. */
export async function mayServe(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ may: boolean }>(
    `select has_table_privilege('receipt_batches', 'insert') as may`,
  );
  return rows[0]?.may === true;
}

export async function mayAdminister(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ may: boolean }>(`
    select has_table_privilege('api_keys', 'insert') and has_table_privilege('organisations', 'insert')
      and has_column_privilege('audit_log', 'act', 'insert') as may`);
  return rows[0]?.may === true;
}

/** For connections whose sessions the service cannot configure. */
export async function roleSettings(
  pool: Pool,
): Promise<{ readonly missingTimeouts: readonly string[]; readonly roundsDoubles: boolean }> {
  const { rows } = await pool.query<{ missing: string[]; rounds: boolean }>(`
    select array_remove(array[
      case when current_setting('statement_timeout') = '0' then 'statement_timeout' end,
      case when current_setting('idle_in_transaction_session_timeout') = '0'
        then 'idle_in_transaction_session_timeout' end
    ], null) as missing, current_setting('extra_float_digits')::integer < 1 as rounds`);
  return { missingTimeouts: rows[0]?.missing ?? [], roundsDoubles: rows[0]?.rounds ?? false };
}
