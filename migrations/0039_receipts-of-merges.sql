-- How the records were stored. Null for interactions and replays.
set local lock_timeout = '3s';
alter table receipts add column mode text;
