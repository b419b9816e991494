-- In a migration of its own, because uploads wait while it reads the table, but readers do not.
set local lock_timeout = '3s';
create index receipts_by_run on receipts (organisation_id, run_id, request_id) where run_id is not null;
