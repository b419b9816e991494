-- Processes of the release before store UUIDs in user_id as they were sent, until the upgrade is over.
set local lock_timeout = '3s';
-- In a cluster, if a table is altered on all nodes in parallel, no function can be created in the same transaction.
set local citus.multi_shard_modify_mode = 'sequential';

-- When the organisation's stored user ids were last begun to be rewritten. Interactions since then are rewritten before each
-- sweep, and for the last time a day later. Null before, and when nothing is left to do.
alter table tenants add column user_ids_rewritten_from timestamptz;
