-- Access requests can be cancelled.
set local lock_timeout = '3s';
-- In a cluster, if a table is altered on all nodes in parallel, no function can be created in the same transaction.
set local citus.multi_shard_modify_mode = 'sequential';

alter table access_requests
  -- A cancelled request has the state done, which code that does not know this column understands, and no done_at.
  -- Maintenance deletes what was collected, after which its state is expired.
  add column cancelled_at timestamptz;
