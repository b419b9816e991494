-- Erased people are also removed from the lake's files.
set local lock_timeout = '3s';
-- In a cluster, if a table is altered on all nodes in parallel, no function can be created in the same transaction.
set local citus.multi_shard_modify_mode = 'sequential';

alter table erasures
  -- pending: the database is swept, but the files may still contain the erased people. running: the files are being
  -- searched. done: the files no longer contain them. Null if the organisation had no lake when the database was swept.
  add column lake_state text check (lake_state in ('pending', 'running', 'done')),
  -- The last table and file that have been searched.
  add column lake_after text,
  add column lake_done_at timestamptz;

create index erasures_in_lake on erasures (organisation_id) where lake_state in ('pending', 'running');
