-- One engine for all long work. A row for each organisation and kind of work, while there is work.
set local lock_timeout = '3s';
-- In a cluster, if a table is altered on all nodes in parallel, no function can be created in the same transaction.
set local citus.multi_shard_modify_mode = 'sequential';

create table jobs (
  organisation_id uuid not null,
  kind text not null,
  -- What comes next, and how far it has got.
  step text not null,
  position jsonb,
  -- Counts the saved steps. A process that has read an older one does nothing.
  turn bigint not null,
  not_before timestamptz not null,
  -- How often the step has failed in a row.
  failures integer not null,
  since timestamptz not null,
  primary key (organisation_id, kind)
);

-- An erasure is swept only by processes that know this table. Processes of the previous release look for the states
-- 'pending' and 'running', so these states no longer occur. They read `step` and `after`, which stay for one release.
alter table erasures drop constraint erasures_state_check;
update erasures set state = 'requested' where state in ('pending', 'running');
alter table erasures
  add constraint erasures_state_check check (state in ('requested', 'sweeping', 'swept', 'done')),
  alter column state set default 'requested';

-- The range of interactions that a sweep has changed. Their partitions are analysed when it ends.
alter table erasures add column first_changed uuid, add column last_changed uuid;

-- How many of an organisation's ids are open is counted in each request.
create index erasure_ids_by_erasure on erasure_ids (organisation_id, erasure_id, id);

-- Older versions read only the states that they know, and start an erasure without naming its state.
update schema_compatibility set oldest_code = 1;
