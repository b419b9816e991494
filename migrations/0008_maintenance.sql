-- Which process does work that only one process should do. A lease ends unless its holder renews it. It is a row and not a
-- session's advisory lock, because a pooler in transaction mode shares one session among many clients.
create table leases (
  name text primary key,
  holder uuid not null,
  ends_at timestamptz not null
);

-- Views for the operator's analysts; `migrate` makes them from the record types.
create schema analytics_all;
