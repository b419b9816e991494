-- Quotas: how many records, interactions included, and how many bytes an organisation may store. Null means no quota.
set local lock_timeout = '3s';

alter table organisations add column records_stored_max bigint, add column bytes_stored_max bigint;

-- For the leader: organisations without a quota cost nothing.
create index organisations_with_quota on organisations (organisation_id)
  where records_stored_max is not null or bytes_stored_max is not null;

-- What the organisations with a quota have stored, as the leader last measured it. In a cluster it stays on the coordinator,
-- because it is read together with a key.
create table quota_usage (
  organisation_id uuid primary key,
  records bigint not null,
  -- Null without a quota of bytes.
  bytes bigint,
  -- By record type: the average size of the organisation's rows, and the last upload before that was measured.
  row_sizes jsonb not null,
  measured_at timestamptz not null default now()
);

-- Processes look up the keys of an organisation again when its row changes. That is needed only if the figures appear in
-- answers, which is from 80 % of a quota on. A plan that was kept from when quota_usage was empty would read it whole for each
-- organisation.
create function note_quota_usage(measured uuid[], records_now bigint[], bytes_now bigint[], sizes_now jsonb[]) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set plan_cache_mode = force_custom_plan as $$
begin
  update public.organisations o set changed_in = pg_current_xact_id()
  from unnest(measured, records_now, bytes_now) as n(organisation_id, records, bytes)
  left join public.quota_usage u on u.organisation_id = n.organisation_id
  where o.organisation_id = n.organisation_id
    and (n.records, n.bytes) is distinct from (u.records, u.bytes)
    and (greatest(n.records, u.records) >= 0.8 * o.records_stored_max
      or greatest(n.bytes, u.bytes) >= 0.8 * o.bytes_stored_max);
  insert into public.quota_usage (organisation_id, records, bytes, row_sizes)
  select * from unnest(measured, records_now, bytes_now, sizes_now)
  on conflict (organisation_id) do update
  set records = excluded.records, bytes = excluded.bytes, row_sizes = excluded.row_sizes, measured_at = now();
end
$$;

revoke execute on function note_quota_usage from public;
