-- The planner's statistics would keep ids of erased people: this table is usually empty when an erasure ends, and PostgreSQL
-- before version 18 keeps the statistics of a table that has become empty.
set local lock_timeout = '3s';

alter table erasure_ids alter column id set statistics 0;
