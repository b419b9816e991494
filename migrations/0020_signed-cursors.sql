-- Cursors of the change feed, of replays and of reports are signed, so that only the server can make them.
-- While this waits for a table that is being read, later queries queue behind it: fail fast and run it again.
set local lock_timeout = '3s';

-- Made here, so that all processes sign with the same key and none has to be configured.
create table cursor_key (
  is_only boolean primary key default true check (is_only),
  key bytea not null
);
insert into cursor_key (key)
select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

alter table change_counters
  -- The start time of the server that gave the last number.
  add column server_started text,
  -- The servers that gave numbers, oldest first: {"id": …, "first": …}, a random id and the first number of each.
  add column epochs jsonb not null default '[]';
