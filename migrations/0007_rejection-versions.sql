-- When a rejected record says that it was changed: a rejection must not go because an older version was stored.

-- While this waits for a table that somebody reads, whoever comes after waits too: rather give up and be run again.
set local lock_timeout = '3s';

alter table rejections add column updated timestamptz;
