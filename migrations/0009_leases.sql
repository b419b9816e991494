-- Who does something that only one process should do. A lease ends by itself if its holder does not renew it. It is a row
-- and not a lock of a session, for a pooler that works by transactions gives a session to many.
create table leases (
  name text primary key,
  holder uuid not null,
  ends_at timestamptz not null
);
