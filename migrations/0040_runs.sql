-- Runs: uploads of one or several files, which the requests of a client can name.
set local lock_timeout = '3s';
-- In a cluster, a table that is altered on all nodes at once could not be followed by a function.
set local citus.multi_shard_modify_mode = 'sequential';

create table runs (
  organisation_id uuid not null,
  -- A UUIDv7: when the run was opened, by the database's clock.
  run_id uuid not null,
  -- Of the Idempotency-Key, which may contain the id of a person. Null if there was none.
  key_sha256 bytea,
  key_id text not null,
  name text not null,
  client_version text,
  -- An array of objects with name, bytes, sha256 and type. Requests refer to its elements by their index.
  files jsonb not null,
  -- Requests do not change the row, so those of one run do not wait for each other: whether an open run is interrupted, and
  -- all counts, are derived from receipts.
  status text not null default 'open' check (status in ('open', 'finished', 'failed')),
  -- What the client counted and the service did not see: an array of objects with file, not_sent and not_kept.
  unseen jsonb not null default '[]',
  heartbeat_at timestamptz,
  ended_at timestamptz,
  primary key (organisation_id, run_id),
  unique (organisation_id, key_sha256)
);

create index runs_by_name on runs (organisation_id, name, run_id);
create index runs_by_status on runs (organisation_id, status, run_id);
create index runs_by_age on runs (run_id);

-- Files of interactions, which have no ids that would make a second upload harmless. Kept for longer than runs.
create table run_file_claims (
  organisation_id uuid not null,
  sha256 bytea not null,
  run_id uuid not null,
  claimed_at timestamptz not null,
  primary key (organisation_id, sha256, run_id)
);

create index run_file_claims_by_age on run_file_claims (claimed_at);

alter table receipts
  -- Null if the request named no run.
  add column run_id uuid,
  -- The index of the file in the run.
  add column file integer,
  -- The number of the request's first record in the file, from 1.
  add column first_record bigint;

-- Now also deletes runs.
create or replace function expire_receipts(organisation uuid, rows_max integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp set plan_cache_mode = 'force_custom_plan' as $$
declare
  first_id uuid;
  end_id uuid;
  next_id uuid;
begin
  select p.deleted_below, p.expired_below into first_id, end_id from public.retention_progress p
  where p.organisation_id = organisation and p.type = 'receipts' for update;
  -- An organisation that is being removed has no tenant any more, and gets no row.
  if not found or first_id >= end_id or not exists (select from public.tenants t where t.organisation_id = organisation) then
    return false;
  end if;
  select r.request_id into next_id from public.receipts r
  where r.organisation_id = organisation and r.request_id >= first_id and r.request_id < end_id
  order by r.request_id offset rows_max limit 1;
  next_id := public.end_of_step(first_id, next_id, end_id);
  delete from public.receipts r
  where r.organisation_id = organisation and r.request_id >= first_id and r.request_id < next_id;
  delete from public.receipt_batches b
  where b.organisation_id = organisation and b.request_id >= first_id and b.request_id < next_id;
  delete from public.runs r
  where r.organisation_id = organisation and r.run_id >= first_id and r.run_id < next_id;
  update public.retention_progress p set deleted_below = next_id
  where p.organisation_id = organisation and p.type = 'receipts';
  return next_id < end_id;
end
$$;
