-- The report on recommendations is counted for the organisations that have it switched on. Counting costs more than storing, and
-- few organisations read the report, so it is off until an operator switches it on.
-- While this waits for a table that somebody reads, later queries queue behind it: fail fast, and be run again.
set local lock_timeout = '3s';

alter table organisations add column recommendations_report boolean not null default false;
