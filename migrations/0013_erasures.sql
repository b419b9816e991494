-- Erasing people. The ids of an erasure are kept in plain text until everything about them is gone, and as hashes for good, so
-- that nobody brings the people back.
set local lock_timeout = '3s';
-- In a cluster, a table that is altered on all nodes at once could not be followed by a function.
set local citus.multi_shard_modify_mode = 'sequential';

-- Counts the changes of the organisation's suppressions. Whatever writes records of people compares it with what the process
-- knows, in the statement that writes or one before it in its transaction.
alter table tenants add column suppressions_version integer not null default 0;

create table erasures (
  organisation_id uuid not null,
  -- A UUIDv7: the time of the request.
  erasure_id uuid not null,
  mode text not null check (mode in ('anonymise', 'delete')),
  -- pending: requested; running: being swept; swept: in no table; done: dropped from the change log too.
  state text not null default 'pending' check (state in ('pending', 'running', 'swept', 'done')),
  key_id text not null,
  -- How many ids were sent, and how many of the customers were stored.
  people integer not null,
  known integer not null,
  -- What comes next, for maintenance: the step, and how far it has got.
  step text not null default 'fence',
  after text,
  -- How many rows of each table were changed or deleted.
  rows jsonb not null default '{}',
  started_at timestamptz,
  swept_at timestamptz,
  done_at timestamptz,
  primary key (organisation_id, erasure_id)
);

-- For maintenance, over all organisations.
create index erasures_unfinished on erasures (state) where state <> 'done';

-- The ids of the people of an erasure that is not swept yet. Whatever reads hides their records.
create table erasure_ids (
  organisation_id uuid not null,
  erasure_id uuid not null,
  id text not null,
  primary key (organisation_id, id, erasure_id)
);

-- Keyed hashes of the ids of erased people; a record with one of these ids is refused.
create table suppressions (
  organisation_id uuid not null,
  -- HMAC-SHA-256, the first half.
  hash bytea not null,
  -- A shorter keyed hash, for the filter that every process keeps in memory.
  filter bigint not null,
  erasure_id uuid not null,
  -- The version of the suppressions that added it.
  version integer not null,
  primary key (organisation_id, hash)
);

create index suppressions_by_version on suppressions (organisation_id, version, hash) include (filter);
create index suppressions_by_erasure on suppressions (organisation_id, erasure_id);

-- Removes students from what the report is counted from. Runs as the owner, since the service may only add to these tables.
create function erase_from_report(organisation uuid, students uuid[]) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  update public.report_interactions set student_id = '00000000-0000-0000-0000-000000000000'
  where organisation_id = organisation and student_id = any (students);
  delete from public.report_visits
  where organisation_id = organisation and subject_id = any (students) and not is_recommendation;
  update public.report_transactions set student_id = null
  where organisation_id = organisation and student_id = any (students);
end
$$;

revoke execute on function erase_from_report from public;
